#!/bin/sh
# `weir-bench rules --json` prints one object with every figure as a number and the target with its verdict; the table has
# a row for each; scripts/bench-table makes Markdown of it; bad arguments are refused. Times are not judged here: the run
# is a smoke test.
set -eu
export LC_ALL=C
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bench=$WEIR_BUILD_DIR/weir-bench
die() { echo "$*" >&2; exit 1; }

"$bench" rules --quick --json >"$dir/result.json"
figures='match10_ns match1000_ns ask10_ns ask1000_ns read_ns normalise_ns normalise_odd_ns'
for f in $figures; do
    awk -v key="\"$f\":" '$1 == key && $2 ~ /^[0-9]+[.][0-9]+,$/ && $2 + 0 > 0 { found++ } END { exit found != 1 }' \
        "$dir/result.json" || die "$f is not once a number above 0 in the object"
done
grep -Eq '^    "match1000_ns/match10_ns": \{"value": [0-9.]+, "at_most": 2, "met": (true|false)\}' "$dir/result.json" ||
    die "no target"
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$dir/result.json" || die "not JSON"
fi

"$bench" rules --quick --rounds 6 >"$dir/table"
for f in $figures; do
    grep -Eq "^$f +[0-9.]+ +[0-9.]+ +[0-9.]+" "$dir/table" || die "$f has no row"
done
grep -q '6 rounds' "$dir/table" || die "--rounds was not heard"

"$WEIR_SOURCE_DIR/scripts/bench-table" "$dir/result.json" >"$dir/table.md"
for f in $figures; do
    grep -q "^| \`$f\` | [0-9]" "$dir/table.md" || die "$f is not in the Markdown table"
done

for bad in 'rules --rounds 4' 'rules --rounds 100' 'rules --rounds 5x' 'rules --rounds' 'rules --fast' 'rules more'; do
    rc=0
    # shellcheck disable=SC2086  # words on purpose
    "$bench" $bad >/dev/null 2>"$dir/error" || rc=$?
    [ "$rc" = 2 ] || die "weir-bench $bad: exit $rc instead of 2"
    grep -q '^weir-bench rules: ' "$dir/error" || die "weir-bench $bad: no word of what is wrong"
done
echo "$(echo "$figures" | wc -w) figures"
