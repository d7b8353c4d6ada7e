#!/bin/sh
# Every message about a rule file, word for word. tests/golden/config/NAME.yaml, or the folder NAME, or what NAME.sh
# writes to the file that it is given, is checked by `weir config check`; NAME.expected is what that says on standard
# error, and the exit code. Nothing is said on standard output, unless there is nothing to complain of. `weir config
# show` says the same; what it shows of good rules is good, and shown the same again.
#
# Then each text in the sources that such a message can be made of must be in one of the messages, so that no
# new one goes without an example.
#
# WEIR_GOLDEN_WRITE=1 writes the expected files anew: read the difference.
set -eu
export LC_ALL=C
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
golden=$WEIR_SOURCE_DIR/tests/golden/config
cp -R "$golden" "$dir/config"
failed=0

run() {
    rc=0
    (cd "$dir/config" && timeout 60 "$weir" config check "$1") >"$dir/out" 2>"$dir/err" || rc=$?
    if [ $rc != 0 ] && [ -s "$dir/out" ]; then
        echo "$1: an error, but standard output has: $(head -1 "$dir/out")" >&2
        failed=1
    fi
    { cat "$dir/err" && echo "exit $rc"; } >"$dir/got"
    cat "$dir/out" >>"$dir/all"
}

# The same words of `config show`; and what it shows reads back.
run_show() {
    shown=0
    (cd "$dir/config" && timeout 60 "$weir" config show "$1") >"$dir/out" 2>"$dir/err.show" || shown=$?
    if [ $shown != $rc ] || ! cmp -s "$dir/err" "$dir/err.show"; then
        echo "$1: config show and config check do not say the same" >&2
        failed=1
    elif [ $rc = 0 ]; then
        cp "$dir/out" "$dir/config/shown"
        cat "$dir/out" >>"$dir/all"
        (cd "$dir/config" && "$weir" config show shown 2>/dev/null) | cmp - "$dir/out" >&2 || failed=1
    elif [ -s "$dir/out" ]; then
        echo "$1: an error, but config show shows something" >&2
        failed=1
    fi
}

compare() {
    if [ -n "${WEIR_GOLDEN_WRITE:-}" ]; then
        cp "$dir/got" "$golden/$1.expected"
    elif ! diff -u "$golden/$1.expected" "$dir/got" >"$dir/diff" 2>&1; then
        echo "$1: the message has changed" >&2
        cat "$dir/diff" >&2
        failed=1
    fi
    cat "$dir/got" >>"$dir/all"
    cases=$((cases + 1))
}

cases=0
: >"$dir/all"
for made in "$dir"/config/*.sh; do
    name=$(basename "$made" .sh)
    (cd "$dir/config" && sh "./$name.sh" "$name.yaml")
done
for name in $(cd "$dir/config" && for f in *.yaml *.sh */; do n=${f%/}; n=${n%.yaml}; echo "${n%.sh}"; done | sort -u); do
    [ "$name" != files ] || continue
    if [ -d "$dir/config/$name" ]; then path=$name; else path=$name.yaml; fi
    run "$path"
    run_show "$path"
    compare "$name"
done

# The section that the warning about /v1/auth gives can be pasted: the file then has no such warning, and no errors.
pasted=0
for warned in $(cd "$dir/config" && grep -l '/v1/auth cannot send' "$golden"/*.expected); do
    name=$(basename "$warned" .expected)
    section=$(sed -n "s/.*; add \(attributes: {.*}\)[;,] .*/\1/p" "$warned")
    if grep -q '^exit 0' "$warned" && [ -f "$dir/config/$name.yaml" ]; then
        { echo "$section" && cat "$dir/config/$name.yaml"; } >"$dir/config/pasted.yaml"
        if ! (cd "$dir/config" && "$weir" config check pasted.yaml) >"$dir/out" 2>&1 || grep -q 'cannot send' "$dir/out"; then
            echo "$name: not helped by '$section':" >&2
            cat "$dir/out" >&2
            failed=1
        fi
        pasted=$((pasted + 1))
    fi
done
[ $pasted -gt 5 ] || failed=1

# The shipped rules have no warning, also if their users come from a gateway's field, as their comments suggest.
for shipped in examples/rules.yaml packaging/weir.yaml; do
    sed "s/user: request/user: ['header:X-User-Id', request]/" "$WEIR_SOURCE_DIR/$shipped" >"$dir/config/field.yaml"
    for file in "$WEIR_SOURCE_DIR/$shipped" "$dir/config/field.yaml"; do
        "$weir" config check "$file" >"$dir/out" 2>"$dir/err" || failed=1
        if [ -s "$dir/err" ] || ! grep -q 'callers must send: .*tier' "$dir/out"; then
            echo "$shipped: $(cat "$dir/err" "$dir/out")" >&2
            failed=1
        fi
    done
    grep -q 'header:X-User-Id' "$dir/config/field.yaml" || failed=1
done

# Which attributes only callers can give: those of good rules, with and without a section `attributes`.
sent() {
    (cd "$dir/config" && "$weir" config check "$1" 2>/dev/null) | sed -n '2,$p' >"$dir/out"
    if [ "$(cat "$dir/out")" != "$2" ]; then
        echo "$1: found '$(cat "$dir/out")' after the first line, expected '$2'" >&2
        failed=1
    fi
    cat "$dir/out" >>"$dir/all"
}
sent attributes_declared.yaml 'callers must send: ip, tokens, tenant'
sent good.yaml "callers must send: path, ip, user, tokens
without the store, 'on_store_failure: local' divides limits by the nodes that were counted; only 'fleet_size' \
guarantees its bound"
printf 'store: {url: redis://h, fleet_size: 3}\nadhoc: off\nlimits: [{name: a, key: [ip], rate: 1/s}]\n' >"$dir/config/sized"
sent sized 'callers must send: ip'
sent keys_with_an_address.yaml 'callers must send: path, ip'
printf 'limits: [{name: a, when: {plan: x}, key: [user|ip], rate: 1/s}]\n' >"$dir/config/plain"
sent plain 'callers must send: ip, user, plan'
printf 'limits: [{name: a, when: {path: /login, method: POST}, key: [ip], rate: 5/min}]\n' >"$dir/config/login"
sent login 'callers must send: path, method, ip'
printf 'attributes: {ip: "header:X-Real"}\nlimits: [{name: a, key: [ip], rate: 5/min}]\n' >"$dir/config/derived"
sent derived ''

(cd "$dir/config" && "$weir" config check plain) >"$dir/out" 2>"$dir/err" || failed=1
[ "$(wc -l <"$dir/out")" = 2 ] || failed=1 # each line ends

# Two files: what would change, what only a restart applies, or that nothing does.
compared() {
    (cd "$dir/config" && "$weir" config check plain next) >"$dir/out" 2>"$dir/err" || failed=1
    if ! grep -q "$2" "$dir/err" || [ "$(cat "$dir/out")" != "$1" ]; then
        echo "config check plain next: found '$(cat "$dir/out" "$dir/err")', expected '$1' and '$2'" >&2
        failed=1
    fi
}
cp "$dir/config/plain" "$dir/config/next"
compared unchanged ''
sed 's|1/s|2/s|' "$dir/config/plain" >"$dir/config/next"
compared 'a: rate 1/s -> 2/s, burst 1 -> 2; keys kept' ''
{ echo 'adhoc: {max_keys: 5k}' && cat "$dir/config/plain"; } >"$dir/config/next"
compared '' 'adhoc.max_keys has changed, which takes effect after a restart'

# What is wrong with the command itself, one in each line of usage.args.
while IFS= read -r arguments; do
    rc=0
    # shellcheck disable=SC2086  # words on purpose
    "$weir" config $arguments >"$dir/out" 2>"$dir/err" || rc=$?
    { echo "weir config${arguments:+ $arguments}" && cat "$dir/err" && echo "exit $rc"; } >>"$dir/usage"
    if [ $rc != 2 ] || [ -s "$dir/out" ]; then
        echo "weir config $arguments: exit $rc, or something on standard output" >&2
        failed=1
    fi
done <"$dir/config/usage.args"
mv "$dir/usage" "$dir/got"
compare usage

# ---- every text of the sources ----

# The string literals of a C file that read like messages, one in a line, neighbours joined: those with a space and a
# letter that is no conversion. Comments, #include and rows of fields are left out: unit.rules.fields tries every row.
texts() {
    awk '
        function flush() {
            words = text
            gsub(/\\n|%[.*]*[a-z]+/, "", words)
            if (words ~ / / && words ~ /[a-z]/) print text
            text = ""
        }
        /^#include/ { next }
        { file = file $0 "\n" }
        END {
            while (length(file) > 0) {
                if (match(file, /^"([^"\\]|\\.)*"/)) {
                    piece = substr(file, 2, RLENGTH - 2)
                    file = substr(file, RLENGTH + 1)
                    if (!rows) text = text piece
                } else if (match(file, /^\047([^\047\\]|\\.)+\047/) || match(file, /^\/\*([^*]|\*+[^*\/])*\*+\//)) {
                    file = substr(file, RLENGTH + 1)
                } else if (match(file, /^(static const struct field [a-z_]+\[\] = \{)/)) {
                    rows = 1
                    file = substr(file, RLENGTH + 1)
                } else {
                    c = substr(file, 1, 1)
                    if (rows && match(file, /^\n};/)) rows = 0
                    if (c !~ /[ \t\n]/) flush()
                    file = substr(file, 2)
                }
            }
            flush()
        }' "$1"
}

# Those that a rule file cannot cause: faults of the system, what root is never refused, texts of the command line and
# of the admin listener, and values of requests.
cat >"$dir/elsewhere" <<'END'
%s: out of memory
out of memory for the rules
%s for the rules
cannot be read
cannot be examined
that cannot be read
order of the names
report all errors of a rule file
print a rule file with all defaults filled in, and the memory of its limits
print the limits of files for Envoy's reference rate limit server as a rule file
the format of the files: envoyproxy/ratelimit's
a duration such as 90s or 1h30m
a whole number such as 100 or 1.5k
a path cannot contain a NUL byte
servers read a dot segment with parameters in different ways
servers read dot segments with an encoded slash in different ways
found %zu bytes, expected at most %d
found a file, expected values: only the rule file may name files
found limits that need %zu tables, expected at most %d in a sandbox: try fewer limits and tiers at a time
found limits that need %s, expected at most %s in a sandbox: lower max_keys or max_blocks, or try fewer limits at a time
found values with wildcards of %zu bytes, expected at most %d in a sandbox: try fewer limits at a time
found more than %u values, including those of aliases, in a text that is sent: check it as a file
END

# A format as a basic regular expression.
pattern() {
    sed -e 's/\\n$//' -e 's/\\"/"/g' -e 's/\\\\/\\/g' -e 's/%%/%/g' -e 's/[][\\.*^$]/\\&/g' \
        -e 's/%[-+ #0]*[0-9]*\(\\\.[0-9\\*]*\)*[hlz]*[diouxXscg]/.*/g'
}

missing=0
for file in rules/yaml/document rules/file/fields rules/file/files rules/file/config rules/file/limits rules/file/consistency \
    rules/file/tiers rules/file/conditions rules/file/sections rules/file/adhoc rules/file/config_check rules/yaml/problems \
    rules/file/attributes rules/file/warnings rules/file/undeclared \
    rules/envoy/envoy rules/envoy/envoy_limit rules/compiled/ruleset rules/value/number rules/value/quantity rules/value/csv rules/value/address rules/value/path \
    rules/value/pattern cli/config/config_command cli/config/config_store; do
    texts "$WEIR_SOURCE_DIR/src/$file.c" >"$dir/texts"
    while IFS= read -r text; do
        if grep -Fxq -e "$text" "$dir/elsewhere"; then continue; fi
        if ! grep -q -e "$(printf '%s\n' "$text" | pattern)" "$dir/all"; then
            echo "src/$file.c: no example of: $text" >&2
            missing=$((missing + 1))
        fi
    done <"$dir/texts"
    wc -l <"$dir/texts" >>"$dir/counts"
done
[ $missing = 0 ] || failed=1
[ $failed = 0 ] || exit 1
echo "$cases files, $(awk '{ n += $1 } END { print n }' "$dir/counts") texts"
