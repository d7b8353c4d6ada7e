#!/bin/sh
# bench/server: starts its own servers, prints a table and one object that scripts/bench-table reads, leaves nothing behind.
# Times are not judged here: the run is a smoke test, and of the rivals' parts only what is installed.
# test-timeout: 180
# test-labels: nosan
set -eu
export LC_ALL=C
for tool in python3 taskset; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
[ "$(nproc)" -ge 2 ] || { echo "one processor" >&2; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export TMPDIR="$dir"
die() { echo "$*" >&2; cat "$dir/table" "$dir/err" >&2; exit 1; }
bench() { timeout 150 "$WEIR_SOURCE_DIR/bench/server" --weir "$WEIR_BUILD_DIR/weir" "$@" </dev/null >"$dir/table" 2>"$dir/err"; }

bench --quick --part memory --out "$dir/result.json" || die "bench/server: exit $?"
grep -Eq '^resident_mb +[0-9.]+ .*x 1 \(<= 40: (met|NOT MET)\)$' "$dir/table" || die "no resident memory in the table"
python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); o["targets"]["resident_mb"]["met"]; o["machine"]["kernel"]' \
    "$dir/result.json" || die "not the object that was expected"
"$WEIR_SOURCE_DIR/scripts/bench-table" "$dir/result.json" >"$dir/table.md"
grep -q '^| .resident_mb. | [0-9.]* |' "$dir/table.md" || die "not in the Markdown table"
[ -z "$(find "$dir" -name 'weir-bench-*')" ] || die "files are left behind"

rc=0
bench --weir /nowhere/weir --part memory || rc=$?
[ "$rc" = 1 ] || die "without a program: exit $rc instead of 1"
grep -q 'is missing' "$dir/err" || die "no word of what is missing"
echo ok
