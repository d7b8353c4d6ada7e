#!/bin/sh
# test-labels: nosan
# An installed weir is usable: both libraries, by pkg-config, shared and static, and by find_package(weir).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
prefix=$dir/prefix

cmake --install "$WEIR_BUILD_DIR" --prefix "$prefix" >"$dir/log" || { cat "$dir/log" >&2; exit 1; }
pc=$(find "$prefix" -name weir.pc)
lib=$(dirname "$(dirname "$pc")")
[ -n "$(find "$prefix" -name openapi.json)" ] || { echo "openapi.json is not installed" >&2; exit 1; }
export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"

cat >"$dir/consumer.c" <<'C'
#include <stdio.h>
#include <weir.h>
int main(void)
{
    return printf("weir %s\n", weir_version()) < 0;
}
C
cat >"$dir/rules.c" <<'C'
#include <stdio.h>
#include <weir_rules.h>
int main(void)
{
    static const char text[] = "limits: [{name: one, key: [user], rate: 1/h}]";
    struct weir_rules_attribute with[] = {WEIR_RULES_ATTRIBUTE("user", "alice")};
    struct weir_rules_question question = {.attributes = with, .attributes_count = 1};
    struct weir_rules_answer first, second;
    struct weir_rules *rules;
    struct weir_error error;
    if (weir_rules_open_text(&rules, "text", text, sizeof text - 1, NULL, &error) != 0 ||
        weir_rules_ask(rules, &question, &first, &error) != 0 ||
        weir_rules_ask(rules, &question, &second, &error) != 0) {
        return fprintf(stderr, "%s\n", error.text);
    }
    weir_rules_close(rules);
    if (first.answer.verdict != WEIR_ALLOW || second.answer.verdict != WEIR_DENY) {
        return fprintf(stderr, "wrong verdicts\n");
    }
    return printf("weir %s\n", weir_version()) < 0;
}
C
version=$(pkg-config --modversion weir)
[ "$(pkg-config --modversion weir-rules)" = "$version" ] || { echo "weir-rules.pc has another version" >&2; exit 1; }
runs() { # runs program how-it-was-linked
    said=$("$1") || { echo "$2: failed" >&2; exit 1; }
    [ "$said" = "weir $version" ] || { echo "$2: said '$said', pkg-config says $version" >&2; exit 1; }
    echo "$2: $said"
}

# shellcheck disable=SC2046  # pkg-config's answer is a list of words
"${CC:-cc}" -o "$dir/shared" "$dir/consumer.c" $(pkg-config --cflags --libs weir)
runs "$dir/shared" "pkg-config, shared"
# shellcheck disable=SC2046
"${CC:-cc}" -o "$dir/rules" "$dir/rules.c" $(pkg-config --cflags --libs weir-rules)
runs "$dir/rules" "pkg-config, shared, rules"

# A program that names only the rules, by a runtime path of its own.
cp "$WEIR_SOURCE_DIR/examples/rules.c" "$dir/example.c"
# shellcheck disable=SC2046
"${CC:-cc}" -o "$dir/example" "$dir/example.c" $(pkg-config --cflags --libs weir-rules) -Wl,--as-needed,-rpath,"$lib"
LD_LIBRARY_PATH='' "$dir/example" >"$dir/said" || { echo "examples/rules.c does not run from a prefix" >&2; exit 1; }

# Where only the archives are.
mkdir "$dir/only" && cp "$lib"/libweir.a "$lib"/libweir-rules.a "$dir/only"
# shellcheck disable=SC2046
"${CC:-cc}" -o "$dir/static" "$dir/consumer.c" -L"$dir/only" $(pkg-config --cflags weir) -lweir -pthread
LD_LIBRARY_PATH='' runs "$dir/static" "static archive"
# shellcheck disable=SC2046
"${CC:-cc}" -o "$dir/rules_static" "$dir/rules.c" -L"$dir/only" $(pkg-config --static --cflags --libs weir-rules |
    sed 's|-L[^ ]*||g')
LD_LIBRARY_PATH='' runs "$dir/rules_static" "pkg-config --static, rules"

mkdir "$dir/app"
cp "$dir/consumer.c" "$dir/rules.c" "$dir/app"
cat >"$dir/app/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(weir 0.1 REQUIRED)
foreach(kind "" "_static")
    add_executable(consumer${kind} consumer.c)
    target_link_libraries(consumer${kind} weir::weir${kind})
    add_executable(rules${kind} rules.c)
    target_link_libraries(rules${kind} weir::rules${kind})
endforeach()
CMAKE
cmake -G Ninja -S "$dir/app" -B "$dir/app/build" -DCMAKE_PREFIX_PATH="$prefix" >"$dir/log" 2>&1 &&
    cmake --build "$dir/app/build" >>"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
runs "$dir/app/build/consumer" "CMake, weir::weir"
runs "$dir/app/build/rules" "CMake, weir::rules"
LD_LIBRARY_PATH='' runs "$dir/app/build/consumer_static" "CMake, weir::weir_static"
LD_LIBRARY_PATH='' runs "$dir/app/build/rules_static" "CMake, weir::rules_static"
if [ -x "$WEIR_BUILD_DIR/weir" ]; then
    [ -x "$prefix/bin/weir" ] || { echo "the program was not installed" >&2; exit 1; }
    for page in man1/weir.1 man5/weir.yaml.5; do
        [ -s "$prefix/share/man/$page" ] || { echo "$page was not installed" >&2; exit 1; }
    done
fi
