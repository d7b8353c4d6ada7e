#!/bin/sh
# `weir-bench core --json` prints one object with every figure of docs/explanation/benchmarks.md as a number, each target
# with its verdict, and no key lost; the table has a row for each; scripts/bench-table makes Markdown of it; bad arguments
# are refused. Times are not judged here: the run is a smoke test.
set -eu
export LC_ALL=C
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bench=$WEIR_BUILD_DIR/weir-bench
die() { echo "$*" >&2; exit 1; }

"$bench" core --quick --keys 20000 --json >"$dir/result.json"

figures='clock_ns clock_read_ns hash_cas_ns line_miss_ns hot_ns hot_deny_ns hot_clock_ns random10m_ns random10m_2t_ns batch10m_ns
batch10m_2t_ns zipf10m_ns new_key_ns full_flood_ns mutex_map_ns mutex_map_2t_ns striped_map_2t_ns threads2_speedup hot2_ns
bytes_per_key lost_keys algo.token_bucket.hot_ns algo.leaky_bucket.hot_ns algo.fixed_window.hot_ns
algo.sliding_window.hot_ns algo.sliding_log.hot_ns algo.leaky_bucket.random10m_ns algo.fixed_window.random10m_ns
algo.sliding_window.random10m_ns'
for f in $figures; do
    awk -v key="\"$f\":" '$1 == key && $2 ~ /^[0-9]+([.][0-9]+)?,$/ { found++ } END { exit found != 1 }' "$dir/result.json" ||
        die "$f is not once a number in the object"
    [ "$f" = lost_keys ] || awk -v key="\"$f\":" '$1 == key && $2 + 0 > 0 { ok = 1 } END { exit !ok }' "$dir/result.json" ||
        die "$f is zero"
    grep -q "\`$f\`" "$WEIR_SOURCE_DIR/docs/explanation/benchmarks.md" ||
        die "docs/explanation/benchmarks.md does not explain $f"
done
grep -q '^  "lost_keys": 0[.]000,$' "$dir/result.json" || die "keys were lost"

for target in clock_read_ns/clock_ns hot_ns/hash_cas_ns random10m_ns/line_miss_ns batch10m_ns/random10m_ns full_flood_ns/line_miss_ns \
    mutex_map_2t_ns/random10m_2t_ns striped_map_2t_ns/batch10m_2t_ns threads2_speedup bytes_per_key lost_keys \
    algo.leaky_bucket.hot_ns/algo.token_bucket.hot_ns algo.fixed_window.hot_ns/algo.token_bucket.hot_ns \
    algo.sliding_window.hot_ns/algo.token_bucket.hot_ns algo.leaky_bucket.random10m_ns/random10m_ns \
    algo.fixed_window.random10m_ns/random10m_ns algo.sliding_window.random10m_ns/random10m_ns; do
    grep -Eq "^    \"$target\": \{\"value\": [0-9.]+, \"(at_most|at_least|exactly)\": [0-9.]+, \"met\": (true|false)\}" \
        "$dir/result.json" || die "no target $target"
done
if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$dir/result.json" || die "not JSON"
fi

"$WEIR_SOURCE_DIR/scripts/bench-table" "$dir/result.json" >"$dir/table.md"
for f in $figures; do
    grep -q "^| \`$f\` | [0-9]" "$dir/table.md" || die "$f is not in the Markdown table"
done
printf 'before\n<!-- bench-table -->\nold\n<!-- /bench-table -->\nafter\n' >"$dir/page.md"
"$WEIR_SOURCE_DIR/scripts/bench-table" "$dir/result.json" "$dir/page.md"
{ grep -q hot_ns "$dir/page.md" && grep -q before "$dir/page.md" && grep -q after "$dir/page.md"; } || die "page not filled in"
if grep -q old "$dir/page.md"; then die "the old table is still there"; fi

for bad in '' 'cores' 'core --rounds 4' 'core --rounds' 'core --keys 1' 'core --keys 10x' 'core --fast'; do
    rc=0
    # shellcheck disable=SC2086  # words on purpose
    "$bench" $bad >/dev/null 2>"$dir/error" || rc=$?
    [ "$rc" = 2 ] || die "weir-bench $bad: exit $rc instead of 2"
    grep -q '^weir-bench' "$dir/error" || die "weir-bench $bad: no word of what is wrong"
done
echo "$(echo "$figures" | wc -w) figures"
