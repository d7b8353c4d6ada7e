#!/bin/sh
# weir-bench fleet and bench/fleet: the modes decide through a real store, redis-benchmark makes the same call, a table and
# one object come of it, nothing is left behind. Times are not judged here.
# test-timeout: 180
# test-labels: nosan
set -eu
export LC_ALL=C
for tool in python3 taskset redis-server redis-benchmark redis-cli; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export TMPDIR="$dir"
bench="$WEIR_BUILD_DIR/weir-bench"
die() { echo "$*" >&2; cat "$dir/out" "$dir/err" >&2; exit 1; }

timeout 120 "$WEIR_SOURCE_DIR/bench/fleet" --bench "$bench" --quick --out "$dir/result.json" </dev/null >"$dir/out" 2>"$dir/err" ||
    die "bench/fleet: exit $?"
python3 - "$dir/result.json" <<'END' || die "not the object that was expected"
import json, sys
o = json.load(open(sys.argv[1]))
assert len(o["targets"]) == 20, o["targets"]
assert o["price_token_bucket_allow"] > 0 and o["price_lease"] > 0, o
assert 999 < o["exact_redis_calls"] < 1100, o
assert o["leased_redis_calls"] < 50, o
assert o["script_16_per_s"] > 0 and o["machine"]["redis"], o
END
"$WEIR_SOURCE_DIR/scripts/bench-table" "$dir/result.json" >"$dir/table.md"
grep -q '^| .exact_16_per_s. | [0-9.]* |' "$dir/table.md" || die "not in the Markdown table"
[ -z "$(find "$dir" -name 'weir-bench-*')" ] || die "files are left behind"

refused() { # exit code and words that are expected; arguments
    code=$1 words=$2 rc=0
    shift 2
    timeout 20 "$bench" fleet "$@" </dev/null >"$dir/out" 2>"$dir/err" || rc=$?
    [ "$rc" = "$code" ] || die "$*: exit $rc instead of $code"
    grep -q -e "$words" "$dir/err" || die "$*: no word of '$words'"
}
refused 2 "expected exact, leased or synced" --consistency exactly
refused 1 "expected" --store redis://:x
refused 1 "does not answer" --store redis:///nowhere/redis
refused 2 "expected a whole number" --in-flight 0
refused 2 "expected a count per period" --rate fast
echo ok
