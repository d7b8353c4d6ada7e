#!/bin/sh
# The manual pages list every command, every option and every key of the rule file, because they are made from the
# parsers' own rows, and every public function with its text, because they are made from the headers. Neither troff nor
# mandoc finds a mistake in them.
set -eu
export LC_ALL=C
weir=$WEIR_BUILD_DIR/weir
page1=$WEIR_BUILD_DIR/man/weir.1
page5=$WEIR_BUILD_DIR/man/weir.yaml.5
die() { echo "$1" >&2; exit 1; }
for tool in man groff mandoc; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
plain() { sed 's/\\-/-/g; s/\\e/\\/g; s/\\(aq/'"'"'/g; s/\\f[IRB]//g' "$1"; }

options=0
"$weir" help | sed -n 's/^  weir \([a-z]*\( [a-z]*\)\{0,1\}\).*/\1/p' | sed 's/ *$//' | while read -r command; do
    # shellcheck disable=SC2086  # one or two words
    "$weir" $command --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p' | while read -r option; do
        plain "$page1" | grep -q "^.B $option" || die "$command $option is not in weir.1"
    done
done
options=$(plain "$page1" | grep -c '^.B --')
[ "$options" -ge 20 ] || die "only $options options in weir.1"
for command in replay simulate 'config check' 'config show' 'bench load'; do
    plain "$page1" | grep -q "^.SS weir $command" || die "weir $command is not in weir.1"
done

# A reader who looks for a command to copy finds it first.
[ "$(sed -n 's/^\.SH //p' "$page1" | sed -n '1,3p' | tr '\n' ' ')" = "NAME SYNOPSIS EXAMPLES " ] || die "weir.1 does not begin with examples"

# Every HTTP path of both listeners is explained.
sed -n 's|^  "\(/[^"]*\)": {$|\1|p' "$WEIR_SOURCE_DIR/docs/reference/openapi.json" | sed 's|/{.*||' | sort -u >"$dir/paths"
[ "$(wc -l <"$dir/paths")" -ge 20 ] || die "only $(wc -l <"$dir/paths") paths in openapi.json"
while read -r path; do
    plain "$page1" | grep -q "^.BR \"[A-Z]* *${path}[\"[/]" || die "$path is not in weir.1"
done <"$dir/paths"

# Every key that `config show` prints is explained.
cat >"$dir/rules.yaml" <<'YAML'
store: redis://localhost:6379
limits: [{name: a, when: {path: /x}, unless: {path: /y}, key: [ip], rate: 5/min, group: g, cost: 2,
          tiers: {default: b, b: {}}}, {name: c, key: [], rate: 1/s, algorithm: fixed_window},
         {name: d, key: [], rate: 1/s, algorithm: leaky_bucket}]
YAML
"$weir" config show "$dir/rules.yaml" |
    sed -n 's/^ *\(- \)\{0,1\}\([a-z_0-9]*\):.*/\2/p' | sort -u >"$dir/rules.keys"
keys=$(wc -l <"$dir/rules.keys")
while read -r key; do
    [ "$key" = b ] || plain "$page5" | grep -q "^.B $key\$" || die "$key is not in weir.yaml.5"
done <"$dir/rules.keys"
[ "$keys" -ge 30 ] || die "only $keys keys seen"
if plain "$page1" | grep -q '@[a-z]' || plain "$page5" | grep -q '@[a-z]'; then die "a place was not filled in"; fi

# Every public function is on the page of its header, in a line of its own, with a text below it; and has a link to it.
functions=0
described() { # described header: its functions that no text follows on the page
    MANWIDTH=80 man -l "$WEIR_BUILD_DIR/man/$1.3" | awk '
        /^       [a-z].*[ *]weir_[a-z0-9_]*\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name); open[name] = 1; next }
        /^           [^ ]/ && !/[,;]$/ { for (name in open) print name; split("", open) }
        /^[A-Z]/ { split("", open) }' | sort
}
for header in weir weir_rules weir_fleet; do
    page=$WEIR_BUILD_DIR/man/$header.3
    sed -n 's/^WEIR_API .*[ *]\(weir_[a-z0-9_]*\)(.*/\1/p' "$WEIR_SOURCE_DIR/include/$header.h" | sort >"$dir/declared"
    [ -s "$dir/declared" ] || die "no functions in $header.h"
    functions=$((functions + $(wc -l <"$dir/declared")))
    described "$header" >"$dir/described"
    diff "$dir/declared" "$dir/described" || die "$header.h declares other functions (<) than $header.3 describes (>)"
    while read -r name; do
        [ "$(cat "$WEIR_BUILD_DIR/man/links/$name.3")" = ".so man3/$header.3" ] || die "$name.3 is no link to $header.3"
    done <"$dir/declared"
    MANWIDTH=80 man -l "$page" >"$dir/text"
    if grep -n '^.\{80\}' "$dir/text"; then die "lines of $header.3 are wider than a terminal"; fi
    # Members and values of structs and enums, and macros, by their names.
    sed 's|/\*.*||; s/^#define //' "$WEIR_SOURCE_DIR/include/$header.h" | grep -o '^ *WEIR_[A-Z0-9_]*[A-Z0-9]' | sort -u |
        grep -vE 'WEIR_(API|ERROR_ENUM|ERRORS|H|RULES_H|FLEET_H)$' | while read -r name; do
        grep -qw -- "$name" "$dir/text" || die "$name is not in $header.3"
    done
    # A function that a text mentions exists.
    grep -o 'weir_[a-z0-9_]*()' "$dir/text" | sort -u | tr -d '()' | while read -r name; do
        [ -e "$WEIR_BUILD_DIR/man/links/$name.3" ] || die "$header.h mentions $name(), which there is not"
    done
done

# The lists for readers of the repository are those of this build.
for list in metrics rules bounds notices; do
    "$WEIR_BUILD_DIR/make_manual" "--$list" | diff -u "$WEIR_SOURCE_DIR/docs/reference/$list.md" - ||
        die "docs/reference/$list.md is old: run make reference"
done

set -- "$page1" "$page5" "$WEIR_BUILD_DIR"/man/*.3
said=$(groff -man -ww -z "$@" 2>&1)
[ -z "$said" ] || die "$said"
said=$(mandoc -T lint -W warning "$@" | grep -v 'missing date' || true) # pages have none: builds are reproducible
[ -z "$said" ] || die "$said"
echo "$options options, $keys keys, $functions functions"
