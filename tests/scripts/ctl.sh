#!/bin/sh
# `weir ctl` and `weir top` against a real server: what they print, what they exit with, what they do to a terminal.
set -eu
export LC_ALL=C.UTF-8
unset WEIR_ADMIN WEIR_ADMIN_SECRET WEIR_ADMIN_SECRETS RUNTIME_DIRECTORY 2>/dev/null || true
dir=$(mktemp -d)
export XDG_RUNTIME_DIR="$dir" # for the secret that the server makes
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
die() { echo "$*" >&2; cat "$dir/said" "$dir/complaint" "$dir/err" >&2 2>/dev/null || true; exit 1; }

. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"

# start OPTION...: a server; $admin is its address
start() {
    : >"$dir/out"
    "$weir" serve --resp off --max-age 0 --config "$dir/rules.yaml" "$@" </dev/null >"$dir/out" 2>"$dir/err" &
    pid=$!
    await_start "$pid" grep -q 'admin  ' "$dir/out"
    admin=$(sed -n 's/^ *admin  *//p' "$dir/out")
    http=$(sed -n 's/^ *http  *//p' "$dir/out")
}

stop() {
    kill -TERM "$pid"
    rc=0
    wait "$pid" || rc=$?
    pid=
    [ "$rc" = 0 ] || die "after SIGTERM: exit $rc instead of 0"
}

# ctl CODE ARGUMENT...: standard output in said, standard error in complaint
ctl() {
    expected=$1
    shift
    rc=0
    timeout 60 "$weir" ctl --admin "$admin" "$@" >"$dir/said" 2>"$dir/complaint" </dev/null || rc=$?
    [ "$rc" = "$expected" ] || die "ctl $*: exit $rc instead of $expected"
}
says() { grep -Eq -e "$1" "$dir/said" || die "expected '$1'"; }
complains() { grep -Fq -e "$1" "$dir/complaint" || die "expected the complaint '$1'"; }
complains_once() { [ "$(grep -Fc -e "$1" "$dir/complaint")" = 1 ] || die "expected the complaint '$1' once"; }

cat >"$dir/rules.yaml" <<'END'
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 2/h}
  - name: search
    when: {path: /search}
    key: [user, ip]
    rate: 100/min
    tiers: {by: tier, default: free, free: {}, pro: {rate: 1k/min, burst: 2k}}
END

# Nobody there: which address, and what to try. What cannot be is refused before anybody is asked.
admin=127.0.0.1:1
ctl 1 status
complains "127.0.0.1:1: Connection refused"
complains "--admin ADDR:PORT or WEIR_ADMIN"
admin=unix:$dir/none
ctl 1 status
complains "unix:$dir/none: No such file or directory"
for bad in nonsense 127.0.0.1 127.0.0.1:99999 :8082x unix:; do
    admin=$bad
    ctl 2 status
    complains "expected"
done
admin=127.0.0.1:1
ctl 2 limts
complains "did you mean 'limits'?"
ctl 2 key gte api alice
complains "did you mean 'key get'?"
[ "$("$weir" -v)" = "$("$weir" version)" ] || die "weir -v is not weir version"
ctl 2
complains "weir ctl: found nothing, expected one of these:"
complains "  key block LIMIT KEY... "
complains "  status "
ctl 2 key
complains "weir ctl: key: found nothing, expected one of these:"
complains "  key unblock LIMIT KEY... "
if grep -q '^  status' "$dir/complaint"; then die "key alone lists other commands"; fi
ctl 2 key terminate
complains "weir ctl: key: found 'terminate', expected one of these:"
complains "  key reset LIMIT KEY... "
ctl 2 keys
complains "unknown command 'keys'"
ctl 2 status now
complains "found 1 argument for status, expected: weir ctl status"
ctl 2 limits --units 3
complains "limits has no --units"
ctl 2 key block api alice --for soon
complains "--for: "
ctl 2 key block api alice --for 0s
ctl 2 key refund api alice --units 0
ctl 2 log-level loud
complains "expected error, warning, info or debug"
ctl 2 mode off
complains "expected enforce or shadow"
ctl 2 put "$dir/none.yaml"
complains "cannot read $dir/none.yaml"
ctl 2 --secret-file "$dir/none" status
complains "--secret-file: cannot read $dir/none"
: >"$dir/empty"
ctl 2 --secret-file "$dir/empty" status
complains "expected 1 to 1024"

start --http 127.0.0.1:0 --admin 127.0.0.1:0
unsent="/v1/auth cannot send 'user' and 'tier'; add attributes: {user: 'header:X-User-Id', tier: 'header:X-Tier'}"
grep -Fq "warning: limit 'api', limit 'search': $unsent" "$dir/err" || die "no warning of what gateways cannot send"
check() { # check KEY: the status of a check of api
    curl -s -m 10 -o /dev/null -w '%{http_code}' -d "{\"limit\":\"api\",\"key\":\"$1\"}" "$http/v1/check"
}
[ "$(check alice)$(check alice)$(check alice)" = 200200429 ] || die "api is not 2/h"

# limits
ctl 0 limits
says '^LIMIT +TIER +RATE +BURST +ALGORITHM +MODE +KEYS +CAPACITY +DENIED/S +ALLOWED +DENIED +NEVER +SHADOW +MISSING +EVICTED$'
says '^api +- +2/h +2 +token_bucket +enforce +1 +[0-9]+ +[0-9.]+ +2 +1 +0 +0 +0 +0$'
says '^search +pro +1k/min +2k '
ctl 0 limits search
[ "$(wc -l <"$dir/said")" = 3 ] || die "limits search: not two tiers"
ctl 0 --json limits api
says '"rate": "2/h"'
ctl 1 limits nope
complains "nope"
complains "(404)"

# The limit that denies most per second comes first, wherever the rule file has it.
printf 'name: late\nkey: [user]\nrate: 1/day\n' >"$dir/late.yaml"
ctl 0 put "$dir/late.yaml"
late_is_first() {
    curl -s -m 10 -o /dev/null -d '{"limit":"late","key":"alice"}' "$http/v1/check"
    ctl 0 limits
    [ "$(awk 'NR == 2 { print $1 }' "$dir/said")" = late ]
}
until_true late_is_first
awk 'NR == 2 && $9 > 0 { found = 1 } END { exit !found }' "$dir/said" || die "the first limit denies nothing per second"
[ "$(awk 'NR > 2 { print $1 }' "$dir/said" | tr '\n' ' ')" = "api search search adhoc " ] || die "the other limits are not in the order of denials and then of the file"
ctl 0 delete late

# keys
ctl 0 key get api alice
says '^verdict +deny$'
says '^remaining +0 of 2$'
says '^retry in +'
ctl 0 --json key get api alice
says '"blocked_ms": 0'
ctl 0 key reset api alice
says '^api alice: '
[ "$(check alice)" = 200 ] || die "reset did nothing"
ctl 0 key block api bob --for 1h
says '^api bob: blocked for 1h$'
ctl 0 key get api bob
says '^blocked +'
[ "$(check bob)" = 429 ] || die "block did nothing"
ctl 0 key block api bob --for forever
ctl 0 key get api bob
says '^blocked +without end$'
[ "$(check bob)" = 403 ] || die "a block without end is not a 403"

# explain
ctl 0 explain path=/nowhere user=bob
says '^verdict +allow$'
says '^LIMIT +LINE +MODE +KEY +VERDICT +REMAINING +RETRY +RESET +BLOCKED +WHY NOT$'
ctl 0 --json explain user=bob cost=2
says '"applies": (true|false)'
ctl 2 explain bob
complains "expected NAME=VALUE"
ctl 2 explain user=bob user=eve
complains "found a name twice"
ctl 2 explain user=bob cost=0
complains "expected cost=N"
ctl 2 explain ip=nonsense
complains "(400)"

# blocks
ctl 0 key block api carol --for 1h --why 'asks too often'
ctl 0 blocks
says '^LIMIT +TIER +KEY +UNTIL +LEFT +BY +WHY$'
says '^api +- +carol +20[0-9T:-]+Z +35[0-9]+s +admin 127.0.0.1 +asks too often$'
says '^api +- +bob +unblocked +- +admin 127.0.0.1 +-$'
[ "$(wc -l <"$dir/said")" = 3 ] || die "blocks has other lines than one for each block"
ctl 0 key unblock api carol
ctl 0 --json blocks api
says '"key": "bob"'
grep -q carol "$dir/said" && die "blocks lists a key that was unblocked"
ctl 1 blocks nope
complains "(404)"
ctl 2 key reset api carol --why x
complains "key reset has no --why"
ctl 0 key unblock api bob
[ "$(check bob)" = 200 ] || die "unblock did nothing"
ctl 0 key penalize api bob --units 1
says '^api bob: 1 unit taken$'
[ "$(check bob)" = 429 ] || die "penalize did nothing"
ctl 0 key penalize api bob --units 1
ctl 0 key refund api bob --units=3
[ "$(check bob)" = 200 ] || die "refund did nothing"
ctl 0 key get search alice 203.0.113.7 --tier pro
says '^remaining +2000 of 2000$'
ctl 2 key get search alice
complains "(400)"
ctl 1 key get nope alice
complains "(404)"
ctl 0 key get api -- --odd
says '^remaining +2 of 2$'
ctl 0 key get api 'a&b=c d+%/é'
ctl 2 key reset api "$(printf '\377')"
complains "not UTF-8"

# one limit
printf 'name: new\nkey: [user]\nrate: 7/min\n' >"$dir/new.yaml"
ctl 0 put "$dir/new.yaml"
says '^new: added until the next reload or restart$'
complains_once "limit 'new': /v1/auth cannot send 'user'; add"
echo '{"name": "new", "key": ["user"], "rate": "8/min"}' | timeout 60 "$weir" ctl --admin "$admin" put - >"$dir/said" 2>"$dir/complaint" || die "put -"
says '^new: replaced until the next reload or restart$'
ctl 0 limits new
says ' 8/min '
sed -i 's|7/min|often|' "$dir/new.yaml"
ctl 1 put "$dir/new.yaml"
complains_once "found 'often'"
complains "weir ctl: the rules stay as they were (422)"
echo 'limits: []' >"$dir/new.yaml"
ctl 2 put "$dir/new.yaml"
complains "expected one limit"
printf 'name: [\n' >"$dir/new.yaml"
ctl 2 put "$dir/new.yaml"
complains "new.yaml:"
ctl 0 delete new
says '^new: deleted; if a rule file has it, it returns with the next reload or restart$'
ctl 1 delete new

# the server
ctl 0 status
says '^state +ready$'
says '^version +'
says '^notices +none$'
ctl 0 --json status
says '"state": "ready"'
ctl 0 ready
says '^ready$'
ctl 0 --json ready
says '"ready": true'
ctl 0 config
says '^ *rate: .*2/h'
ctl 0 log-level
says '^log level: info$'
ctl 0 log-level debug
says '^log level: debug$'
ctl 0 top-denied 5
says '^the last [0-9]+ seconds; every other key was denied at most [0-9]+ times?$'
says '^ *DENIED +ERROR +REASON +LIMIT +KEY$'
says '^ +[0-9]+ +0 +limit +api +'
ctl 0 top-denied 5 --minutes 1
says '^ +[0-9]+ +0 +limit +api +'
ctl 0 top-denied --json --minutes 5
says '"minutes": 5'
ctl 2 top-denied none
ctl 2 top-denied --minutes 2
complains "--minutes: found '2', expected 1, 5 or 15"
ctl 2 status --minutes 5
complains "status has no --minutes"

# the kill switch
check carol >/dev/null; check carol >/dev/null
[ "$(check carol)" = 429 ] || die "carol is not denied"
ctl 0 mode shadow
says '^mode: shadow$'
ctl 0 status
says '^Kill switch since 20.*Z: nothing is denied$'
says '^  When the reason is gone, run '
says '^notices +1$'
if command -v script >/dev/null; then
    TERM=xterm NO_COLOR='' script -qec "'$weir' ctl --admin $admin status" "$dir/terminal" >/dev/null </dev/null || true
    grep -q "$(printf '^\033\\[33mKill switch since .*: nothing is denied\033\\[0m')" "$dir/terminal" || die "no colour: $(cat -v "$dir/terminal")"
fi
timeout 60 "$weir" top --admin "$admin" --once --interval 100ms >"$dir/said" 2>"$dir/complaint" </dev/null || die "top in shadow"
says '^warning +Kill switch since 20.*Z: nothing is denied$'
[ "$(check carol)" = 200 ] || die "the kill switch did nothing"
ctl 0 limits
says '^api .* shadow '
says '^search .* shadow '
ctl 0 mode enforce
[ "$(check carol)" = 429 ] || die "enforce did nothing"
ctl 0 mode shadow api
says '^api: shadow$'
[ "$(check carol)" = 200 ] || die "the kill switch of one limit did nothing"
ctl 0 mode
says '^mode: enforce$'
ctl 1 mode shadow nope
ctl 0 mode enforce api

# reload: the messages, and an exit status that says whether the new rules count
ctl 0 reload
says '^reloaded: generation [0-9]+$'
complains_once "limit 'api', limit 'search': $unsent"
cp "$dir/rules.yaml" "$dir/good.yaml"
echo 'limits: [{name: api, key: [user], rate: often, mood: bad}]' >"$dir/rules.yaml"
ctl 1 reload
complains "rules.yaml:1:"
complains_once "found 'often'"
complains_once "unknown key 'mood'"
complains "weir ctl: the old rules stay (422)"
ctl 0 limits api
says ' 2/h '
cp "$dir/good.yaml" "$dir/rules.yaml"

# top, without a terminal
timeout 60 "$weir" top --admin "$admin" --interval 100ms >"$dir/said" 2>"$dir/complaint" </dev/null || die "top"
says '^weir .* at 127\.0\.0\.1:[0-9]+  ready'
says '^LIMIT +TIER +RATE +MODE +ALLOW/S +DENY/S +NEVER/S +SHADOW/S +KEYS +FILL +EVICT/S$'
says '^api '
says '^DENIED/15MIN +REASON +LIMIT +KEY$'
timeout 60 "$weir" top --admin "$admin" --interval 100ms --minutes 5 >"$dir/said" 2>"$dir/complaint" </dev/null || die "top --minutes"
says '^DENIED/5MIN +REASON +LIMIT +KEY$'
timeout 60 "$weir" top --admin "$admin" --json --interval 100ms >"$dir/said" 2>"$dir/complaint" </dev/null || die "top --json"
says '"decisions_per_second"'
if command -v python3 >/dev/null; then python3 -m json.tool "$dir/said" >/dev/null || die "top --json is not JSON"; fi
for bad in 10ms 2h soon; do
    rc=0; timeout 60 "$weir" top --admin "$admin" --interval "$bad" >"$dir/said" 2>"$dir/complaint" </dev/null || rc=$?
    [ "$rc" = 2 ] || die "top --interval $bad: exit $rc"
done
rc=0; timeout 60 "$weir" top --admin 127.0.0.1:1 >"$dir/said" 2>"$dir/complaint" </dev/null || rc=$?
[ "$rc" = 1 ] || die "top without a server: exit $rc"
complains "127.0.0.1:1: Connection refused"

# top, with one
if command -v python3 >/dev/null; then
    check "$(printf 'mal\\u001b[31mlory')" >/dev/null
    SERVER_PID=$pid timeout 200 python3 "$WEIR_SOURCE_DIR/tests/scripts/terminal.py" "$weir" top --admin "$admin" --interval 100ms \
        >"$dir/said" 2>"$dir/complaint" </dev/null || die "top on a terminal"
else
    echo "python3 is missing: the terminal was left out"
fi
stop

# A unix socket, and secrets: which option gives one, which role is needed.
printf 'one-check\n' >"$dir/check"
printf '\nold-admin\none-admin\n' >"$dir/admin"
chmod 600 "$dir/check" "$dir/admin"
start --http off --admin "unix:$dir/socket" --check-secrets "$dir/check" --admin-secrets "$dir/admin"
if grep -Fq '/v1/auth' "$dir/err"; then die "a warning about gateways without a listener for them"; fi
ctl 1 status
complains "(401)"
complains "--secret-file FILE or WEIR_ADMIN_SECRET"
ctl 0 ready # a health check knows no secret
echo wrong >"$dir/wrong"
ctl 1 --secret-file "$dir/wrong" status
complains "(401); the secret is from $dir/wrong"
ctl 0 --secret-file "$dir/check" status
ctl 1 --secret-file "$dir/check" limits
complains "(403)"
ctl 1 --secret-file "$dir/check" reload
complains "(403)"
complains "role admin"
ctl 0 --secret-file "$dir/admin" reload
WEIR_ADMIN_SECRET=one-admin timeout 60 "$weir" ctl --admin "$admin" reload >"$dir/said" 2>"$dir/complaint" </dev/null || die "WEIR_ADMIN_SECRET"
WEIR_ADMIN_SECRETS='one-admin
other' WEIR_ADMIN=$admin timeout 60 "$weir" ctl reload >"$dir/said" 2>"$dir/complaint" </dev/null || die "WEIR_ADMIN_SECRETS"
rc=0; WEIR_ADMIN_SECRET='a b' timeout 60 "$weir" ctl --admin "$admin" status >"$dir/said" 2>"$dir/complaint" </dev/null || rc=$?
[ "$rc" = 2 ] || die "a secret with a blank: exit $rc"

# Only the secrets fail: the rules are new, and the message says so.
sed -i 's|rate: 2/h|rate: 3/h|' "$dir/rules.yaml"
cp "$dir/admin" "$dir/own"
: >"$dir/check"
ctl 1 --secret-file "$dir/own" reload
complains "the new rules are in effect, but the old secrets stay: "
grep -q 'reload failed.*the old secrets stay' "$dir/err" || die "the audit does not say what failed"
ctl 0 --secret-file "$dir/own" limits api
says ' 3/h '
echo one-check >"$dir/check"
echo 'limits: [{name: api, key: [user], rate: often}]' >"$dir/rules.yaml"
ctl 1 --secret-file "$dir/own" reload
complains "weir ctl: the old rules stay (422)"
cp "$dir/good.yaml" "$dir/rules.yaml"

timeout 60 "$weir" top --admin "$admin" --secret-file "$dir/admin" --interval 100ms >"$dir/said" 2>"$dir/complaint" </dev/null || die "top with a secret"
stop

# What the command line says is in effect and shown, also a store that does not answer.
start --admin 127.0.0.1:0 --http off --admin-secrets "$dir/admin" --store redis://127.0.0.1:1
ctl 0 --secret-file "$dir/admin" config
says '^ *url: .*redis://127.0.0.1:1'
stop

# The keys denied most are in memory alone: the folder of the state has none of them, and a restart begins anew.
mkdir -m 700 "$dir/state"
start --admin 127.0.0.1:0 --http 127.0.0.1:0 --admin-secrets "$dir/admin" --state "$dir/state"
for _ in 1 2 3 4; do check key-of-a-client >/dev/null; done
ctl 0 --secret-file "$dir/admin" top-denied
says ' 0 +limit +api +key-of-a-client$'
stop
[ -n "$(find "$dir/state" -type f -size +0)" ] || die "there is no state"
if grep -rqa key-of-a-client "$dir/state"; then die "the state names a key"; fi
start --admin 127.0.0.1:0 --http 127.0.0.1:0 --admin-secrets "$dir/admin" --state "$dir/state"
ctl 0 --secret-file "$dir/admin" top-denied
says '^ *DENIED +ERROR +REASON +LIMIT +KEY$'
if grep -q key-of-a-client "$dir/said"; then die "a restart lists what was denied before it"; fi
stop
