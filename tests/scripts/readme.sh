#!/bin/sh
# test-labels: nosan
# What README.md and the guides tell a newcomer to type works: README is read in three minutes, its rules are those of
# examples/rules.yaml, each of its commands prints what README shows; the guides' first program compiles without a warning
# and runs, and so do their commands. (docs.sh checks rule files and links.)
set -eu
readme=$WEIR_SOURCE_DIR/README.md
guide=$WEIR_SOURCE_DIR/docs/guide
for needed in redis-cli curl; do
    command -v $needed >/dev/null || { echo "$needed is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
server=
# shellcheck disable=SC2086  # empty if there is none
trap '[ -z "$server" ] || kill $server; rm -rf "$dir"' EXIT
die() { echo "$1" >&2; exit 1; }
# block LANGUAGE FILE [HEADING]: the lines of the first block in that language, after that heading
block() {
    awk -v mark="\`\`\`$1" -v heading="${3:-}" '
    $0 == heading { after = 1 }
    $0 == mark && !done && (after || heading == "") { on = 1; next }
    /^```/ { if (on) done = 1; on = 0 }
    on' "$2"
}

words=$(wc -w <"$readme")
[ "$words" -le 900 ] || die "README.md has $words words, expected at most 900: three minutes"

block yaml "$readme" >"$dir/shown.yaml"
grep -v '^#' "$WEIR_SOURCE_DIR/examples/rules.yaml" | cmp - "$dir/shown.yaml" || die "README.md does not show examples/rules.yaml"

# A server on free ports, and a folder in which build/weir and examples are those of the test.
ln -s "$WEIR_SOURCE_DIR/examples" "$dir/examples"
mkdir -m 700 "$dir/build" "$dir/run"
ln -s "$WEIR_BUILD_DIR/weir" "$dir/build/weir"
cd "$dir"
export XDG_RUNTIME_DIR="$dir/run"
unset RUNTIME_DIRECTORY
build/weir serve --config examples/rules.yaml --threads 1 --max-age 0 --resp 127.0.0.1:0 --http 127.0.0.1:0 \
    --admin 127.0.0.1:0 >"$dir/addresses" 2>"$dir/log" &
server=$!
for _ in $(seq 600); do
    ! grep -q ' info started ' "$dir/log" || break
    kill -0 "$server" || { cat "$dir/log" >&2; die "weir serve ended"; }
    sleep 0.1
done
address() { awk -v name="$1" '$1 == name { print $2 }' "$dir/addresses"; }
WEIR_HTTP=$(address http)
WEIR_ADMIN=$(address admin)
resp=$(address resp)
[ -n "$WEIR_HTTP" ] && [ -n "$WEIR_ADMIN" ] && [ -n "$resp" ] || die "weir serve did not print its addresses"
export WEIR_HTTP WEIR_ADMIN
# type_it COMMAND: runs it against this server; redis-cli prints as on a terminal
type_it() {
    sh -c "$(echo "$1" | sed "s/redis-cli -p 6380/redis-cli --no-raw -p ${resp##*:}/; s/localhost:8080/$WEIR_HTTP/
        s/localhost:8082/$WEIR_ADMIN/")" </dev/null
}

block console "$readme" >"$dir/session"
sed -n 's/^\$ //p' "$dir/session" >"$dir/commands"
[ "$(wc -l <"$dir/commands")" -ge 4 ] || die "README.md shows too few commands"
while read -r command; do
    echo "\$ $command"
    case $command in *' serve '*) ;; *) type_it "$command" ;; esac # it serves already
done <"$dir/commands" >"$dir/typed"
diff "$dir/session" "$dir/typed" || die "README.md (<) does not show what its commands print (>)"

block c "$guide/embed.md" >"$dir/embed.c"
[ -s "$dir/embed.c" ] || die "docs/guide/embed.md has no C block"
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror -I"$WEIR_SOURCE_DIR/include" -o "$dir/embed" "$dir/embed.c" \
    "$WEIR_BUILD_DIR/libweir.a" -pthread
[ "$(./embed)" = welcome ] || die "the program of docs/guide/embed.md does not say welcome"

{
    block sh "$guide/rules.md"
    block sh "$guide/rules.md" '## Try limits on recorded traffic'
    block sh "$guide/serve.md" '## Ask it'
    block sh "$guide/serve.md" '## Operate it'
} | sed 's/ *#.*//; /^build\/weir \(serve\|top\)/d' >"$dir/commands"
[ "$(wc -l <"$dir/commands")" -ge 17 ] || die "the guides show too few commands"
while read -r command; do
    type_it "$command" >"$dir/said" 2>&1 || { cat "$dir/said" >&2; die "failed: $command"; }
    ! grep -q ERR "$dir/said" || { cat "$dir/said" >&2; die "an error: $command"; }
    [ -s "$dir/said" ] || die "says nothing: $command"
done <"$dir/commands"
echo "README.md: $words words; $(wc -l <"$dir/commands") commands of the guides"
