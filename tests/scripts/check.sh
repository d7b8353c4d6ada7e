#!/bin/sh
# `weir check` and `weir ask` against a real server, over both protocols, TCP and unix sockets: what they print, and what
# they exit with. Every error has a message that says what to do.
set -eu
export LC_ALL=C.UTF-8
unset WEIR_HTTP WEIR_RESP WEIR_CHECK_SECRET WEIR_CHECK_SECRETS RUNTIME_DIRECTORY 2>/dev/null || true
dir=$(mktemp -d)
export XDG_RUNTIME_DIR="$dir" # for the secret that the server makes
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
die() { echo "$*" >&2; cat "$dir/said" "$dir/complaint" "$dir/err" >&2 2>/dev/null || true; exit 1; }

. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"

# start OPTION...: a server; $http and $resp are its addresses
start() {
    : >"$dir/out"
    "$weir" serve --admin off --max-age 0 --config "$dir/rules.yaml" "$@" </dev/null >"$dir/out" 2>"$dir/err" &
    pid=$!
    await_start "$pid" grep -q 'admin  ' "$dir/out"
    resp=$(sed -n 's/^ *resp  *//p' "$dir/out")
    http=$(sed -n 's/^ *http  *//p' "$dir/out")
}
stop() {
    kill -TERM "$pid"
    wait "$pid" || die "after SIGTERM: exit $?"
    pid=
}

# run CODE COMMAND ARGUMENT...: standard output in said, standard error in complaint
run() {
    expected=$1
    shift
    rc=0
    timeout 60 "$weir" "$@" >"$dir/said" 2>"$dir/complaint" </dev/null || rc=$?
    [ "$rc" = "$expected" ] || die "$*: exit $rc instead of $expected"
}
says() { grep -Eq -e "$1" "$dir/said" || die "expected '$1'"; }
complains() { grep -Fq -e "$1" "$dir/complaint" || die "expected the complaint '$1'"; }
silent() { [ ! -s "$dir/said" ] || die "expected no answer"; }

cat >"$dir/rules.yaml" <<'END'
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 2/h}
  - {name: paced, when: {path: /paced}, key: [user], rate: 1/h, algorithm: leaky_bucket, queue: 1}
  - name: search
    when: {path: /search}
    key: [user, ip]
    rate: 100/min
    tiers: {by: tier, default: free, free: {}, pro: {rate: 1k/min, burst: 2k}}
  - {name: triple, when: {path: /triple}, key: [a, b, c], rate: 5/h}
  - {name: trial, when: {path: /trial}, key: [user], rate: 1/h, shadow: true}
END

# Without a server: which address, and what to try. What cannot be is refused before a server is asked.
run 1 check --http 127.0.0.1:1 api alice
complains "127.0.0.1:1: Connection refused; is 'weir serve' running, with its HTTP listener there?"
complains "--http or --resp"
run 1 check --verbose --http 127.0.0.1:1 api alice
grep -Fxq "weir check: asking 127.0.0.1:1 over HTTP" "$dir/complaint" || die "a process is named that is not there"
run 1 ask --verbose --resp "unix:$dir/none" user=alice
complains "asking unix:$dir/none over RESP"
run 1 ask --resp "unix:$dir/none" user=alice
complains "unix:$dir/none: No such file or directory; is 'weir serve' running, with its RESP listener there?"
run 2 check --http nonsense api alice
complains "found 'nonsense', expected ADDRESS:PORT or unix:PATH"
run 2 check --http 127.0.0.1:1 --resp 127.0.0.1:1 api alice
complains "found --http and --resp, expected one of them"
run 2 check
complains "found nothing, expected LIMIT KEY..."
run 2 ask
complains "found nothing, expected NAME=VALUE..."
run 2 ask path=/search alice
complains "found 'alice', expected NAME=VALUE, such as path=/search"
run 2 ask =alice
run 2 ask user=a path=/ user=b
complains "found 'user' twice"
run 2 ask --resp 127.0.0.1:1 COST=2
complains "--cost and --max-wait"
run 2 check --cost 0 api alice
complains "--cost: found '0', expected a whole number from 1"
run 2 check --cost many api alice
run 2 check --max-wait soon api alice
complains "--max-wait: "
run 2 ask --tier pro path=/
complains "unknown option '--tier'"
run 2 check --secret-file "$dir/none" api alice
complains "--secret-file: cannot read $dir/none"
run 2 check --http 127.0.0.1:1 api "$(printf '\377')"
complains "not UTF-8"
rc=0; WEIR_CHECK_SECRET='a b' "$weir" check --http 127.0.0.1:1 api alice >"$dir/said" 2>"$dir/complaint" </dev/null || rc=$?
[ "$rc" = 2 ] || die "a secret with a blank: exit $rc"

# A port alone is one of this machine.
for alone in 1 :1; do
    run 1 check --http "$alone" api alice
    complains "127.0.0.1:1: Connection refused"
    run 1 ask --resp "redis://$alone" user=alice
    complains "127.0.0.1:1: Connection refused"
done

# coloured COLOUR WORD COMMAND ARGUMENT...: the word has the colour on a terminal; not with NO_COLOR, TERM=dumb, or in a file
coloured() {
    word="$(printf '\033\\[%sm' "$1")$2$(printf '\033\\[0m')"
    plain=$2
    shift 2
    line="'$weir' $*"
    TERM=xterm NO_COLOR='' script -qec "$line" "$dir/terminal" >/dev/null </dev/null || true
    grep -q "$word" "$dir/terminal" || die "$*: no colour: $(cat -v "$dir/terminal")"
    for without in NO_COLOR=1 TERM=dumb; do
        env TERM=xterm "$without" script -qec "$line" "$dir/terminal" >/dev/null </dev/null || true
        if grep -q "$(printf '\033')" "$dir/terminal"; then die "$*: a colour with $without"; fi
        grep -q "$plain" "$dir/terminal" || die "$*: nothing with $without: $(cat -v "$dir/terminal")"
    done
    TERM=xterm sh -c "$line" >"$dir/terminal" 2>&1 </dev/null || true
    if grep -q "$(printf '\033')" "$dir/terminal"; then die "$*: a colour in a file"; fi
}

# stories LISTENER USER PROTOCOL: the same questions over both protocols
stories() {
    at=$1
    user=$2
    over=$3
    # shellcheck disable=SC2086  # an option and its value
    run 0 check $at --verbose api "$user"
    complains "asking ${at#* } over $over: process $pid (weir)"
    says '^verdict +allow$'
    says '^limit +api$'
    says '^remaining +1 of 2$'
    says '^reset in +[0-9]'
    run 0 check $at --peek api "$user"
    says '^remaining +1 of 2$'
    run 0 ask $at path=/api/x user="$user"
    says '^remaining +0 of 2$'
    run 4 check $at api "$user"
    says '^verdict +deny$'
    says '^retry in +[0-9]'
    run 4 ask $at path=/api/x user="$user"
    says '^limit +api$'
    run 4 check $at --peek api "$user"
    run 5 check $at --cost 3 api "$user"
    says '^verdict +never$'
    run 5 ask $at --cost 3 path=/api/x user="$user"
    run 0 ask $at path=/elsewhere user="$user"
    says '^limit +none enforced$'
    run 0 check $at paced "$user"
    run 0 check $at --max-wait 2h paced "$user"
    says '^wait +[0-9]'
    run 0 check $at --tier pro --cost 5 search "$user" 203.0.113.7
    says '^remaining +1995 of 2000$'
    run 0 ask $at path=/trial user="$user" # the shadow limit counts this, so 'none applies' would be wrong
    says '^limit +none enforced$'
    says '^reason +unmatched$'
    run 0 ask $at path=/trial user="$user"
    says '^limit +none enforced$'
    says '^reason +shadow$'
    says '^flags +shadow$'
    run 0 ask $at path=/api/x usr="$user" # 'usr' for 'user': no limit applies
    says '^limit +none enforced$'
    says '^flags +missing$'
    run 5 check $at --json --cost 3 api "$user"
    sed 's/\("reset_after_ms": \)[0-9]*/\1N/' "$dir/said" >"$dir/json-$user"
    grep -q '"retry_after_ms": null' "$dir/said" || die "--json: never has a retry"
    run 1 check $at nope "$user"
    complains "no limit named 'nope'"
    silent
    run 2 check $at search "$user"
    complains "found 1 parts of a key, expected 2"
    run 2 check $at --cost 2 triple "$user" # the name of an option is no part of the key
    complains "found 1 parts of a key, expected 3"
    run 0 check $at --peek --cost 5 triple "$user" COST 2
    run 0 check $at api -- --odd-"$user"
    run 2 check $at api "$user" other
    silent
}
start --http 127.0.0.1:0 --resp 127.0.0.1:0
stories "--http $http" alice HTTP
stories "--resp $resp" bob RESP
diff -u "$dir/json-alice" "$dir/json-bob" || die "the protocols answer differently"
run 0 check --resp "$resp" api "$(printf '\377')" # RESP takes any bytes
WEIR_HTTP=$http run 0 check api carol
WEIR_RESP=$resp run 0 check api dave
WEIR_HTTP=off WEIR_RESP=$resp run 0 check api dave
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1 </dev/null; then # where there are terminals
    coloured 32 allow check --peek --http "$http" api erin
    coloured 33 deny check --peek --http "$http" api alice
    coloured 31 never check --peek --cost 3 --http "$http" api erin
    coloured 1 'weir check:' check --http nonsense api alice
    coloured 32 ok config check "$dir/rules.yaml"
    echo 'limits: [{name: a}]' >"$dir/bad.yaml"
    coloured 31 "$dir/bad.yaml:1:10:" config check "$dir/bad.yaml"
fi
run 1 check --http "$resp" api alice # the wrong protocol, both ways
complains "$resp: "
run 1 check --resp "$http" api alice
complains "$http: found bytes that are not RESP"
stop
# The second of the two requests came in the same minute.
[ "$(grep -c 'warning a request has an attribute that no rule uses found=usr expected=user$' "$dir/err")" = 1 ] ||
    die "the log does not say once that usr is no attribute"

# Unix sockets, and secrets
printf '\none-check-secret\n' >"$dir/check"
echo wrong-secret >"$dir/wrong"
chmod 600 "$dir/check"
start --http "unix:$dir/http" --resp "unix:$dir/resp" --client-field x-real-ip --check-secrets "$dir/check"
for at in "--http $http" "--resp $resp"; do
    # shellcheck disable=SC2086
    run 1 check $at api alice
    complains "; give a secret with --secret-file FILE or WEIR_CHECK_SECRET"
    run 1 check $at --secret-file "$dir/wrong" api alice
    complains "; the secret is from $dir/wrong"
    silent
    run 0 check $at --secret-file "$dir/check" --peek api alice
    WEIR_CHECK_SECRET=one-check-secret run 0 ask $at path=/api/x user=alice
    WEIR_CHECK_SECRETS='one-check-secret
another' run 4 check $at --cost 2 api alice
done
stop

# A store that does not answer: on_store_failure decides, and the answer says so.
cat >"$dir/rules.yaml" <<'END'
limits:
  - {name: open, key: [user], rate: 2/h, on_store_failure: open}
  - {name: closed, key: [user], rate: 2/h, on_store_failure: closed}
END
start --http 127.0.0.1:0 --resp 127.0.0.1:0 --store redis://127.0.0.1:1
for at in "--http $http" "--resp $resp"; do
    # shellcheck disable=SC2086
    run 0 check $at open alice
    says '^flags +degraded$'
    run 4 check $at closed alice
    says '^flags +degraded$'
done
stop
