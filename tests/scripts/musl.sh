#!/bin/sh
# test-labels: nosan
# test-timeout: 900
# libweir and its examples with musl: they build without a warning and run, and a file is shared with a process of glibc.
# `make test-long` runs the library's tests there too.
set -eu
command -v musl-gcc >/dev/null || { echo "no musl-gcc here"; exit 77; }
jobs=${JOBS:-$(nproc)}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$WEIR_SOURCE_DIR"
build=build/musl
target=all
labels='^example$'
if [ -n "${WEIR_LONG:-}" ]; then
    target=test-programs
    labels=.
fi

log() { "$@" >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }; }
log cmake --preset musl
log cmake --build $build -j "$jobs" --target all $target
ctest --test-dir $build -j "$jobs" -L "$labels" --output-on-failure --no-tests=error

# Two processes share one file, one with each libc. WEIR_XXH3 is not in the library of musl: it has no xxhash.h.
. tests/support/scripts/share_file.sh
take=tests/machines/take.c
"${CC:-cc}" -O2 -Iinclude -o "$dir/take" $take -L"$WEIR_BUILD_DIR" -lweir -Wl,-rpath,"$WEIR_BUILD_DIR"
musl-gcc -O2 -Iinclude -o "$dir/take-musl" $take -L$build -lweir -Wl,-rpath,"$PWD/$build"
shares "$dir/take" "$dir/take-musl" "token_bucket 0" "sliding_log 0"
