#!/bin/sh
# test-labels: nosan
# WEIR_LIBRARY_ONLY builds libweir from the engine's sources with a C compiler, CMake and a libc's headers, installs it, and
# refuses WEIR_XXH3 by name. A warning in weir is an error only where WEIR_WERROR asks for it, never in another project.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
jobs=${JOBS:-$(nproc)}
log() { "$@" >"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }; }
die() { echo "$1" >&2; exit 1; }

# The sources of libweir, with a warning in one of them.
mkdir -p "$dir/weir/src"
cd "$WEIR_SOURCE_DIR"
cp -R CMakeLists.txt cmake include examples tests "$dir/weir"
cp -R src/base src/algo src/table src/limit "$dir/weir/src"
echo 'static int never_used;' >>"$dir/weir/src/base/error.c"

# A compiler that sees a libc's headers, and none of the libraries that the program needs.
mkdir "$dir/include" "$dir/bin"
for header in /usr/include/*; do
    case ${header##*/} in
    xxh* | yaml* | uv* | jansson* | cmocka* | llhttp* | lua* | node*) ;;
    *) ln -s "$header" "$dir/include" ;;
    esac
done
real=${CC:-cc}
triplet=$("$real" -print-multiarch 2>/dev/null || true)
cat >"$dir/bin/plain-cc" <<CC
#!/bin/sh
exec $real -nostdinc -isystem "$("$real" -print-file-name=include)" -isystem "$dir/include" \
    -isystem "$dir/include/$triplet" "\$@"
CC
chmod +x "$dir/bin/plain-cc"

echo "== alone"
log cmake -S "$dir/weir" -B "$dir/build" -DCMAKE_C_COMPILER="$dir/bin/plain-cc" -DWEIR_LIBRARY_ONLY=ON
! grep -Eiq '^WEIR_(YAML|UV|JANSSON|LLHTTP|CMOCKA)' "$dir/build/CMakeCache.txt" || die "it looked for libraries of the program"
log cmake --build "$dir/build" -j "$jobs"
grep -q 'never_used' "$dir/log" || die "no warning was shown"
"$dir/build/examples/embed" >/dev/null || die "the example failed"

echo "== with warnings as errors"
log cmake "$dir/build" -DWEIR_WERROR=ON
! cmake --build "$dir/build" --target weir_objects >"$dir/log" 2>&1 || die "WEIR_WERROR=ON let a warning pass"
log cmake "$dir/build" -DWEIR_WERROR=OFF
log cmake --build "$dir/build" -j "$jobs"

echo "== installed"
log cmake --install "$dir/build" --prefix "$dir/prefix"
[ ! -e "$dir/prefix/bin" ] || die "a program was installed"
[ "$(cd "$dir/prefix/include" && echo *)" = weir.h ] || die "headers of what is not there were installed"
[ -n "$(find "$dir/prefix" -name weir.pc)" ] || die "weir.pc was not installed"

cat >"$dir/app.c" <<'C'
#include <string.h>
#include <weir.h>

int main(void)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir_error error;
    struct weir *w;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 1;
    o.period_ns = WEIR_HOUR;
    o.hash = WEIR_XXH3;
    if (weir_open(&w, &o, &error) != WITH_XXH3) {
        return 1;
    }
    if (WITH_XXH3 != 0) {
        return strstr(error.text, "built without xxhash.h") == NULL;
    }
    weir_close(w);
    return 0;
}
C
# app name lines...: a project of its own, whose CMakeLists.txt has these lines; runs its program.
app() {
    mkdir "$dir/$1"
    cp "$dir/app.c" "$dir/$1"
    {
        printf 'cmake_minimum_required(VERSION 3.18)\nproject(app C)\n'
        cat
        printf 'add_executable(app app.c)\ntarget_link_libraries(app weir::weir)\n'
        printf 'target_compile_definitions(app PRIVATE WITH_XXH3=%s)\n' "$2"
    } >"$dir/$1/CMakeLists.txt"
    log cmake -S "$dir/$1" -B "$dir/$1/build" -DCMAKE_PREFIX_PATH="$dir/prefix"
    log cmake --build "$dir/$1/build" -j "$jobs"
    "$dir/$1/build/app" || die "$1: weir_open() with WEIR_XXH3 did not say what was expected"
}
app found WEIR_ENOTSUP <<'CMAKE'
find_package(weir REQUIRED)
CMAKE

echo "== in another project"
xxh3=WEIR_ENOTSUP
[ ! -e /usr/include/xxhash.h ] || xxh3=0
app inside $xxh3 <<CMAKE
add_compile_options(-Wall -Wextra -Wpedantic -Wcast-qual -Werror)
set(WEIR_LIBRARY_ONLY ON)
set(WEIR_WERROR ON)
add_subdirectory("$dir/weir" weir)
CMAKE
grep -q 'never_used' "$dir/log" || die "the project's own flags did not reach weir"

# The other project has its own rules for warnings: its -Werror stays, and none of weir's flags reaches it.
printf 'int main(void) { unsigned char c = (unsigned char)0; int i = c; c = i; return c; }\n' >"$dir/inside/app.c"
log cmake --build "$dir/inside/build"
printf 'static int never; int main(void) { return 0; }\n' >"$dir/inside/app.c"
! cmake --build "$dir/inside/build" >"$dir/log" 2>&1 || die "the -Werror of the other project was lost"
