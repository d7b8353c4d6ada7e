#!/bin/sh
# The manual pages list every command, every option and every key of the rule file, because they are made from the
# parsers' own rows; and troff has nothing to say about them.
set -eu
weir=$WEIR_BUILD_DIR/weir
page1=$WEIR_BUILD_DIR/man/weir.1
page5=$WEIR_BUILD_DIR/man/weir.yaml.5
die() { echo "$1" >&2; exit 1; }
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

# Every key that `config show` prints is explained.
cat >"${TMPDIR:-/tmp}/weir-manual-$$.yaml" <<'YAML'
store: redis://localhost:6379
limits: [{name: a, when: {path: /x}, unless: {path: /y}, key: [ip], rate: 5/min, group: g, cost: 2,
          tiers: {default: b, b: {}}}, {name: c, key: [], rate: 1/s, algorithm: fixed_window},
         {name: d, key: [], rate: 1/s, algorithm: leaky_bucket}]
YAML
"$weir" config show "${TMPDIR:-/tmp}/weir-manual-$$.yaml" |
    sed -n 's/^ *\(- \)\{0,1\}\([a-z_0-9]*\):.*/\2/p' | sort -u >"${TMPDIR:-/tmp}/weir-manual-$$.keys"
keys=$(wc -l <"${TMPDIR:-/tmp}/weir-manual-$$.keys")
while read -r key; do
    [ "$key" = b ] || plain "$page5" | grep -q "^.B $key\$" || die "$key is not in weir.yaml.5"
done <"${TMPDIR:-/tmp}/weir-manual-$$.keys"
rm -f "${TMPDIR:-/tmp}/weir-manual-$$".*
[ "$keys" -ge 30 ] || die "only $keys keys seen"
if plain "$page1" | grep -q '@[a-z]' || plain "$page5" | grep -q '@[a-z]'; then die "a place was not filled in"; fi
if command -v groff >/dev/null; then
    said=$(groff -man -ww -z "$page1" "$page5" 2>&1)
    [ -z "$said" ] || die "$said"
fi
echo "$options options, $keys keys"
