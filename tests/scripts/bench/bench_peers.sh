#!/bin/sh
# bench/peers: measures weir next to the peers that are installed, says which ones it leaves out, prints a table with ratios
# for each protocol, keeps every sample, and leaves nothing behind. Times are not judged here: the run is a smoke test.
# test-timeout: 180
# test-labels: nosan
set -eu
export LC_ALL=C
for tool in python3 taskset redis-server redis-cli haproxy nginx; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
[ "$(nproc)" -ge 2 ] || { echo "one processor" >&2; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export TMPDIR="$dir"
die() { echo "$*" >&2; cat "$dir/table" "$dir/err" >&2; exit 1; }
bench() { timeout 150 "$WEIR_SOURCE_DIR/bench/peers" --weir "$WEIR_BUILD_DIR/weir" "$@" </dev/null >"$dir/table" 2>"$dir/err"; }

bench --quick --rounds 2 --peer redis-script --peer redis-cell --peer nginx --peer haproxy --output "$dir/result.txt" ||
    die "bench/peers: exit $?"
grep -q '^left out: redis-cell (no --redis-cell)$' "$dir/table" || die "no word of the peer that is not there"
grep -q '^versions: weir [0-9].*nginx [0-9].*haproxy [0-9]' "$dir/table" || die "no versions"
number=' *[0-9.]+'
for row in 'weir' 'weir, /v1/check'; do
    grep -Eq "^$row$number$number$number +1\.00($number){4}$" "$dir/table" || die "$row is not 1.00 x weir"
done
for row in 'Redis, script' 'weir, /v1/auth' 'nginx, limit_req' 'HAProxy, stick table'; do
    grep -Eq "^$row($number){8}$" "$dir/table" || die "no row for $row"
done
grep -Eq "^\| Redis, script \| RESP \|( [0-9.]+ \([0-9.]+ to [0-9.]+\) \|){3}  \| [0-9]+ \|$" "$dir/table" || die "no ratios of Redis"
for samples in "resp 64 'weir' cpu_us" "http 1 'HAProxy, stick table' p99_us" "grpc 100 'weir' per_s"; do
    grep -Eq "^$samples [0-9.]+ [0-9.]+$" "$dir/result.txt" || die "not two samples of $samples"
done
[ -z "$(find "$dir" -name 'weir-bench-*')" ] || die "files are left behind"

rc=0
bench --quick --throttlecrab /nowhere/at/all || rc=$?
[ "$rc" = 1 ] || die "a program that is not there: exit $rc instead of 1"
grep -q '/nowhere/at/all is missing' "$dir/err" || die "no word of what is missing"
echo ok
