#!/bin/sh
# test-labels: nosan
# The first C block of README.md compiles without a warning and runs.
set -eu
readme=$WEIR_SOURCE_DIR/README.md
[ -f "$readme" ] || { echo "no README.md yet"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
awk '/^```c$/ && !done { inside = 1; next } /^```/ { if (inside) done = 1; inside = 0 } inside' "$readme" >"$dir/readme.c"
[ -s "$dir/readme.c" ] || { echo "README.md has no C block" >&2; exit 1; }
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror -I"$WEIR_SOURCE_DIR/include" -o "$dir/readme" "$dir/readme.c" \
    "$WEIR_BUILD_DIR/libweir.a" -pthread
cd "$dir"
./readme
