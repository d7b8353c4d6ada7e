#!/bin/sh
# `weir replay` as a user runs it: the example of the manual from a pipe and from a file, answers before the next question,
# a bar on a terminal, the same decisions each time, memory by the number of clients, a full disk.
set -eu
export LC_ALL=C
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
die() { echo "$*" >&2; exit 1; }

# capacity 3, window 10, four at 0 and four at 10
printf '3\n10\n8\n' >"$dir/example"
for t in 0 0 0 0 10 10 10 10; do echo "request alice $t" >>"$dir/example"; done
printf 'allow\nallow\nallow\ndeny\nallow\nallow\nallow\ndeny\n' >"$dir/expected"
"$weir" replay <"$dir/example" >"$dir/out" 2>"$dir/err"
cmp "$dir/out" "$dir/expected" || die "the example, from standard input"
grep -Eq '^weir replay: 8 requests of 1 client, 6 allowed, 2 denied; [0-9.]+ s, [0-9]+ requests/s$' "$dir/err" || die "no summary"
for how in "$dir/example" "--quiet $dir/example" "--algorithm sliding_log --rate 3/10 $dir/example"; do
    # shellcheck disable=SC2086  # words on purpose
    "$weir" replay $how >"$dir/out" 2>"$dir/err"
    cmp "$dir/out" "$dir/expected" || die "the example: weir replay $how"
done
"$weir" replay --quiet - <"$dir/example" 2>"$dir/err" | cmp - "$dir/expected" || die "the example, by -"
[ ! -s "$dir/err" ] || die "--quiet is not quiet"

# 1,100 at 100 per 60, of which 1,000 come a second later: the reference lets all of them in, and a warning says so.
awk 'BEGIN { print 100; print 60; print 1100; for (i = 0; i < 1100; i++) print "request a", (i >= 100) }' >"$dir/steps"
"$weir" replay "$dir/steps" >"$dir/out" 2>"$dir/err"
[ "$(grep -c allow "$dir/out")" = 1100 ] || die "the stepped bucket is not that of the reference"
grep -q 'warning: found a capacity of 100 above the window of 60.*--algorithm token_bucket' "$dir/err" || die "no warning"
"$weir" replay --algorithm token_bucket "$dir/steps" >"$dir/out" 2>"$dir/err"
[ "$(grep -c allow "$dir/out")" = 101 ] || die "the token bucket does not limit"
if grep -q warning "$dir/err"; then die "a warning that is not for this algorithm"; fi
"$weir" replay --quiet --algorithm gcra "$dir/steps" | cmp - "$dir/out" || die "gcra is not token_bucket"
"$weir" replay --quiet "$dir/example" >/dev/null 2>"$dir/err"
[ ! -s "$dir/err" ] || die "a warning without a reason"

# A bad line: its number, nothing printed for it, the rest goes on, exit code 2.
rc=0
printf '1\n10\n3\nrequest a 0\nreqest a 0\nrequest b 0\n' | "$weir" replay --quiet >"$dir/out" 2>"$dir/err" || rc=$?
[ "$rc" = 2 ] || die "a bad line: exit $rc instead of 2"
printf 'allow\nallow\n' | cmp - "$dir/out"
grep -qx "weir replay: line 5: found 'reqest', expected 'request CLIENT TIMESTAMP'" "$dir/err" || die "a bad line: $(cat "$dir/err")"

# Whoever asks line by line has each answer before the next question.
mkfifo "$dir/ask" "$dir/answer"
"$weir" replay --quiet <"$dir/ask" >"$dir/answer" &
exec 3>"$dir/ask" 4<"$dir/answer"
printf '1\n10\n2\nrequest a 0\n' >&3
read -r first <&4
printf 'request a 0\n' >&3
read -r second <&4
exec 3>&- 4<&-
wait $!
[ "$first $second" = "allow deny" ] || die "asked line by line: $first $second"

# Many clients: a line for each request, and the same ones each time.
requests() { awk -v n="$1" -v clients="$2" 'BEGIN {
    srand(1); print 3; print 60; print n; for (i = 0; i < n; i++) print "request client-" int(rand() * clients), int(i / 100) }'; }
requests 70000 7000 >"$dir/many"
for algorithm in stepped_bucket token_bucket leaky_bucket fixed_window sliding_window sliding_log; do
    "$weir" replay --quiet --explain --algorithm "$algorithm" "$dir/many" >"$dir/once"
    "$weir" replay --quiet --explain --algorithm "$algorithm" <"$dir/many" >"$dir/again"
    cmp "$dir/once" "$dir/again" || die "$algorithm: not the same decisions the second time"
    [ "$(grep -Ec '^(allow|deny) remaining=[0-3] retry=[0-9.]+ reset=[0-9.]+( delay=[0-9.]+)?$' "$dir/once")" = 70000 ] ||
        die "$algorithm: not one decision per request"
    grep -q deny "$dir/once" || die "$algorithm: nothing is denied"
done

# Memory goes by the clients, not by the requests. (A sanitizer's own memory is another matter.)
if ! grep -q '^WEIR_SANITIZE:STRING=.' "$WEIR_BUILD_DIR/CMakeCache.txt"; then
    # shellcheck disable=SC3045  # where there is no -v the test fails, and says so
    requests 1000000 10 | (ulimit -v 20000 && "$weir" replay --quiet >"$dir/out") || die "a million requests of ten clients"
    [ "$(wc -l <"$dir/out")" = 1000000 ] || die "a million requests, $(wc -l <"$dir/out") decisions"
fi

# A bar on a terminal, if the decisions go elsewhere; gone at the end.
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1 </dev/null; then # where there are terminals
    script -qec "'$weir' replay '$dir/many' >'$dir/out'" /dev/null >"$dir/terminal" </dev/null
    grep -q '[#.] *[0-9]* %' "$dir/terminal" || die "no bar on a terminal"
    if script -qec "'$weir' replay --quiet '$dir/many' >'$dir/out'" /dev/null </dev/null | grep -q '%'; then die "a bar with --quiet"; fi
fi
"$weir" replay "$dir/many" 2>"$dir/err" >"$dir/out"
if grep -q '%' "$dir/err"; then die "a bar where there is no terminal"; fi

# A full disk.
if [ -w /dev/full ]; then
    rc=0
    "$weir" replay --quiet "$dir/many" >/dev/full 2>"$dir/err" || rc=$?
    [ "$rc" = 1 ] || die "a full disk: exit $rc instead of 1"
    grep -q 'cannot write' "$dir/err" || die "a full disk: no word of it"
fi
# Through a rule file, whose limit is named.
cat >"$dir/weir.yaml" <<'YAML'
limits:
  - {name: login, when: {path: /login}, key: [ip], rate: 1/min}
YAML
cat >"$dir/trace" <<'JSON'
{"time": 0.5, "path": "/login", "ip": "203.0.113.7"}
{"time": 1, "path": "/login", "ip": "203.0.113.7"}
{"time": 2, "path": "/", "ip": "203.0.113.7"}
JSON
"$weir" replay --quiet --explain --rules "$dir/weir.yaml" "$dir/trace" >"$dir/out"
printf 'allow login remaining=0 retry=0 reset=60\ndeny login remaining=0 retry=59.5 reset=59.5\nallow -\n' | cmp - "$dir/out"

"$weir" help | grep -q '^  weir replay' || die "help does not list it"
echo "weir replay: ok"
