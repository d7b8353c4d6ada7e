#!/bin/sh
# Every query of packaging/prometheus/weir-dashboard.json, run by a real Prometheus that scrapes a real weir with a store,
# finds data; and the alert rules are evaluated without errors.
# test-labels: long nosan
# test-timeout: 600
set -eu
export LC_ALL=C
for tool in prometheus redis-server curl python3; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
pids=
trap 'kill -KILL $pids 2>/dev/null || true; rm -rf "$dir"' EXIT
die() { echo "$*" >&2; cat "$dir/out" "$dir/err" "$dir/prometheus.log" >&2; exit 1; }
. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"
export XDG_RUNTIME_DIR="$dir"
unset RUNTIME_DIRECTORY

redis-server --port 0 --unixsocket "$dir/redis" --save '' </dev/null >"$dir/redis.log" 2>&1 &
pids=$!
cat >"$dir/rules.yaml" <<'END'
allow: [{path: /free}]
limits:
  - {name: api, when: {path: /api}, key: [user], rate: 1/day, consistency: local}
  - {name: new, when: {path: /api}, key: [user], rate: 1/day, consistency: local, shadow: true}
  - {name: shared, when: {path: /shared}, key: [user], rate: 1k/s}
END
"$WEIR_BUILD_DIR/weir" serve --config "$dir/rules.yaml" --store "redis://$dir/redis" --resp 127.0.0.1:0 \
    --http 127.0.0.1:0 --admin "unix:$dir/admin" --metrics 127.0.0.1:0 </dev/null >"$dir/out" 2>"$dir/err" &
pids="$pids $!"
await_start $! grep -q '^ *metrics  *127' "$dir/out"
http=$(sed -n 's/^ *http  *\(127\.0\.0\.1:[0-9]*\)$/\1/p' "$dir/out")
metrics=$(sed -n 's/^ *metrics  *\(127\.0\.0\.1:[0-9]*\)$/\1/p' "$dir/out")

sed -e 's/15s/1s/' -e "s/127\.0\.0\.1:9180/$metrics/" "$WEIR_SOURCE_DIR/packaging/prometheus/prometheus.yml" >"$dir/prometheus.yml"
cp "$WEIR_SOURCE_DIR/packaging/prometheus/weir.rules.yml" "$dir"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/data" \
    --web.listen-address="127.0.0.1:$port" </dev/null >"$dir/prometheus.log" 2>&1 &
pids="$pids $!"
await_start $! curl -s -f -o "$dir/reply" "http://127.0.0.1:$port/-/ready"

python3 - "$WEIR_SOURCE_DIR/packaging/prometheus/weir-dashboard.json" "http://127.0.0.1:$port" "http://$http" <<'END' || die "a query finds nothing"
import json, sys, time, urllib.error, urllib.parse, urllib.request

board, prometheus, weir = json.load(open(sys.argv[1], encoding="utf-8")), sys.argv[2], sys.argv[3]

def get(path, **parameters):
    with urllib.request.urlopen(f"{prometheus}{path}?{urllib.parse.urlencode(parameters)}", timeout=20) as reply:
        answer = json.load(reply)
    assert answer["status"] == "success", answer
    return answer["data"]

def ask(path):
    body = json.dumps({"attributes": {"path": path, "user": "alice"}}).encode()
    try:
        urllib.request.urlopen(urllib.request.Request(f"{weir}/v1/check", body), timeout=20).close()
    except urllib.error.HTTPError as e:
        e.close()

queries = [t["expr"] for p in board["panels"] for t in p.get("targets", [])]
assert len(queries) > 25, queries
ids = [p["id"] for p in board["panels"]]
assert len(ids) == len(set(ids)), ids
for variable in board["templating"]["list"]:
    if variable["type"] == "query":
        assert variable["query"]["query"].startswith("label_values(weir_build_info"), variable
queries.append(board["annotations"]["list"][0]["expr"].rsplit(" > ", 1)[0])

def filled(query):
    return query.replace("$job", "weir").replace("$instance", ".*").replace("$__rate_interval", "10s")

left, deadline = queries, time.monotonic() + 120
while left and time.monotonic() < deadline:
    for path in ("/api", "/shared", "/free", "/nothing"):
        ask(path)
    left = [q for q in left if not any(float(r["value"][1]) == float(r["value"][1])  # not NaN
                                       for r in get("/api/v1/query", query=filled(q))["result"])]
    time.sleep(0.2)  # until the next scrape
assert not left, "\n".join(left)

rules = [r for g in get("/api/v1/rules")["groups"] for r in g["rules"]]
assert len(rules) >= 8, rules
while any(r["health"] == "unknown" for r in rules) and time.monotonic() < deadline:
    rules = [r for g in get("/api/v1/rules")["groups"] for r in g["rules"]]
    time.sleep(0.2)
assert all(r["health"] == "ok" for r in rules), rules
print(f"{len(queries)} queries, {len(rules)} alerts")
END
