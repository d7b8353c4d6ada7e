#!/bin/sh
# /metrics of a server as operators start it, read by Prometheus' own Python client; curl as an operator would use it.
# test-timeout: 120
set -eu
export LC_ALL=C
python=
for p in python3 /usr/bin/python3; do
    if "$p" -c 'import prometheus_client' 2>/dev/null; then python=$p; fi
done
[ -n "$python" ] || { echo "python3-prometheus-client is missing" >&2; exit 77; }
for tool in curl timeout; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
die() { echo "$*" >&2; cat "$dir/out" "$dir/err" >&2; exit 1; }

cat >"$dir/rules.yaml" <<'END'
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 3/day}
  - {name: tiers, when: {path: /t}, key: [user], rate: 1/day, tiers: {by: tier, default: free, free: {}, pro: {}}}
END
"$WEIR_BUILD_DIR/weir" serve --max-age 0 --config "$dir/rules.yaml" --resp off --http 127.0.0.1:0 --admin 127.0.0.1:0 \
    </dev/null >"$dir/out" 2>"$dir/err" &
pid=$!
tries=0
until grep -q '^ *admin  ' "$dir/out"; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || die "the server does not start"
    sleep 0.05
done
http=$(sed -n 's/^ *http  *\(127\.0\.0\.1:[0-9]*\)$/\1/p' "$dir/out")
admin=$(sed -n 's/^ *admin  *\(127\.0\.0\.1:[0-9]*\)$/\1/p' "$dir/out")

for _ in 1 2 3 4 5; do
    curl -s -m 20 -o "$dir/reply" -d '{"limit":"api","key":"alice"}' "http://$http/v1/check"
done
curl -s -m 20 -f "http://$admin/readyz" | grep -q ready || die "not ready"
curl -s -m 20 -f -X POST "http://$admin/v1/reload" >"$dir/reply" || die "no reload"
curl -s -m 20 -f "http://$admin/metrics" >"$dir/metrics" || die "no metrics"

"$python" - "$dir/metrics" <<'END' || die "the client library does not agree"
import sys
from prometheus_client.parser import text_string_to_metric_families

values, names = {}, []
for family in text_string_to_metric_families(open(sys.argv[1], encoding="utf-8").read()):
    names.append(family.name)
    assert family.documentation and family.type in ("counter", "gauge", "histogram"), family
    for sample in family.samples:
        series = (sample.name, tuple(sorted(sample.labels.items())))
        assert series not in values, series
        values[series] = sample.value
assert len(names) == len(set(names)), names

def value(name, **labels):
    return values[(name, tuple(sorted(labels.items())))]

assert value("weir_decisions_total", limit="api", verdict="allow") == 3
assert value("weir_decisions_total", limit="api", verdict="deny") == 2
assert value("weir_decisions_total", limit="tiers", verdict="deny") == 0
assert value("weir_requests_total", protocol="http") == 5
assert value("weir_decision_duration_seconds_count", protocol="http") == 5
assert value("weir_decision_duration_seconds_bucket", protocol="http", le="+Inf") == 5
assert value("weir_config_reloads_total", result="success") == 1
assert value("weir_table_keys", limit="api") == 1
assert value("process_resident_memory_bytes") > 1e6
END

kill -TERM "$pid"
wait "$pid" || die "exit $? after SIGTERM"
pid=
grep -q 'audit reload address=127\.0\.0\.1 role=admin' "$dir/err" || die "no audit line of the reload"
