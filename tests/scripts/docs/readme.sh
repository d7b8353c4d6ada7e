#!/bin/sh
# test-labels: nosan
# README.md is read in three minutes and its rules are those of examples/rules.yaml; the first program of the guides
# compiles without a warning and runs. (docs.sh checks rule files and links, docs_commands.sh runs the commands.)
set -eu
readme=$WEIR_SOURCE_DIR/README.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() { echo "$1" >&2; exit 1; }
# block LANGUAGE FILE: the lines of the first block in that language
block() {
    awk -v mark="\`\`\`$1" '
    $0 == mark && !done { on = 1; next }
    /^```/ { if (on) done = 1; on = 0 }
    on' "$2"
}

words=$(wc -w <"$readme")
[ "$words" -le 900 ] || die "README.md has $words words, expected at most 900: three minutes"

block yaml "$readme" >"$dir/shown.yaml"
grep -v '^#' "$WEIR_SOURCE_DIR/examples/rules.yaml" | cmp - "$dir/shown.yaml" || die "README.md does not show examples/rules.yaml"

block c "$WEIR_SOURCE_DIR/docs/guide/embed.md" >"$dir/embed.c"
[ -s "$dir/embed.c" ] || die "docs/guide/embed.md has no C block"
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror -I"$WEIR_SOURCE_DIR/include" -o "$dir/embed" "$dir/embed.c" \
    "$WEIR_BUILD_DIR/libweir.a" -pthread
[ "$("$dir/embed")" = welcome ] || die "the program of docs/guide/embed.md does not say welcome"
echo "README.md: $words words"
