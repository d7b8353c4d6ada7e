#!/bin/sh
# test-labels: nosan
# Each public header, included alone, is clean as C99, C11 and C++11, with strict warnings.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
strict="-pedantic -Wall -Wextra -Wundef -Werror -fsyntax-only -I$WEIR_SOURCE_DIR/include"
for header in "$WEIR_SOURCE_DIR"/include/*.h; do
    name=${header##*/}
    printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$name" "$name" >"$dir/a.c"
    cp "$dir/a.c" "$dir/a.cc"
    for std in c99 c11; do
        # shellcheck disable=SC2086
        "${CC:-cc}" -std=$std $strict -Wshadow -Wstrict-prototypes "$dir/a.c"
    done
    for std in c++11 c++20; do
        # shellcheck disable=SC2086
        "${CXX:-g++}" -std=$std $strict "$dir/a.cc"
    done
    echo "$name: C99, C11, C++11, C++20"
done
