#!/bin/sh
# test-labels: nosan
# scripts/configure: silent, and a build folder that was copied with its clone is named and made anew.
set -eu
export LC_ALL=C
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() { echo "$*" >&2; cat "$dir"/*/build/configure-tiny.log >&2 2>/dev/null || true; exit 1; }

mkdir -p "$dir/first/scripts"
cp "$WEIR_SOURCE_DIR/scripts/configure" "$dir/first/scripts/"
cat >"$dir/first/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(tiny NONE)
add_custom_target(tell ALL COMMAND ${CMAKE_COMMAND} -E echo "built in ${PROJECT_SOURCE_DIR}" VERBATIM)
CMAKE
cat >"$dir/first/CMakePresets.json" <<'JSON'
{"version": 6, "configurePresets": [{"name": "tiny", "generator": "Ninja", "binaryDir": "${sourceDir}/build",
    "cacheVariables": {"CHOSEN": "yes"}}]}
JSON

said=$("$dir/first/scripts/configure" tiny build 2>&1) || die "a first time: exit $?"
[ -z "$said" ] || die "a first time, it said: $said"
said=$("$dir/first/scripts/configure" tiny build 2>&1) || die "a second time: exit $?"
[ -z "$said" ] || die "a second time, it said: $said"

# A clone that was copied, whether the first is still there or not; and a way to the same folder by a link.
cp -R "$dir/first" "$dir/second"
said=$("$dir/second/scripts/configure" tiny build 2>&1) || die "a copy: exit $?: $said"
case $said in
*"build was made in $dir/first/build; it is made anew for $dir/second") ;;
*) die "of a copy, it said: $said" ;;
esac
cmake --build "$dir/second/build" >"$dir/built" 2>&1 || die "the copy does not build: $(cat "$dir/built")"
grep -q "built in $dir/second" "$dir/built" || die "the copy builds something else: $(cat "$dir/built")"
said=$("$dir/second/scripts/configure" tiny build 2>&1) || die "a copy, again: exit $?"
[ -z "$said" ] || die "a copy, again, it said: $said"
ln -s "$dir/second" "$dir/link"
said=$("$dir/link/scripts/configure" tiny build 2>&1) || die "a link: exit $?"
[ -z "$said" ] || die "of a link, it said: $said"
mv "$dir/first" "$dir/third"
said=$("$dir/third/scripts/configure" tiny build 2>&1) || die "a moved clone: exit $?"
[ -n "$said" ] || die "a moved clone: silent"

# What CMake refuses is told.
echo 'message(FATAL_ERROR "no such compiler")' >>"$dir/third/CMakeLists.txt"
if said=$("$dir/third/scripts/configure" tiny build 2>&1); then die "an error: exit 0"; fi
case $said in *"no such compiler"*) ;; *) die "an error is not told: $said" ;; esac
