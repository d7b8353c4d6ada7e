#!/bin/sh
# test-labels: nosan
# The libraries show weir_* and nothing else, both the same names, each of them declared in a public header; the
# shared one has its soname and is fully relocated at start.
set -eu
export LC_ALL=C
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
so=$WEIR_BUILD_DIR/libweir.so
a=$WEIR_BUILD_DIR/libweir.a

nm -D --defined-only "$so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$dir/so"
nm -g --defined-only "$a" | awk 'NF == 3 { print $3 }' | sort >"$dir/a"
[ -s "$dir/so" ] || { echo "libweir.so exports nothing" >&2; exit 1; }

for lib in so a; do
    if grep -v '^weir_' "$dir/$lib"; then
        echo "libweir.$lib shows the names above" >&2
        exit 1
    fi
done
diff "$dir/so" "$dir/a" || { echo "libweir.so (<) and libweir.a (>) differ" >&2; exit 1; }

cat "$WEIR_SOURCE_DIR"/include/*.h >"$dir/headers"
while read -r name; do
    grep -qw "$name" "$dir/headers" || { echo "$name is exported but declared in no public header" >&2; exit 1; }
done <"$dir/so"

readelf -d "$so" >"$dir/dynamic"
grep -q 'SONAME.*\[libweir\.so\.0\]' "$dir/dynamic" || { echo "wrong soname" >&2; exit 1; }
grep -Eq 'BIND_NOW|FLAGS_1.*NOW' "$dir/dynamic" || { echo "not linked with -z now" >&2; exit 1; }
echo "$(wc -l <"$dir/so") names"
