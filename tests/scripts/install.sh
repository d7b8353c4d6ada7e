#!/bin/sh
# test-labels: nosan
# An installed weir is usable: its libraries, by pkg-config, shared and static, and by find_package(weir).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
prefix=$dir/prefix

cmake --install "$WEIR_BUILD_DIR" --prefix "$prefix" >"$dir/log" || { cat "$dir/log" >&2; exit 1; }
pc=$(find "$prefix" -name weir.pc)
lib=$(dirname "$(dirname "$pc")")
[ -e "$prefix/share/weir/weir.schema.json" ] || { echo "weir.schema.json is not installed" >&2; exit 1; }
for page in reference/openapi.json guide/serve.md README.md; do
    [ -n "$(find "$prefix" -path "*/doc/weir/$page")" ] || { echo "$page is not installed" >&2; exit 1; }
done
for file in weir/v1/limiter grpc/health/v1/health envoy/service/ratelimit/v3/rls; do
    [ -e "$prefix/share/weir/proto/$file.proto" ] || { echo "$file.proto is not installed" >&2; exit 1; }
done
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
cat >"$dir/redis.c" <<'C'
#include <stdio.h>
#include <weir_fleet.h>
int main(void)
{
    const char *const nodes[] = {"a", "b", "c"};
    struct weir_fleet_options f = WEIR_FLEET_OPTIONS_INIT;
    struct weir_fleet_limit_options l = WEIR_FLEET_LIMIT_OPTIONS_INIT;
    struct weir_fleet *fleet;
    struct weir_fleet_limit *limit;
    struct weir_ring *ring;
    struct weir_answer answer;
    struct weir_error error;
    f.url = "redis:///nobody/listens/here";
    l.name = "one";
    l.limit.algorithm = WEIR_TOKEN_BUCKET;
    l.limit.count = 1;
    l.limit.period_ns = WEIR_HOUR;
    l.on_store_failure = WEIR_FLEET_CLOSED;
    if (weir_fleet_open(&fleet, &f, &error) != 0 || weir_fleet_limit_open(&limit, fleet, &l, &error) != 0 ||
        weir_ring_open(&ring, nodes, 3, &error) != 0) {
        return fprintf(stderr, "%s\n", error.text);
    }
    if (weir_fleet_check(limit, "alice", 5, 1, &answer) != 0 || answer.verdict != WEIR_DENY ||
        (answer.flags & WEIR_FLAG_DEGRADED) == 0 || weir_ring_find(ring, "alice", 5) != 0) {
        return fprintf(stderr, "wrong answers\n");
    }
    weir_ring_close(ring);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    return printf("weir %s\n", weir_version()) < 0;
}
C
version=$(pkg-config --modversion weir)
for name in weir-rules weir-redis; do
    [ "$(pkg-config --modversion $name)" = "$version" ] || { echo "$name.pc has another version" >&2; exit 1; }
done
runs() { # runs program how-it-was-linked
    said=$("$1") || { echo "$2: failed" >&2; exit 1; }
    [ "$said" = "weir $version" ] || { echo "$2: said '$said', pkg-config says $version" >&2; exit 1; }
    echo "$2: $said"
}

# shellcheck disable=SC2046  # pkg-config's answer is a list of words
"${CC:-cc}" -o "$dir/shared" "$dir/consumer.c" $(pkg-config --cflags --libs weir)
runs "$dir/shared" "pkg-config, shared"
for name in rules redis; do
    # shellcheck disable=SC2046
    "${CC:-cc}" -o "$dir/$name" "$dir/$name.c" $(pkg-config --cflags --libs weir-$name)
    runs "$dir/$name" "pkg-config, shared, $name"
done

# A program that names only the rules, by a runtime path of its own.
cp "$WEIR_SOURCE_DIR/examples/rules.c" "$dir/example.c"
# shellcheck disable=SC2046
"${CC:-cc}" -o "$dir/example" "$dir/example.c" $(pkg-config --cflags --libs weir-rules) -Wl,--as-needed,-rpath,"$lib"
LD_LIBRARY_PATH='' "$dir/example" >"$dir/said" || { echo "examples/rules.c does not run from a prefix" >&2; exit 1; }

# Where only the archives are.
mkdir "$dir/only" && cp "$lib"/libweir.a "$lib"/libweir-rules.a "$lib"/libweir-redis.a "$dir/only"
# shellcheck disable=SC2046
"${CC:-cc}" -o "$dir/static" "$dir/consumer.c" -L"$dir/only" $(pkg-config --cflags weir) -lweir -pthread
LD_LIBRARY_PATH='' runs "$dir/static" "static archive"
for name in rules redis; do
    # shellcheck disable=SC2046
    "${CC:-cc}" -o "$dir/${name}_static" "$dir/$name.c" -L"$dir/only" $(pkg-config --static --cflags --libs weir-$name |
        sed 's|-L[^ ]*||g')
    LD_LIBRARY_PATH='' runs "$dir/${name}_static" "pkg-config --static, $name"
done

mkdir "$dir/app"
cp "$dir/consumer.c" "$dir/rules.c" "$dir/redis.c" "$dir/app"
cat >"$dir/app/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.16)
project(app C)
find_package(weir 0.2 REQUIRED)
foreach(kind "" "_static")
    add_executable(consumer${kind} consumer.c)
    target_link_libraries(consumer${kind} weir::weir${kind})
    foreach(name rules redis)
        add_executable(${name}${kind} ${name}.c)
        target_link_libraries(${name}${kind} weir::${name}${kind})
    endforeach()
endforeach()
CMAKE
cmake -G Ninja -S "$dir/app" -B "$dir/app/build" -DCMAKE_PREFIX_PATH="$prefix" >"$dir/log" 2>&1 &&
    cmake --build "$dir/app/build" >>"$dir/log" 2>&1 || { cat "$dir/log" >&2; exit 1; }
runs "$dir/app/build/consumer" "CMake, weir::weir"
runs "$dir/app/build/rules" "CMake, weir::rules"
runs "$dir/app/build/redis" "CMake, weir::redis"
LD_LIBRARY_PATH='' runs "$dir/app/build/consumer_static" "CMake, weir::weir_static"
LD_LIBRARY_PATH='' runs "$dir/app/build/rules_static" "CMake, weir::rules_static"
LD_LIBRARY_PATH='' runs "$dir/app/build/redis_static" "CMake, weir::redis_static"
if [ -x "$WEIR_BUILD_DIR/weir" ]; then
    [ -x "$prefix/bin/weir" ] || { echo "the program was not installed" >&2; exit 1; }
    LD_LIBRARY_PATH='' "$prefix/bin/weir" bench load --help | grep -q '^usage: weir-bench load ' ||
        { echo "weir bench load does not run the installed weir-bench" >&2; exit 1; }
    for page in man1/weir.1 man5/weir.yaml.5 man3/weir.3 man3/weir_rules.3 man3/weir_fleet.3; do
        [ -s "$prefix/share/man/$page" ] || { echo "$page was not installed" >&2; exit 1; }
    done
    for file in bash-completion/completions/weir zsh/site-functions/_weir fish/vendor_completions.d/weir.fish; do
        [ -s "$prefix/share/$file" ] || { echo "$file was not installed" >&2; exit 1; }
    done
    for function in weir_open weir_rules_ask weir_ring_find; do # each function leads to the page of its header
        man -M "$prefix/share/man" 3 "$function" 2>&1 | grep -q "^       .*[ *]$function(" ||
            { echo "man $function finds no page" >&2; exit 1; }
    done
fi

# What was installed can be removed: all of it, and nothing else. With DESTDIR it is removed from there.
mkdir -p "$prefix/share/weir/own"
: >"$prefix/share/weir/own/notes"
: >"$prefix/bin-of-others"
"$WEIR_SOURCE_DIR/scripts/uninstall" "$WEIR_BUILD_DIR" "$prefix" >"$dir/log" || { cat "$dir/log" >&2; exit 1; }
left=$(find "$prefix" ! -type d | sort | tr '\n' ' ')
[ "$left" = "$prefix/bin-of-others $prefix/share/weir/own/notes " ] || { echo "left after uninstall: $left" >&2; exit 1; }
left=$(find "$prefix" -type d -path '*/weir*' | sort | tr '\n' ' ')
[ "$left" = "$prefix/share/weir $prefix/share/weir/own " ] || { echo "folders left after uninstall: $left" >&2; exit 1; }
DESTDIR=$dir/image cmake --install "$WEIR_BUILD_DIR" --prefix /usr >"$dir/log"
[ -n "$(find "$dir/image" -name weir.h)" ] || { echo "nothing is installed below DESTDIR" >&2; exit 1; }
DESTDIR=$dir/image "$WEIR_SOURCE_DIR/scripts/uninstall" "$WEIR_BUILD_DIR" /usr >"$dir/log" || { cat "$dir/log" >&2; exit 1; }
left=$(find "$dir/image" ! -type d)
[ -z "$left" ] || { echo "left below DESTDIR: $left" >&2; exit 1; }
