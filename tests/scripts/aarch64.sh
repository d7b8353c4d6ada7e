#!/bin/sh
# test-labels: aarch64 nosan
# test-timeout: 3600
# libweir on 64-bit Arm, under qemu-user, with both of its 16-byte swaps: a Cortex-A53 has only LDAXP and STLXP, a
# Neoverse N1 has CASPAL. A limiter's file is the same bytes there and here. `make test` runs a few of its tests, `make test-long` all.
set -eu
for tool in aarch64-linux-gnu-gcc qemu-aarch64; do
    command -v "$tool" >/dev/null || { echo "no $tool here"; exit 77; }
done
jobs=${JOBS:-$(nproc)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$WEIR_SOURCE_DIR"
build=build/aarch64

short="unit.algo.token_bucket unit.algo.sliding_window unit.algo.sliding_log unit.base.pair unit.base.hash unit.table.table
    unit.table.region_file unit.limit.ask unit.limit.limiter unit.limit.verbs oracle.vectors concurrency.exact_totals"
names=.
targets="all test-programs"
if [ -z "${WEIR_LONG:-}" ]; then
    # shellcheck disable=SC2086  # one word per test
    targets=$(printf 'test_%s\n' $short | tr . _)
    # shellcheck disable=SC2086
    names="^($(echo $short | sed 's/\./[.]/g; s/ /|/g'))\$"
fi

log() { "$@" >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }; }
log cmake --preset aarch64
# shellcheck disable=SC2086
log cmake --build $build -j "$jobs" --target libweir_shared $targets
for cpu in cortex-a53 neoverse-n1; do
    echo "== $cpu"
    QEMU_CPU=$cpu ctest --test-dir $build -j "$jobs" -R "$names" --output-on-failure --no-tests=error
done

# Two processes share one file, one on each machine.
. tests/support/scripts/share_file.sh
take=tests/machines/take.c
"${CC:-cc}" -O2 -Iinclude -o "$dir/take" $take -L"$WEIR_BUILD_DIR" -lweir -Wl,-rpath,"$WEIR_BUILD_DIR"
aarch64-linux-gnu-gcc -O2 -Iinclude -o "$dir/take-arm" $take -L$build -lweir -Wl,-rpath,"$PWD/$build"
for cpu in cortex-a53 neoverse-n1; do
    echo "== one file, here and on $cpu"
    shares "$dir/take" "qemu-aarch64 -cpu $cpu -L /usr/aarch64-linux-gnu $dir/take-arm" \
        "token_bucket 0" "sliding_log 0" "token_bucket 1"
done
