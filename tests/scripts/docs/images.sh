#!/bin/sh
# docs/images/*.svg are what the commands in docs/explanation/algorithms.md draw with this program, byte for byte.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() { echo "$*" >&2; exit 1; }

mkdir -p "$dir/docs/images" "$dir/build"
cp "$WEIR_SOURCE_DIR"/docs/images/*.trace "$dir/docs/images/"
ln -s "$WEIR_BUILD_DIR/weir" "$dir/build/weir"
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$WEIR_SOURCE_DIR/docs/explanation/algorithms.md" >"$dir/draw.sh"
grep -q 'weir simulate' "$dir/draw.sh" || die "docs/explanation/algorithms.md does not say how its pictures are made"
(cd "$dir" && sh -eu draw.sh >/dev/null)

for f in "$WEIR_SOURCE_DIR"/docs/images/*.svg "$dir"/docs/images/*.svg; do
    name=${f##*/}
    cmp "$WEIR_SOURCE_DIR/docs/images/$name" "$dir/docs/images/$name" ||
        die "draw them again: docs/explanation/algorithms.md says how"
    grep -q "images/$name\"" "$WEIR_SOURCE_DIR/docs/explanation/algorithms.md" ||
        die "docs/explanation/algorithms.md does not show $name"
done
