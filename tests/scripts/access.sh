#!/bin/sh
# Who may do what, as people meet it: redis-cli with -a and --user, curl with tokens, secrets that change.
# test-timeout: 120
set -eu
export LC_ALL=C
for tool in redis-cli curl timeout; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
die() { echo "$*" >&2; [ ! -f "$dir/err" ] || cat "$dir/out" "$dir/err" >&2; exit 1; }

. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"

# start OPTION...: a server of RESP and HTTP on free ports
start() {
    : >"$dir/out"
    "$weir" serve --max-age 0 --resp 127.0.0.1:0 --http 127.0.0.1:0 --admin off --threads 1 "$@" \
        </dev/null >"$dir/out" 2>"$dir/err" &
    pid=$!
    await_start "$pid" grep -q 'admin  ' "$dir/out"
    port=$(sed -n 's/^ *resp  *127\.0\.0\.1:\([0-9]*\)$/\1/p' "$dir/out")
    url=http://127.0.0.1:$(sed -n 's/^ *http  *127\.0\.0\.1:\([0-9]*\)$/\1/p' "$dir/out")
}

stop() {
    kill -TERM "$pid"
    rc=0
    wait "$pid" || rc=$?
    pid=
    [ "$rc" = 0 ] || die "after SIGTERM: exit $rc instead of 0"
}

# says EXPECTED, ARGUMENT...: the beginning of what redis-cli prints, its lines with spaces between them
says() {
    expected=$1
    shift
    got=$(timeout 20 redis-cli -p "$port" --no-auth-warning "$@" 2>&1 | tr '\n' ' ')
    case $got in
    "$expected"*) ;;
    *) die "redis-cli $*: got '$got', expected '$expected'" ;;
    esac
}

# status EXPECTED, PATH, ARGUMENT...: of a check, or a GET
status() {
    expected=$1
    path=$2
    shift 2
    got=$(timeout 20 curl -s -o "$dir/body" -D "$dir/head" -w '%{http_code}' "$@" "$url$path")
    [ "$got" = "$expected" ] || die "curl $* $path: got $got, expected $expected: $(cat "$dir/body")"
}

# refuses CODE, WORDS, OPTION...: a server that does not start, and says why
refuses() {
    code=$1
    words=$2
    shift 2
    rc=0
    timeout 20 "$weir" serve --resp 127.0.0.1:0 --http off --admin off "$@" </dev/null >"$dir/out" 2>"$dir/err" || rc=$?
    [ "$rc" = "$code" ] || die "$*: exit $rc, expected $code"
    grep -q -e "$words" "$dir/err" || die "$*: did not say '$words'"
}

check='{"limit":"api","key":"al"}'
printf 'limits: [{name: api, key: [user], rate: 1000/day}]\n' >"$dir/rules.yaml"
printf 'check-1\ncheck-2\n' >"$dir/check"
printf 'admin-1\n' >"$dir/admin"
chmod 600 "$dir/check" "$dir/admin"

# Both roles, from files.
start --config "$dir/rules.yaml" --check-secrets "$dir/check" --admin-secrets "$dir/admin"
! grep -q 'read by others' "$dir/err" || die "a warning about files of mode 0600"
says 'NOAUTH Authentication required.' PING
says 'PONG' -a check-1 PING
says 'PONG' -3 -a check-2 PING
says 'PONG' --user default --pass check-1 PING
says 'PONG' --user check --pass check-1 PING
says 'PONG' --user admin --pass admin-1 PING
says 'AUTH failed: WRONGPASS' --user admin --pass check-1 PING
says 'AUTH failed: WRONGPASS' -a nonsense PING
says 'allow api 1000 999 0 86400 0' -a check-1 WEIR.CHECK api al
says 'NOPERM' -a check-1 WEIR.BLOCK api al FOR 1000
says 'never api 1000 0 -1' -a admin-1 WEIR.BLOCK api al FOR forever
grep -q ' audit key changed verb=block address=127.0.0.1 role=admin limit=api key=al for_ms=forever$' "$dir/err" ||
    die "a block without a line in the log"
status 403 /v1/check -H 'Authorization: Bearer check-1' -d "$check"
says 'allow api 1000 999' -a admin-1 WEIR.UNBLOCK api al

status 401 /v1/check -d "$check"
tr -d '\r' <"$dir/head" | grep -q '^WWW-Authenticate: Bearer realm="weir"$' || die "401 without a challenge"
tr -d '\r' <"$dir/head" | grep -q '^Content-Type: application/problem+json$' || die "401 without a problem"
status 200 /v1/check -d "$check" -H 'Authorization: Bearer check-2'
status 200 /v1/check -d "$check" -u default:check-1
status 200 /v1/check -d "$check" -u admin:admin-1
status 401 /v1/check -d "$check" -u admin:check-1
status 401 /v1/check -d "$check" -H 'Authorization: Bearer nonsense'
status 200 /v1/auth -H 'Weir-Secret: check-1' -H 'Authorization: Bearer of-a-client'
status 200 /healthz
status 200 /readyz

# A reservation of one wire, settled on the other.
id=$(timeout 20 redis-cli -p "$port" --no-auth-warning -a check-1 WEIR.RESERVE api bo COST 10 TTL 60000 | tail -n 2 | head -n 1)
status 200 /v1/settle -H 'Authorization: Bearer check-1' -d "{\"reservation\":\"$id\",\"actual\":4}"
grep -q '"remaining":996,' "$dir/body" || die "settled: $(cat "$dir/body")"
says 'NORESERVATION' -a check-1 WEIR.CANCEL "$id"
status 404 /v1/cancel -H 'Authorization: Bearer check-1' -d "{\"reservation\":\"$id\"}"

# Secrets change without a restart; a bad file changes nothing.
printf 'check-2\ncheck-3\n' >"$dir/check"
kill -HUP "$pid"
until_true grep -q 'secrets reloaded' "$dir/err"
says 'AUTH failed: WRONGPASS' -a check-1 PING
says 'PONG' -a check-2 PING
says 'PONG' -a check-3 PING
: >"$dir/check"
kill -HUP "$pid"
until_true grep -q 'the old secrets stay' "$dir/err"
says 'PONG' -a check-3 PING
says 'NOAUTH' PING
! grep -q 'check-[0-9]\|admin-[0-9]' "$dir/err" || die "a secret in the log"
stop

# From the environment, and from the rule file: files beside it. A flag counts before, a variable before the file.
printf 'of-file\n' >"$dir/check"
chmod 644 "$dir/check"
printf 'server: {check_secrets: check}\nlimits: [{name: api, key: [user], rate: 1000/day}]\n' >"$dir/secret.yaml"
start --config "$dir/secret.yaml"
grep -q 'warning a file of secrets can be read by other users .*found=0644' "$dir/err" || die "no warning about mode 0644"
says 'PONG' -a of-file PING
stop
WEIR_CHECK_SECRETS='of-environment
second' start --config "$dir/secret.yaml"
says 'PONG' -a of-environment PING
says 'PONG' -a second PING
says 'AUTH failed: WRONGPASS' -a of-file PING
stop
WEIR_CHECK_SECRETS=of-environment start --config "$dir/secret.yaml" --check-secrets "$dir/admin"
says 'PONG' -a admin-1 PING
says 'AUTH failed: WRONGPASS' -a of-environment PING
stop

# Beyond this machine.
refuses 2 'resp would listen on 0.0.0.0:.*--check-secrets FILE or set WEIR_CHECK_SECRETS.*--insecure' --resp 0.0.0.0:0
refuses 2 'http would listen on 0.0.0.0:' --http 0.0.0.0:0
refuses 2 'admin would listen on 0.0.0.0:.*--admin-secrets' --admin 0.0.0.0:0 --check-secrets "$dir/check"
refuses 1 "$dir/none" --check-secrets "$dir/none"
: >"$dir/empty"
refuses 2 'found no secret, expected one on each line' --admin-secrets "$dir/empty"
start --resp 0.0.0.0:0 --insecure
stop
