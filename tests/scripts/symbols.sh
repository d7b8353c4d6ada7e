#!/bin/sh
# test-labels: nosan
# The libraries show the names of their public header and nothing else, the shared and the static one the same; the
# shared ones have their soname and are fully relocated at start. Asserts are in Debug and Checked builds, and in no other.
set -eu
export LC_ALL=C
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

shows() { # shows library prefix header soname
    so=$WEIR_BUILD_DIR/$1.so
    nm -D --defined-only "$so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$dir/so"
    nm -g --defined-only "$WEIR_BUILD_DIR/$1.a" | awk 'NF == 3 { print $3 }' | sort >"$dir/a"
    [ -s "$dir/so" ] || { echo "$1.so exports nothing" >&2; exit 1; }
    for lib in so a; do
        if grep -Ev "^($2)" "$dir/$lib"; then
            echo "$1.$lib shows the names above" >&2
            exit 1
        fi
    done
    diff "$dir/so" "$dir/a" || { echo "$1.so (<) and $1.a (>) differ" >&2; exit 1; }
    while read -r name; do
        grep -qw "$name" "$WEIR_SOURCE_DIR/include/$3" || { echo "$1 shows $name, which $3 does not declare" >&2; exit 1; }
    done <"$dir/so"
    sed -n 's/^WEIR_API .*[ *]\(weir_[a-z0-9_]*\)(.*/\1/p' "$WEIR_SOURCE_DIR/include/$3" | sort -u >"$dir/declared"
    comm -23 "$dir/declared" "$dir/so" >"$dir/lacks"
    [ ! -s "$dir/lacks" ] || { echo "$3 declares what $1.so lacks:" >&2; cat "$dir/lacks" >&2; exit 1; }

    readelf -d "$so" >"$dir/dynamic"
    grep -q "SONAME.*\[$4\]" "$dir/dynamic" || { echo "$1.so: wrong soname" >&2; exit 1; }
    grep -Eq 'BIND_NOW|FLAGS_1.*NOW' "$dir/dynamic" || { echo "$1.so: not linked with -z now" >&2; exit 1; }
    grep -Eq 'FLAGS_1.*NODELETE' "$dir/dynamic" || { echo "$1.so: may be unloaded under its threads" >&2; exit 1; }
    echo "$1: $(wc -l <"$dir/so") names"
}

shows libweir 'weir_' weir.h 'libweir\.so\.2'
shows libweir-rules 'weir_rules_' weir_rules.h 'libweir-rules\.so\.2'
shows libweir-redis 'weir_fleet_|weir_ring_' weir_fleet.h 'libweir-redis\.so\.2'

type=$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$WEIR_BUILD_DIR/CMakeCache.txt")
case $type in Debug | Checked) wanted=1 ;; *) wanted=0 ;; esac
for file in libweir.so libweir-rules.so libweir-redis.so weir; do
    found=$(nm -D --undefined-only "$WEIR_BUILD_DIR/$file" | grep -c __assert_fail || true)
    [ "$found" = "$wanted" ] || { echo "$file of a build of type '$type' calls assert: $found, expected $wanted" >&2; exit 1; }
done
