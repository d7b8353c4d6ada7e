#!/bin/sh
# test-labels: nosan
# An installed weir is usable: by pkg-config, shared and static, and by find_package(weir).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
prefix=$dir/prefix

cmake --install "$WEIR_BUILD_DIR" --prefix "$prefix" >"$dir/log" || { cat "$dir/log" >&2; exit 1; }
pc=$(find "$prefix" -name weir.pc)
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"

cat >"$dir/consumer.c" <<'C'
#include <stdio.h>
#include <weir.h>
int main(void)
{
    return printf("weir %s\n", weir_version()) < 0;
}
C
version=$(pkg-config --modversion weir)
runs() { # runs program how-it-was-linked
    said=$("$1")
    [ "$said" = "weir $version" ] || { echo "$2: said '$said', pkg-config says $version" >&2; exit 1; }
    echo "$2: $said"
}

# shellcheck disable=SC2046  # pkg-config's answer is a list of words
"${CC:-cc}" -o "$dir/shared" "$dir/consumer.c" $(pkg-config --cflags --libs weir)
runs "$dir/shared" "pkg-config, shared"
rm -rf "$dir/only" && mkdir "$dir/only" && cp "$lib/libweir.a" "$dir/only"
# shellcheck disable=SC2046
"${CC:-cc}" -o "$dir/static" "$dir/consumer.c" -L"$dir/only" $(pkg-config --cflags weir) -lweir -pthread
LD_LIBRARY_PATH='' runs "$dir/static" "static archive"

mkdir "$dir/app"
cp "$dir/consumer.c" "$dir/app"
cat >"$dir/app/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(weir 0.1 REQUIRED)
add_executable(with_shared consumer.c)
target_link_libraries(with_shared weir::weir)
add_executable(with_static consumer.c)
target_link_libraries(with_static weir::weir_static)
CMAKE
cmake -G Ninja -S "$dir/app" -B "$dir/app/build" -DCMAKE_PREFIX_PATH="$prefix" >"$dir/log" 2>&1 &&
    cmake --build "$dir/app/build" >>"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
runs "$dir/app/build/with_shared" "CMake, weir::weir"
LD_LIBRARY_PATH='' runs "$dir/app/build/with_static" "CMake, weir::weir_static"
if [ -x "$WEIR_BUILD_DIR/weir" ]; then
    [ -x "$prefix/bin/weir" ] || { echo "the program was not installed" >&2; exit 1; }
fi
