#!/bin/sh
# TLS as people meet it: curl, redis-cli, redis-py, openssl s_client and weir's own commands against `weir serve`; versions
# and ciphers; client certificates and roles; a certificate that is renewed while the server runs; warnings.
# test-timeout: 300
set -eu
export LC_ALL=C no_proxy='*' NO_PROXY='*'
for tool in redis-cli curl openssl timeout python3; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
weir=$WEIR_BUILD_DIR/weir
die() { echo "$*" >&2; [ ! -f "$dir/err" ] || cat "$dir/out" "$dir/err" >&2; exit 1; }

. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"
. "$WEIR_SOURCE_DIR/tests/support/scripts/certificates.sh"

make_ca ca
make_ca other
make_certificate server ca server
make_certificate operator ca ops.example
make_certificate stranger other ops.example
echo secret-of-the-operator >"$dir/admin"
chmod 600 "$dir/admin"
cat >"$dir/rules.yaml" <<'END'
server:
  tls: {cert: server.crt, key: server.key}
  admin_secrets: admin
limits: [{name: api, key: [user], rate: 1000/day}]
END

port_of() { sed -n "s/^ *$1  *127\\.0\\.0\\.1:\\([0-9]*\\).*/\\1/p" "$dir/out"; }

# start OPTION...: a server with all listeners on free ports
start() {
    : >"$dir/out"
    "$weir" serve --max-age 0 --resp 127.0.0.1:0 --http 127.0.0.1:0 --admin 127.0.0.1:0 --threads 2 "$@" \
        </dev/null >"$dir/out" 2>"$dir/err" &
    pid=$!
    await_start "$pid" grep -q '^ *admin  ' "$dir/out"
    resp=$(port_of resp)
    http=https://localhost:$(port_of http)
    admin=https://localhost:$(port_of admin)
}
stop() {
    kill -TERM "$pid"
    rc=0
    wait "$pid" || rc=$?
    pid=
    [ "$rc" = 0 ] || die "after SIGTERM: exit $rc instead of 0"
}
cli() { timeout 20 redis-cli --tls --cacert "$dir/ca.crt" -h localhost -p "$resp" --no-auth-warning "$@" 2>&1; }
web() { timeout 20 curl -sS --cacert "$dir/ca.crt" "$@" 2>&1; }
is() { [ "$1" = "$2" ] || die "found '$1', expected '$2'"; }
has() { case $1 in *"$2"*) ;; *) die "found '$1', expected '$2' in it" ;; esac; }

start --config "$dir/rules.yaml"
grep -q "^  http  *127.0.0.1:[0-9]*, TLS" "$dir/out" || die "the start does not say that HTTP speaks TLS"

# ---- clients ----
is "$(cli PING)" PONG
is "$(cli WEIR.CHECK api alice | head -1)" allow
has "$(web "$http/v1/check" -d '{"limit": "api", "key": "alice"}')" '"verdict":"allow"'
has "$(web -v "$http/readyz")" 'server accepted http/1.1'
has "$(web --tls-max 1.2 -v "$http/readyz")" TLSv1.2
python3 -c 'import redis' 2>/dev/null && py=python3 || py=/usr/bin/python3
if "$py" -c 'import redis' 2>/dev/null; then
    "$py" - "$resp" "$dir/ca.crt" <<'END' || die "redis-py"
import sys, redis
r = redis.Redis(host="localhost", port=int(sys.argv[1]), ssl=True, ssl_ca_certs=sys.argv[2], socket_timeout=20)
assert r.ping()
pipe = r.pipeline(transaction=False)
for _ in range(1500):
    pipe.execute_command("WEIR.CHECK", "api", "bob")
verdicts = [reply[0] for reply in pipe.execute()]
assert verdicts.count(b"allow") == 1000 and verdicts.count(b"deny") == 500, verdicts
END
fi

# ---- weir's own commands ----
is "$("$weir" ctl --admin "$admin" --tls-ca "$dir/ca.crt" ready)" ready
is "$(WEIR_TLS_CA=$dir/ca.crt "$weir" ctl --admin "$admin/" ready)" ready
has "$("$weir" ctl --admin "$admin" --tls-ca "$dir/ca.crt" --secret-file "$dir/admin" limits)" api
is "$("$weir" ctl --admin "$admin" --tls-ca "$dir/ca.crt" --secret-file "$dir/admin" link)" \
    "$admin/#secret=secret-of-the-operator"
has "$("$weir" top --once --admin "$admin" --tls-ca "$dir/ca.crt" --secret-file "$dir/admin")" api
has "$("$weir" check --http "$http" --tls-ca "$dir/ca.crt" api carol)" 'allow'
has "$("$weir" check --resp "rediss://localhost:$resp" --tls-ca "$dir/ca.crt" api carol)" 'allow'
has "$("$weir" bench load --resp "rediss://localhost:$resp" --tls-ca "$dir/ca.crt" --rate max --depth 16 --connections 4 \
    --requests 4000 --json)" '"replies": 4000'
has "$("$weir" bench load --http "$http" --tls-ca "$dir/ca.crt" --rate 500 --duration 1s --json)" '"lost": 0'
fails() {
    expected=$1
    shift
    rc=0
    "$weir" "$@" >"$dir/said" 2>&1 || rc=$?
    [ "$rc" != 0 ] || die "weir $*: exit 0"
    has "$(cat "$dir/said")" "$expected"
}
fails 'certificate is refused: ' ctl --admin "$admin" --tls-ca "$dir/other.crt" ready
fails 'certificate is not for example.org' ctl --admin "$admin" --tls-ca "$dir/ca.crt" --tls-name example.org ready
fails 'this port speaks TLS; use https://' ctl --admin "${admin#https://}" ready
fails 'this port speaks TLS' check --resp "localhost:$resp" api carol
fails 'expected an address that begins with https:// or rediss://' ctl --admin "${admin#https://}" --tls-ca "$dir/ca.crt" ready
fails 'none.crt' ctl --admin "$admin" --tls-ca "$dir/none.crt" ready

# ---- versions and ciphers: `accepts VERSION CIPHERS` ----
accepts() {
    timeout 20 openssl s_client -connect "localhost:$resp" -CAfile "$dir/ca.crt" -verify_return_error "-$1" -cipher "$2:@SECLEVEL=0" \
        </dev/null >"$dir/said" 2>&1 && grep -q 'Verify return code: 0' "$dir/said"
}
for row in 'tls1 ALL no' 'tls1_1 ALL no' 'tls1_2 ECDHE+AESGCM yes' 'tls1_2 ECDHE+CHACHA20 yes' 'tls1_2 AES128-SHA no' \
    'tls1_2 AES128-GCM-SHA256 no' 'tls1_2 ECDHE+AES+SHA no' 'tls1_2 aNULL no' 'tls1_3 ALL yes'; do
    # shellcheck disable=SC2086  # a row is three words
    set -- $row
    got=no
    ! accepts "$1" "$2" || got=yes
    [ "$got" = "$3" ] || die "$1 with $2: found $got, expected $3: $(cat "$dir/said")"
done

# ---- renewal: the file is watched ----
serial() { timeout 20 openssl s_client -connect "localhost:$resp" </dev/null 2>/dev/null | openssl x509 -noout -serial; }
before=$(serial)
mkfifo "$dir/say"
timeout 60 openssl s_client -quiet -connect "localhost:$resp" -CAfile "$dir/ca.crt" <"$dir/say" >"$dir/heard" 2>/dev/null &
old=$!
exec 9>"$dir/say"
printf 'PING\r\n' >&9
until_true grep -q PONG "$dir/heard"
make_certificate server ca server
renewed() {
    now=$(serial)
    [ -n "$now" ] && [ "$now" != "$before" ]
}
until_true renewed
printf 'PING\r\n' >&9 # on the connection of the old certificate
two() { [ "$(grep -c PONG "$dir/heard")" = 2 ]; }
until_true two
exec 9>&-
kill "$old"
echo nonsense >"$dir/server.crt"
until_true grep -q 'the old certificate stays' "$dir/err"
is "$(cli PING)" PONG
has "$(web "$admin/metrics")" 'weir_tls_renewals_total{result="failure"} '
make_certificate server ca server
stop

# ---- certificates of clients, and roles by their names ----
start --tls-cert "$dir/server.crt" --tls-key "$dir/server.key" --tls-client-ca "$dir/ca.crt" --tls-listeners resp,admin \
    --admin-names root.example,ops.example --no-watch
case $(cli PING) in PONG) die "a client without a certificate is served" ;; esac
is "$(cli --cert "$dir/operator.crt" --key "$dir/operator.key" PING)" PONG
case $(cli --cert "$dir/stranger.crt" --key "$dir/stranger.key" PING) in PONG) die "a stranger is served" ;; esac
has "$(web --cert "$dir/operator.crt" --key "$dir/operator.key" "$admin/v1/limits")" '"limits"'
has "$("$weir" ctl --admin "$admin" --tls-ca "$dir/ca.crt" --tls-cert "$dir/operator.crt" --tls-key "$dir/operator.key" limits)" login
is "$(curl -s "http://127.0.0.1:$(port_of http)/readyz" | head -n 1)" ready # not among the listeners that speak TLS
stop

# ---- renewal without a rule file ----
start --tls-cert "$dir/server.crt" --tls-key "$dir/server.key"
before=$(serial)
make_certificate server ca server
until_true renewed
stop

# ---- warnings and mistakes ----
refuses() {
    rc=0
    timeout 20 "$weir" serve --resp off --admin off --http 127.0.0.1:0 "$@" >"$dir/out" 2>"$dir/err" </dev/null || rc=$?
    [ "$rc" = 1 ] || [ "$rc" = 2 ] || die "weir serve $*: exit $rc"
}
refuses --tls-cert "$dir/none"
grep -q "$dir/none" "$dir/err" || die "the missing file is not named"
refuses --tls-cert "$dir/server.crt" --tls-key "$dir/operator.key"
refuses --tls-key "$dir/server.key"
refuses --tls-cert "$dir/server.crt" --tls-key "$dir/server.key" --admin-names me
grep -q 'expected --tls-client-ca' "$dir/err" || die "names without a CA are accepted"
refuses --tls-cert "$dir/server.crt" --tls-key "$dir/server.key" --tls-listeners http,reps
grep -q "found 'reps'" "$dir/err" || die "an unknown listener is accepted"
start --http 0.0.0.0:0 --insecure
grep -q 'warning other machines can reach a listener that does not speak TLS.*listener=http' "$dir/err" || die "no warning at the start"
stop
start --http 0.0.0.0:0 --insecure --tls-cert "$dir/server.crt" --tls-key "$dir/server.key"
! grep -q 'does not speak TLS' "$dir/err" || die "a warning in spite of TLS"
stop
printf 'server: {http: "0.0.0.0:8080"}\nlimits: [{name: api, key: [user], rate: 1/s}]\n' >"$dir/open.yaml"
has "$("$weir" config check "$dir/open.yaml" 2>&1)" "warning: found http at '0.0.0.0:8080' without TLS"
printf 'server: {http: "0.0.0.0:8080", tls: {cert: server.crt, key: server.key}}\nlimits: [{name: api, key: [ip], rate: 1/s}]\n' \
    >"$dir/sealed.yaml"
is "$("$weir" config check "$dir/sealed.yaml" 2>&1 | grep -c warning || true)" 0
printf 'server: {tls: {cert: server.crt, key: operator.key}}\nlimits: [{name: api, key: [user], rate: 1/s}]\n' >"$dir/wrong.yaml"
has "$("$weir" config check "$dir/wrong.yaml" 2>&1)" 'warning: the certificate cannot be used'
