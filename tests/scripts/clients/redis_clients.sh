#!/bin/sh
# `weir serve` as operators start it, asked by the clients that people have: redis-cli, redis-benchmark, python3-redis,
# hiredis.
# test-timeout: 120
set -eu
export LC_ALL=C
for tool in redis-cli redis-benchmark timeout; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
die() { echo "$*" >&2; [ ! -f "$dir/err" ] || cat "$dir/out" "$dir/err" >&2; exit 1; }

secret=a-secret-of-the-operator
export WEIR_ADMIN_SECRETS=$secret # clients may check without a secret

. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"

# start FILES OPTION...: a server that may open so many files
start() {
    : >"$dir/out"
    (
        # shellcheck disable=SC3045  # sh of Debian has it
        ulimit -n "$1"
        shift
        exec "$weir" serve --http off --admin off --max-age 0 "$@" # a busy machine is no overload here
    ) </dev/null >"$dir/out" 2>"$dir/err" &
    pid=$!
    await_start "$pid" grep -q 'admin  ' "$dir/out"
    port=$(sed -n 's/^ *resp  *127\.0\.0\.1:\([0-9]*\)$/\1/p' "$dir/out")
}

# Ends it; it must leave in order.
stop() {
    kill -TERM "$pid"
    rc=0
    wait "$pid" || rc=$?
    pid=
    [ "$rc" = 0 ] || die "after SIGTERM: exit $rc instead of 0"
}

ask() { timeout 20 redis-cli -p "$port" "$@"; }

# says EXPECTED, COMMAND...: the lines of the reply, with spaces between them
says() {
    expected=$1
    shift
    got=$(ask "$@" | tr '\n' ' ')
    [ "$got" = "$expected " ] || die "$*: got '$got', expected '$expected '"
}

cat >"$dir/rules.yaml" <<'END'
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 1000/day}
END

# What cannot start says why.
rc=0; timeout 20 "$weir" serve --http off --admin off --config "$dir/none.yaml" --resp 127.0.0.1:0 >"$dir/out" 2>"$dir/err" </dev/null || rc=$?
[ "$rc" = 2 ] || die "a config that is not there: exit $rc"
printf 'limits:\n  - {name: api, rate: often}\n' >"$dir/bad.yaml"
rc=0; timeout 20 "$weir" serve --http off --admin off --config "$dir/bad.yaml" --resp 127.0.0.1:0 >"$dir/out" 2>"$dir/err" </dev/null || rc=$?
[ "$rc" = 2 ] || die "a bad config: exit $rc"
grep -q 'bad.yaml:2:' "$dir/err" || die "a bad config: no place"
[ ! -s "$dir/out" ] || die "a bad config: something was started"
for address in nonsense 127.0.0.1:99999 :x; do
    rc=0; timeout 20 "$weir" serve --http off --admin off --resp "$address" >"$dir/out" 2>"$dir/err" </dev/null || rc=$?
    [ "$rc" = 2 ] || die "--resp $address: exit $rc"
done

start 1024 --config "$dir/rules.yaml" --resp 127.0.0.1:0 --threads 2
rc=0; timeout 20 "$weir" serve --http off --admin off --resp "127.0.0.1:$port" >"$dir/out2" 2>"$dir/err2" </dev/null || rc=$?
[ "$rc" = 1 ] || die "an occupied port: exit $rc"
grep -q "127.0.0.1:$port: cannot be listened on: Address already in use" "$dir/err2" || die "an occupied port: $(cat "$dir/err2")"

# redis-cli
says PONG PING
says 'allow api 1000 999 0 86400 0  limit' WEIR.CHECK api alice
says 'verdict allow limit api quota 1000 remaining 999 retry_after_ms 0 reset_after_ms 86400 delay_ms 0 flags  reason limit' \
    -3 WEIR.CHECK api erin
says '0 16 15 -1 2' CL.THROTTLE k 15 30 60
says '1 5 5 -1 0' CL.THROTTLE j 4 6 60 6
ask WEIR.CHECK nope x | grep -qx "NOLIMIT no limit named 'nope'" || die "no NOLIMIT"
ask INFO server | grep -q weir_version || die "INFO"
yes PING | head -1000 | ask | grep -c PONG | grep -qx 1000 || die "1000 lines"

# redis-benchmark: errors would end it.
for how in "" "-3" "-P 64" "-3 -P 64"; do
    # shellcheck disable=SC2086  # words on purpose
    timeout 60 redis-benchmark -p "$port" $how -q -c 10 -n 5000 -r 1000 CL.THROTTLE key:__rand_int__ 15 30 60 >"$dir/bench" 2>&1 ||
        die "redis-benchmark $how: $(cat "$dir/bench")"
    grep -q 'requests per second' "$dir/bench" || die "redis-benchmark $how: $(cat "$dir/bench")"
    if grep -qi error "$dir/bench"; then die "redis-benchmark $how: $(cat "$dir/bench")"; fi
done
timeout 60 redis-benchmark -p "$port" -q -n 5000 -t ping_mbulk >"$dir/bench" 2>&1 || die "redis-benchmark -t ping_mbulk"
# Without arguments it sends PING as a line, PING, and then SET, which there is not.
timeout 60 redis-benchmark -p "$port" -q -n 5000 -t ping >"$dir/bench" 2>&1 || die "redis-benchmark -t ping: $(cat "$dir/bench")"
timeout 60 redis-benchmark -p "$port" -q -n 100 >"$dir/bench" 2>&1 || true
tr '\r' '\n' <"$dir/bench" | grep -q 'PING_INLINE: .* requests per second' || die "redis-benchmark: $(cat "$dir/bench")"
grep -q "unknown command 'SET'" "$dir/bench" || die "redis-benchmark: $(cat "$dir/bench")"

# What redis-cli says of transactions and commands.
says 'OK QUEUED QUEUED 0 1 0 -1 60 1 1 0 60 60' <<'END'
MULTI
CL.THROTTLE multi 0 1 60
CL.THROTTLE multi 0 1 60
EXEC
END
ask DEL multi | grep -q '^NOPERM ' || die "DEL without the role admin"
says 1 --no-auth-warning -a "$secret" DEL multi
says '0 5 4 -1 10' EVAL "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])" 1 eval 4 6 60
[ "$(ask COMMAND COUNT)" = "$(ask COMMAND LIST | wc -l)" ] || die "COMMAND LIST"

# python3-redis
python=
for p in python3 /usr/bin/python3; do
    if "$p" -c 'import redis' 2>/dev/null; then python=$p; fi
done
if [ -n "$python" ]; then
    timeout 60 "$python" - "$port" "$secret" <<'END' || die "python3-redis"
import sys, threading, redis
r = redis.Redis(host='127.0.0.1', port=int(sys.argv[1]), decode_responses=True, client_name="test")
assert r.ping() is True and r.echo("x") == "x" and r.client_getname() == "test"
assert r.execute_command("CL.THROTTLE", "p", 4, 6, 60) == [0, 5, 4, -1, 10]
assert r.execute_command("WEIR.CHECK", "api", "bob") == ["allow", "api", 1000, 999, 0, 86400, 0, "", "limit"]
assert r.execute_command("WEIR.CHECK", "api", b"a\0\r\nb", "COST", 3)[3] == 997
try:
    r.execute_command("WEIR.CHECK", "nope", "x")
    raise SystemExit("no error")
except redis.ResponseError as e:
    assert str(e) == "NOLIMIT no limit named 'nope'", e
# pipeline() sends MULTI and EXEC unless it is told not to.
p = r.pipeline()
for i in range(3):
    p.execute_command("CL.THROTTLE", "tx", 1, 1, 60)
p.execute_command("WEIR.CHECK", "api", "tx").ping()
assert p.execute() == [[0, 2, 1, -1, 60], [0, 2, 0, -1, 120], [1, 2, 0, 60, 120],
                       ["allow", "api", 1000, 999, 0, 86400, 0, "", "limit"], True]
p = r.pipeline()
p.execute_command("WEIR.CHECK", "api", "tx").execute_command("WEIR.CHECK", "nope", "x")
try:
    p.execute()
    raise SystemExit("no error")
except redis.ResponseError as e:
    assert "NOLIMIT no limit named 'nope'" in str(e), e
assert r.execute_command("WEIR.PEEK", "api", "tx")[3] == 999  # nothing was charged
p = r.pipeline()
p.execute_command("SELECT", 7).ping()
told = p.execute(raise_on_error=False)
assert isinstance(told[0], redis.ResponseError) and told[1] is True, told
p = r.pipeline()
for i in range(1024):
    p.execute_command("WEIR.PEEK", "api", "tx")
assert [a[3] for a in p.execute()] == [999] * 1024
admin = redis.Redis(host='127.0.0.1', port=int(sys.argv[1]), username="admin", password=sys.argv[2])
assert admin.delete("tx", "none") == 1
script = "return redis.call('CL.THROTTLE', KEYS[1], ARGV[1], ARGV[2], ARGV[3])"
assert r.eval(script, 1, "ev", 4, 6, 60) == [0, 5, 4, -1, 10]
try:
    r.evalsha("0" * 40, 1, "ev")
    raise SystemExit("no error")
except redis.exceptions.NoScriptError:
    pass
info = r.command()["cl.throttle"]
assert info["arity"] == -5 and info["first_key_pos"] == 1 and "write" in info["flags"], info
assert r.module_list() == [] and r.command_count() == len(r.command())
p = r.pipeline(transaction=False)
for i in range(20000):
    p.execute_command("WEIR.PEEK", "api", "late")
assert all(a[3] == 1000 for a in p.execute())
told = []
def hammer():
    told.extend(r.execute_command("WEIR.CHECK", "api", "carol")[0] for _ in range(400))
threads = [threading.Thread(target=hammer) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
assert told.count("allow") == 1000 and told.count("deny") == 600, (told.count("allow"), len(told))
END
else
    echo "python3-redis is missing: left out"
fi

# hiredis
if printf '#include <hiredis/hiredis.h>\n' | ${CC:-cc} -E - >/dev/null 2>&1; then
    ${CC:-cc} -o "$dir/hiredis" "$WEIR_SOURCE_DIR/tests/scripts/clients/hiredis_client.c" -lhiredis || die "hiredis_client.c does not compile"
    timeout 60 "$dir/hiredis" "$port" "$secret" || die "hiredis"
else
    echo "libhiredis-dev is missing: left out"
fi

# SIGHUP: new rules, old counts; bad rules change nothing.
says 'allow api 1000 999 0 86400 0  limit' WEIR.CHECK api dave
sed -i 's|1000/day|2000/day|' "$dir/rules.yaml"
kill -HUP "$pid"
until_true grep -q "rules reloaded" "$dir/err"
[ "$(ask WEIR.PEEK api dave | sed -n 3p)" = 2000 ] || die "the new rate does not count"
echo nonsense >"$dir/rules.yaml"
kill -HUP "$pid"
until_true grep -q "the old rules stay" "$dir/err"
[ "$(ask WEIR.PEEK api dave | sed -n 3p)" = 2000 ] || die "bad rules did something"

stop

# More clients than files: those who are in are served, and so is who comes later.
start 120 --resp 127.0.0.1:0 --threads 2 --connections 1000
timeout 5 redis-benchmark -p "$port" -q -c 200 -n 5000 -t ping_mbulk >"$dir/bench" 2>&1 || true
says PONG PING
stop

# A unix socket: it has one server, and its file goes with that.
start 1024 --resp "unix:$dir/socket" --inline
[ "$(timeout 20 redis-cli -s "$dir/socket" PING)" = PONG ] || die "unix socket"
rc=0; timeout 20 "$weir" serve --http off --admin off --resp "unix:$dir/socket" >"$dir/out2" 2>"$dir/err2" </dev/null || rc=$?
[ "$rc" = 1 ] || die "an occupied unix socket: exit $rc"
[ "$(timeout 20 redis-cli -s "$dir/socket" PING)" = PONG ] || die "unix socket taken away"
timeout 60 redis-benchmark -s "$dir/socket" -q -n 5000 -t ping >"$dir/bench" 2>&1 || die "redis-benchmark -t ping: $(cat "$dir/bench")"
stop
[ ! -e "$dir/socket" ] || die "the socket file is left"
