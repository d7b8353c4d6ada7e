#!/bin/sh
# `weir bench load` against `weir serve`, RESP, HTTP and gRPC: one JSON object, a table, every request counted once; bad arguments
# are refused with a word of what was expected; progress on a terminal; what was counted until the server went away; and which
# weir-bench it runs. Times are not judged here.
# test-timeout: 60
set -eu
export LC_ALL=C
dir=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
die() { echo "$*" >&2; cat "$dir"/out "$dir"/err >&2; exit 1; }
. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"

: >"$dir/out"
echo 'limits: [{name: api, key: [user], rate: 3/day}]' >"$dir/rules.yaml"
"$weir" serve --max-age 0 --config "$dir/rules.yaml" --resp 127.0.0.1:0 --http 127.0.0.1:0 --grpc 127.0.0.1:0 --admin off \
    --threads 1 </dev/null >"$dir/out" 2>"$dir/err" &
pid=$!
await_start "$pid" grep -q 'admin  ' "$dir/out"
resp=$(sed -n 's/^ *resp  *//p' "$dir/out")
http=$(sed -n 's/^ *http  *//p' "$dir/out")
grpc=$(sed -n 's/^ *grpc  *//p' "$dir/out")

# value NAME: of the last object
value() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$dir/load.json" "$1"; }
# counts ALLOWED DENIED
counts() { [ "$(value allowed)" = "$1" ] && [ "$(value denied)" = "$2" ] && [ "$(value errors)" = 0 ]; }

load() { timeout 30 "$weir" bench load "$@" </dev/null; }

load --resp "$resp" --rate max --requests 500 --keys 100 --order sequential --depth 16 --json \
    WEIR.CHECK api '{key}' >"$dir/load.json"
counts 300 200 || die "RESP: $(cat "$dir/load.json")"
load --http "$http" --rate max --requests 500 --keys 100 --order sequential --json \
    --body '{"limit":"api","key":"http{key}"}' POST /v1/check >"$dir/load.json"
counts 300 200 || die "HTTP: $(cat "$dir/load.json")"
# Calls of weir.v1.Limiter.Check: limit = 1, key = 2.
check=/weir.v1.Limiter/Check
load --grpc "$grpc" --rate max --requests 500 --keys 100 --order sequential --depth 16 --connections 5 --json \
    --body '0a03617069121467727063{key}' "$check" >"$dir/load.json"
counts 300 200 || die "gRPC: $(cat "$dir/load.json")"
load --grpc "$grpc" --rate 2000 --duration 400ms --depth 100 --connections 2 --json >"$dir/load.json"
{ [ "$(value errors)" = 0 ] && [ "$(value allowed)" -gt 100 ]; } || die "gRPC, open loop: $(cat "$dir/load.json")"
load --grpc "$grpc" --rate max --requests 10 --connections 1 --json --body 0a027879120178 "$check" >"$dir/load.json"
[ "$(value errors)" = 10 ] || die "gRPC, a limit that there is not: $(cat "$dir/load.json")"
load --http "$http" --rate 500 --duration 400ms --warmup 100ms --order zipf --arrivals poisson --json >"$dir/load.json"
{ [ "$(value errors)" = 0 ] && [ "$(value replies)" -gt 100 ]; } || die "/v1/auth: $(cat "$dir/load.json")"
load --resp "$resp" --rate 500 --duration 200ms --spin >"$dir/table"
for word in replies allowed denied errors lost unsent within p50 p90 p99 p99.9 max; do
    grep -Eq "^ *$word +[0-9]" "$dir/table" || die "no $word in the table"
done

# Progress is shown on a terminal only, and is gone at the end.
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1 </dev/null; then # where there are terminals
    script -qec "'$weir' bench load --resp '$resp' --rate 500 --duration 600ms >'$dir/table'" /dev/null >"$dir/terminal" </dev/null
    grep -Eq '[#.]+ +[0-9]+ %  [0-9]+ replies, [0-9]+/s' "$dir/terminal" || die "no bar: $(cat "$dir/terminal")"
    grep -q "$(printf '\r\033\\[K')" "$dir/terminal" || die "the bar stays: $(cat -v "$dir/terminal")"
    grep -Eq '^replies +[1-9]' "$dir/table" || die "no table beside the bar"
    script -qec "'$weir' bench load --resp '$resp' --rate max --requests 30000 >'$dir/table'" /dev/null >/dev/null </dev/null
    grep -Eq '^replies +30000 ' "$dir/table" || die "not every request was counted beside the bar"
fi
load --resp "$resp" --rate 500 --duration 300ms >"$dir/table" 2>"$dir/error"
[ ! -s "$dir/error" ] || die "something on standard error where there is no terminal: $(cat "$dir/error")"

refused() {
    rc=0
    load "$@" >/dev/null 2>"$dir/error" || rc=$?
    [ "$rc" = 2 ] || die "weir bench load $*: exit $rc instead of 2"
    grep -q '^weir-bench load: .*\(expected\|unknown\)' "$dir/error" || die "weir bench load $*: $(cat "$dir/error")"
}
refused
refused --resp "$resp" --http "$http"
refused --resp nowhere
refused --resp "$resp" --rate 0
refused --resp "$resp" --depth 5000
refused --resp "$resp" --order random
refused --resp "$resp" --arrivals never
refused --resp "$resp" --duration 10
refused --resp "$resp" --duration 0s
refused --http "$http" GET
refused --resp "$resp" --fast
refused --resp "$resp" --grpc "$grpc"
refused --grpc "https://$grpc"
refused --grpc "$grpc" "$check"
refused --grpc "$grpc" --body 0a1 "$check"
refused --grpc "$grpc" --body xx "$check"
refused --grpc "$grpc" --depth 4096
rc=0
load --grpc "$resp" 2>"$dir/error" || rc=$?
[ "$rc" = 1 ] || die "gRPC to a server of RESP: exit $rc instead of 1"
rc=0
load --resp unix:/nowhere/at/all 2>"$dir/error" || rc=$?
[ "$rc" = 1 ] || die "nobody there: exit $rc instead of 1"

# The server goes away in the middle: exit 1, and the counts until then.
denied() { rc=0; "$weir" check --peek --resp "$resp" api awaykey:000000000000 >/dev/null 2>&1 </dev/null || rc=$?; [ "$rc" = 4 ]; }
load --resp "$resp" --rate 300 --keys 1 --duration 10min --connections 4 --threads 2 --json WEIR.CHECK api 'away{key}' \
    >"$dir/load.json" 2>"$dir/error" &
loading=$!
until_true denied
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
pid=
rc=0
wait "$loading" || rc=$?
[ "$rc" = 1 ] || die "the server went away: exit $rc instead of 1"
grep -q "^weir-bench load: $resp: .*; the counts are those until then" "$dir/error" || die "what is told: $(cat "$dir/error")"
{ [ "$(value allowed)" = 3 ] && [ "$(value replies)" -gt 3 ]; } || die "the counts are lost: $(cat "$dir/load.json")"
rc=0
load --resp "$resp" --json >"$dir/load.json" 2>"$dir/error" || rc=$?
{ [ "$rc" = 1 ] && [ ! -s "$dir/load.json" ]; } || die "counts of a server that was never there: $(cat "$dir/load.json")"

# weir-bench is beside the program, through links too, or in the PATH; otherwise it is said where to get it.
mkdir "$dir/alone" "$dir/links"
cp "$weir" "$dir/alone/weir"
ln -s "$weir" "$dir/links/weir"
from() { rc=0; timeout 30 env PATH="$1" "$2" bench load --resp 127.0.0.1:1 --requests 1 >"$dir/out" 2>"$dir/err" </dev/null || rc=$?; }
from "$PATH" "$dir/links/weir"
grep -q '^weir-bench load: 127.0.0.1:1: ' "$dir/err" || die "through a link: exit $rc"
from "$WEIR_BUILD_DIR:$PATH" "$dir/alone/weir"
grep -q '^weir-bench load: 127.0.0.1:1: ' "$dir/err" || die "in the PATH: exit $rc"
from /nowhere "$dir/alone/weir"
{ [ "$rc" = 1 ] && grep -q '^weir bench load: found no program weir-bench, expected one beside weir or in the PATH; ' "$dir/err"; } ||
    die "without weir-bench: exit $rc"
: >"$dir/alone/weir-bench"
from "$WEIR_BUILD_DIR:$PATH" "$dir/alone/weir"
{ [ "$rc" = 1 ] && grep -q '^weir bench load: cannot run weir-bench: Permission denied' "$dir/err"; } || die "one that cannot be run: exit $rc"
"$weir" help bench load </dev/null | grep -q '^usage: weir-bench load ' || die "weir help bench load"
echo "ok"
