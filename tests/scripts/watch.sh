#!/bin/sh
# `weir watch` against a real server: a line for each change, what it exits with, and its picture on a terminal.
set -eu
export LC_ALL=C.UTF-8
unset WEIR_ADMIN WEIR_ADMIN_SECRET WEIR_ADMIN_SECRETS RUNTIME_DIRECTORY NO_COLOR 2>/dev/null || true
dir=$(mktemp -d)
export XDG_RUNTIME_DIR="$dir" # for the secret that the server makes
pid=
watching=
# shellcheck disable=SC2086 # each is one process, or none
trap 'kill -KILL $pid $watching 2>/dev/null || true; rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
die() { echo "$*" >&2; cat "$dir/said" "$dir/complaint" "$dir/err" >&2 2>/dev/null || true; exit 1; }

. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"

cat >"$dir/rules.yaml" <<'END'
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 2/day, algorithm: sliding_log}
  - {name: bucket, when: {path: /bucket}, key: [user], rate: 1/s, burst: 5}
  - {name: pair, when: {path: /pair}, key: [user|ip, method], rate: 9/h, tiers: {by: tier, default: free, free: {}, pro: {rate: 90/h}}}
  - {name: all, when: {path: /all}, key: [], rate: 7/h}
END

# A server; what it says of an earlier one is forgotten first.
start() {
    : >"$dir/out"
    "$weir" serve --resp off --max-age 0 --no-watch --config "$dir/rules.yaml" --http 127.0.0.1:0 --admin 127.0.0.1:0 </dev/null >"$dir/out" 2>"$dir/err" &
    pid=$!
    await_start "$pid" grep -q 'admin  ' "$dir/out"
    WEIR_ADMIN=$(sed -n 's/^ *admin  *//p' "$dir/out")
    HTTP=$(sed -n 's/^ *http  *//p' "$dir/out")
    export WEIR_ADMIN HTTP
}
start
ask() { curl -s -m 10 -o /dev/null -d "{\"limit\":\"api\",\"key\":\"$1\"}" "$HTTP/v1/check"; }

# watch CODE ARGUMENT...: standard output in said, standard error in complaint
watch() {
    expected=$1
    shift
    rc=0
    timeout 60 "$weir" watch "$@" >"$dir/said" 2>"$dir/complaint" </dev/null || rc=$?
    [ "$rc" = "$expected" ] || die "watch $*: exit $rc instead of $expected"
}
says() { grep -Eq -e "$1" "$dir/said" || die "expected '$1'"; }
complains() { grep -Fq -e "$1" "$dir/complaint" || die "expected the complaint '$1'"; }

# What cannot be answered is an error.
watch 2
complains "LIMIT [KEY...]"
watch 2 api alice --count 0
watch 2 api alice --interval 1ms
watch 1 nope alice --count 1
complains "nope"
watch 2 api alice more --count 1
complains "found 2 parts of a key"
WEIR_ADMIN=127.0.0.1:1 watch 1 api alice --count 1
complains "127.0.0.1:1: Connection refused"

# One line for each change: a key that nobody uses has one, however often it is looked at.
watch 0 api alice --count 5 --interval 100ms
[ "$(wc -l <"$dir/said")" = 1 ] || die "more than one line"
says '^[0-9-]+T[0-9:.]+Z allow  2 of 2 left, no use seen, retry now, reset fresh$'
watch 0 pair 192.0.2.7 GET --by ip --tier pro --count 1
says ' allow  90 of 90 left'
watch 0 all --count 1
says ' allow  7 of 7 left'

# A key that is used, denied, blocked and unblocked.
: >"$dir/said"
"$weir" watch api bob --interval 100ms </dev/null >"$dir/said" 2>"$dir/complaint" &
watching=$!
until_true grep -q ' allow  2 of 2 left, no use seen' "$dir/said"
ask bob
until_true grep -Eq ' allow  1 of 2 left, in use, about [0-9.]+/s, retry now, reset in (1 d|23 h 59 min)$' "$dir/said"
ask bob
until_true grep -Eq ' deny   0 of 2 left, no use seen, retry in ' "$dir/said"
"$weir" ctl key block api bob --for 1h >/dev/null
until_true grep -Eq ' deny  \(blocked\)  blocked, no use seen, retry in ' "$dir/said"
"$weir" ctl key reset api bob >/dev/null
"$weir" ctl key unblock api bob >/dev/null
is_whole_again() { tail -n 1 "$dir/said" | grep -q ' allow  2 of 2 left, no use seen'; }
until_true is_whole_again

# The server goes away, and Ctrl-C ends the watch: the last look had no answer.
kill -TERM "$pid"
wait "$pid" || die "the server: $?"
pid=
until_true grep -q 'Connection refused' "$dir/said"
[ "$(grep -c 'Connection refused' "$dir/said")" = 1 ] || die "the same line twice"
kill -INT "$watching"
rc=0
wait "$watching" || rc=$?
watching=
[ "$rc" = 1 ] || die "after SIGINT without a server: exit $rc instead of 1"
[ ! -s "$dir/complaint" ] || die "complaints"

# On a terminal.
start
python3 -B "$WEIR_SOURCE_DIR/tests/scripts/terminal_watch.py" "$weir" watch >"$dir/said" 2>"$dir/complaint" || die "the terminal"

# A reader that ends, ends it.
: >"$dir/said"
timeout 60 "$weir" watch api carol --interval 100ms 2>"$dir/complaint" </dev/null | head -n 1 >"$dir/said" &
watching=$!
until_true test -s "$dir/said"
ask carol
wait "$watching" || die "head: $?"
watching=
