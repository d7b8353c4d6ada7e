#!/bin/sh
# test-labels: nosan
# docs/images/*.svg are what docs/images/draw.c draws with this library.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror -I"$WEIR_SOURCE_DIR/include" -o "$dir/draw" \
    "$WEIR_SOURCE_DIR/docs/images/draw.c" "$WEIR_BUILD_DIR/libweir.a" -pthread
mkdir "$dir/svg"
"$dir/draw" "$dir/svg"
for f in "$WEIR_SOURCE_DIR"/docs/images/*.svg; do
    cmp "$f" "$dir/svg/${f##*/}" || {
        echo "draw them again: docs/ALGORITHMS.md says how" >&2
        exit 1
    }
done
