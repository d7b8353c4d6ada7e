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
. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"
export XDG_RUNTIME_DIR="$dir" # for the secret that the server makes
unset RUNTIME_DIRECTORY

cat >"$dir/rules.yaml" <<'END'
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 3/day}
  - {name: tiers, when: {path: /t}, key: [user], rate: 1/day, tiers: {by: tier, default: free, free: {}, pro: {}}}
END
"$WEIR_BUILD_DIR/weir" serve --max-age 0 --config "$dir/rules.yaml" --resp off --http 127.0.0.1:0 --admin 127.0.0.1:0 \
    </dev/null >"$dir/out" 2>"$dir/err" &
pid=$!
await_start "$pid" grep -q '^ *admin  ' "$dir/out"
http=$(sed -n 's/^ *http  *\(127\.0\.0\.1:[0-9]*\)$/\1/p' "$dir/out")
admin=$(sed -n 's/^ *admin  *\(127\.0\.0\.1:[0-9]*\)$/\1/p' "$dir/out")

for _ in 1 2 3 4 5; do
    curl -s -m 20 -o "$dir/reply" -d '{"limit":"api","key":"alice"}' "http://$http/v1/check"
done
curl -s -m 20 -f "http://$admin/readyz" | grep -q ready || die "not ready"
curl -s -m 20 -f -X POST -H "Authorization: Bearer $(cat "$dir/weir/admin-$admin.secret")" "http://$admin/v1/reload" \
    >"$dir/reply" || die "no reload"
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
assert value("weir_requests_total", listener="http", result="allow") == 3
assert value("weir_requests_total", listener="http", result="deny") == 2
assert value("weir_denied_total", reason="limit") == 2
assert value("weir_denied_total", reason="store") == 0
assert value("weir_decision_duration_seconds_count", listener="http") == 5
assert value("weir_decision_duration_seconds_bucket", listener="http", le="+Inf") == 5
assert value("weir_config_reloads_total", result="success") == 1
assert value("weir_table_keys", limit="api") == 1
assert value("process_resident_memory_bytes") > 1e6
END

kill -TERM "$pid"
wait "$pid" || die "exit $? after SIGTERM"
pid=
cp "$dir/err" "$dir/first"

# The same with a store: first there is none, then it comes.
command -v redis-server >/dev/null || { echo "redis-server is missing" >&2; exit 77; }
cat >"$dir/shared.yaml" <<'END'
limits:
  - {name: api, key: [user], rate: 3/day, on_store_failure: open}
  - {name: shut, key: [user], rate: 3/day, on_store_failure: closed}
  - {name: own, key: [user], rate: 3/day, consistency: local}
  - {name: lent, key: [user], rate: 1k/s, consistency: leased}
  - {name: few, key: [user], rate: 30/s, consistency: leased}
  - {name: told, key: [user], rate: 1k/s, consistency: synced}
END
: >"$dir/out" # or the lines of the first server are read
"$WEIR_BUILD_DIR/weir" serve --max-age 0 --config "$dir/shared.yaml" --store "redis://$dir/redis" --resp off \
    --http 127.0.0.1:0 --admin "unix:$dir/admin" --threads 1 </dev/null >"$dir/out" 2>"$dir/err" &
pid=$!
await_start "$pid" grep -q '^ *admin  ' "$dir/out"
http=$(sed -n 's/^ *http  *\(127\.0\.0\.1:[0-9]*\)$/\1/p' "$dir/out")
scrape() { curl -s -m 20 -f --unix-socket "$dir/admin" http://localhost/metrics >"$dir/metrics" || die "no metrics"; }
check() { curl -s -m 20 -o "$dir/reply" -w '%{http_code}' -d "{\"limit\":\"$1\",\"key\":\"alice\"}" "http://$http/v1/check"; }
[ "$(check api)" = 200 ] || die "an open limit is shut"
grep -q '"flags":\["degraded"\]' "$dir/reply" || die "an answer without the store does not say so"
[ "$(check shut)" = 503 ] || die "a closed limit is not 503"
curl -s -m 20 -f "http://$http/readyz" >/dev/null || die "not ready without a store"
scrape
for line in 'weir_store_up 0' 'weir_store_connections 0' 'weir_degraded_total{limit="api",policy="open"} 1' \
    'weir_degraded_total{limit="shut",policy="closed"} 1' 'weir_denied_total{reason="store"} 1' \
    'weir_fleet_nodes 1' 'weir_refunds_lost_total 0' 'weir_synced_keys 0'; do
    grep -qxF "$line" "$dir/metrics" || die "no '$line' in $(cat "$dir/metrics")"
done
grep -q 'weir_degraded_total{limit="own"' "$dir/metrics" && die "a limit of this node alone is degraded"
grep -q 'weir_degraded_total{limit="api",policy="local"' "$dir/metrics" && die "a policy that the limit has not"
top() { timeout 60 "$WEIR_BUILD_DIR/weir" top --admin "unix:$dir/admin" --once --interval 100ms </dev/null >"$dir/top" || die "top"; }
top
grep -qE '^store +AWAY  nodes 1  calls/s [0-9.]+  degraded/s [0-9.]+  p50 ' "$dir/top" || die "top has no store: $(cat "$dir/top")"
grep -qE '^ +1  store   shut   alice$' "$dir/top" || die "top does not tell that the store denied: $(cat "$dir/top")"
grep -qE '^LIMIT .* DEGRADED/S$' "$dir/top" || die "top does not tell who is degraded: $(cat "$dir/top")"
redis-server --port 0 --unixsocket "$dir/redis" --save '' --daemonize no </dev/null >"$dir/redis.log" 2>&1 &
redis=$!
trap 'kill -KILL $redis $pid 2>/dev/null || true; rm -rf "$dir"' EXIT
store_is_up() { scrape && grep -qxF 'weir_store_up 1' "$dir/metrics"; }
await_start "$redis" [ -S "$dir/redis" ]
until_true store_is_up
tries=0
until check shut >/dev/null && grep -q '"flags":\[\]' "$dir/reply"; do # a slow machine may miss a deadline
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || die "the store is not asked"
    sleep 0.05
done
scrape
grep -qxF "weir_breaker_open{endpoint=\"$dir/redis\"} 0" "$dir/metrics" || die "the breaker: $(grep breaker "$dir/metrics")"
for family in weir_store_connects_total weir_store_calls_total 'weir_store_ended_total{result="replied"}' \
    weir_store_duration_seconds_count; do
    [ "$(sed -n "s/^$family //p" "$dir/metrics")" -ge 1 ] || die "no $family"
done
for family in weir_store_resent_total weir_store_late_total weir_pending_total weir_pending_abandoned_total \
    'weir_store_ended_total{result="unknown"}' 'weir_store_ended_total{result="not_run"}' \
    'weir_denials_remembered_total{limit="api"}'; do
    grep -q "^$family [0-9]" "$dir/metrics" || die "no $family"
done
# A limit's keys: in the store, in a table, or what this node holds of them.
limits() { timeout 60 "$WEIR_BUILD_DIR/weir" ctl --admin "unix:$dir/admin" limits "$@" </dev/null >"$dir/limits" || die "ctl limits"; }
tries=0
until [ "$(check lent)$(check told)$(check few)" = 200200200 ] && limits && grep -qE '^lent .* enforce +1 +- .* leased$' "$dir/limits"; do
    tries=$((tries + 1))
    [ "$tries" -lt 200 ] || die "no lease is shown: $(cat "$dir/limits")"
    sleep 0.05
done
for line in 'api .* enforce +- +- +[0-9.]+ +[0-9]+ +0 +0 +0 +0 +- +[0-9]+ +exact' 'few .* enforce +- +- .* exact' \
    'told .* enforce +1 +- .* synced' 'own .* enforce +0 +[0-9]+ .* -'; do
    grep -qxE "$line" "$dir/limits" || die "no '$line' in $(cat "$dir/limits")"
done
limits --json api
grep -q '"keys": null' "$dir/limits" || die "the keys of an exact limit: $(cat "$dir/limits")"
top
grep -qE '^store +up  nodes 1 ' "$dir/top" || die "top does not see the store: $(cat "$dir/top")"
"$python" -c '
import sys
from prometheus_client.parser import text_string_to_metric_families
list(text_string_to_metric_families(open(sys.argv[1], encoding="utf-8").read()))' "$dir/metrics" || die "not Prometheus"
kill -TERM "$pid"
wait "$pid" || die "exit $? after SIGTERM"
pid=
kill "$redis"
wait "$redis" || true
[ "$(grep -c 'the store is away' "$dir/err")" -le 1 ] || die "the log repeats itself"
cp "$dir/first" "$dir/err"
grep -q 'audit reload address=127\.0\.0\.1 role=admin' "$dir/err" || die "no audit line of the reload"
