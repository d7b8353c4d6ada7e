# shellcheck shell=sh disable=SC2034  # variables are for the scripts that read this
# A real proxy between curl and an application, asking weir: what the tests of docs/guide/gateways share.
#
# The configurations are taken out of the documents, so that these cannot rot; only addresses are replaced. Everything
# listens on an address of the loopback that is this test's alone: no port can be taken, nobody else is met.
set -eu
# shellcheck disable=SC3045  # sh of Debian has it; for the requests that come at once
ulimit -n 16000 2>/dev/null || ulimit -n "$(ulimit -H -n)"
export LC_ALL=C
export no_proxy='*' NO_PROXY='*'
dir=$(mktemp -d)
started=
host=127.$((1 + $$ / 62500 % 200)).$((1 + $$ / 250 % 250)).$((1 + $$ % 250))
site=$host:8000 # the proxy
weir_pid=
weir=$WEIR_BUILD_DIR/weir

finish() {
    for pid in $started; do kill -KILL "$pid" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP INT PIPE TERM # else dash leaves without it

die() {
    echo "$*" >&2
    for f in "$dir"/head "$dir"/body "$dir"/*.err; do
        [ ! -s "$f" ] || { echo "--- ${f##*/}" >&2; tail -40 "$f" >&2; }
    done
    exit 1
}

need() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
    done
}

. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"

# recipe DOCUMENT LANGUAGE: the code of that language, with the addresses of this test, and with more patience: on a busy
# machine weir may be late, and then it would not count
recipe() {
    awk -v begin="\`\`\`$2" '$0 == begin { inside = 1; found = 1; next } /^```/ { inside = 0 } inside
        END { exit !found }' "$WEIR_SOURCE_DIR/docs/guide/gateways/$1" >"$dir/recipe" || die "$1 has no $2"
    sed "s/127\\.0\\.0\\.1:8080/$host:8080/g; s/127\\.0\\.0\\.1:9000/$host:9000/g
        s/\\<[12][05]0ms/20s/; s/timeout_ms = 250/timeout_ms = 20000/" "$dir/recipe"
}

# run NAME COMMAND...: in the background, until the end; its id is in $pid
run() {
    name=$1
    shift
    "$@" </dev/null >"$dir/$name.out" 2>"$dir/$name.err" &
    pid=$!
    started="$started $pid"
}

start_origin() {
    run origin python3 "$WEIR_SOURCE_DIR/tests/support/scripts/origin.py" "$host" 9000 "$dir/origin.log"
    origin_pid=$pid
    await_start "$pid" curl -sf -o "$dir/body" "http://$host:9000/ready"
}
origin_count() { wc -l <"$dir/origin.log"; }

# Three requests an hour for each address; /free is free, mallory is blocked, /post takes one a user.
cat >"$dir/weir.yaml" <<'END'
server: {trusted_proxies: [127.0.0.1/32]}
attributes: {user: ['header:X-User-Id']}
allow: [{path: /free}]
block: [{user: [mallory]}]
limits:
  - {name: posts, when: {path: /post, method: POST, host: shop.example}, key: [user], rate: 1/h, group: one}
  - {name: pages, key: [ip], rate: 3/h, group: one}
END

# start_weir OPTION...; with the options that the document names
start_weir() {
    run weir "$weir" serve --config "$dir/weir.yaml" --http "$host:8080" --resp off --admin off --threads 1 --max-age 0 --no-watch "$@"
    weir_pid=$pid
    await_start "$pid" curl -sf -o "$dir/body" "http://$host:8080/healthz"
}

stop_weir() {
    kill -TERM "$weir_pid"
    wait "$weir_pid" || die "weir: exit $?"
}

# ask CLIENT PATH CURL-OPTION...: from that address; $status, $dir/head, $dir/body
ask() {
    client=$1
    path=$2
    shift 2
    status=$(curl -s --max-time 20 --interface "$client" -D "$dir/head" -o "$dir/body" -w '%{http_code}' "$@" "http://$site$path") ||
        die "$client $path $*: curl: $?"
}

# expect STATUS CLIENT PATH CURL-OPTION...
expect() {
    wanted=$1
    shift
    ask "$@"
    [ "$status" = "$wanted" ] || die "$*: got $status, expected $wanted"
}

# field NAME: its value in the last answer
field() { tr -d '\r' <"$dir/head" | sed -n "s/^$1: //Ip"; }
has_field() { [ -n "$(field "$1")" ] || die "no $1 in $(cat "$dir/head")"; }

# What every recipe promises. $1: "fields" if those who are let in see the RateLimit fields too.
check_limits() {
    before=$(origin_count)
    for n in 1 2 3; do
        expect 200 127.0.0.2 "/page?n=$n"
        grep -qx "origin GET /page?n=$n " "$dir/body" || die "not from the origin"
        if [ "$1" = fields ]; then
            told=$(field ratelimit)
            t=${told##*;t=} # less on a slow machine
            { [ "$told" = "\"pages\";r=$((3 - n));t=$t" ] && [ "$t" -le $((1200 * n)) ] && [ "$t" -gt $((1200 * n - 600)) ]; } ||
                die "RateLimit: $told"
            [ "$(field ratelimit-policy)" = '"pages";q=3;w=3600' ] || die "RateLimit-Policy"
        fi
    done
    check_denied
    expect 200 127.0.0.3 /page
    expect 403 127.0.0.3 /page -H 'X-Api-Key: key-of-mallory'
    expect 403 127.0.0.3 /page -H 'X-Api-Key: key-of-mallory' -H 'X-User-Id: alice'
    expect 200 127.0.0.3 /page -H 'X-User-Id: mallory' # a client cannot say who it is
    expect 200 127.0.0.2 /free
    expect 200 127.0.0.2 /free -H 'Host: shop.example:8080' # weir's own port, as behind a gateway on the same number
    expect 403 127.0.0.3 /forbidden # the application's own
    grep -q '^origin GET /forbidden' "$dir/body" || die "the application's 403 was replaced"
    for user in alice bob; do
        expect 200 127.0.0.2 /post -H "X-Api-Key: key-of-$user" -H 'Host: shop.example' -d "hello $user"
        grep -qx "origin POST /post hello $user" "$dir/body" || die "the body did not arrive"
        expect 429 127.0.0.2 /post -H "X-Api-Key: key-of-$user" -H 'Host: shop.example' -d "hello $user"
    done
    for user in carol dave; do # names that a client makes up have no quota of their own
        expect 429 127.0.0.2 /post -H "X-User-Id: $user" -H 'Host: shop.example' -d "hello $user"
        expect 429 127.0.0.2 /post -H "X-Api-Key: made-up" -H "X-User-Id: $user" -H 'Host: shop.example' -d "hello $user"
    done
    [ "$(origin_count)" = $((before + 10)) ] || die "the origin was asked $(($(origin_count) - before)) times"
}

# 127.0.0.2 has nothing left, and nothing that it says changes that.
check_denied() {
    before_denied=$(origin_count)
    expect 429 127.0.0.2 /page
    has_field retry-after
    retry=$(field retry-after)
    { [ "$retry" -ge 1 ] && [ "$retry" -le 1200 ]; } || die "Retry-After: $retry"
    [ "$(field ratelimit-policy)" = '"pages";q=3;w=3600' ] || die "RateLimit-Policy: $(field ratelimit-policy)"
    case $(field ratelimit) in '"pages";r=0;t='*) ;; *) die "RateLimit: $(field ratelimit)" ;; esac
    [ "$(field cache-control)" = no-store ] || die "a 429 that may be stored"
    expect 429 127.0.0.2 /page -H 'X-Forwarded-For: 192.0.2.66'
    expect 429 127.0.0.2 /page -H 'X-Forwarded-For: 192.0.2.66, 127.0.0.1'
    expect 429 127.0.0.2 /page -H 'X-Real-IP: 192.0.2.66'
    expect 429 127.0.0.2 /page -H 'Forwarded: for=192.0.2.66'
    for forged in 'X-Forwarded-Uri: /free' 'X-Original-URI: /free' 'X-Original-URL: http://a/free' \
        'X-Forwarded-Method: POST' 'X-Original-Method: POST' 'X-Forwarded-Host: shop.example'; do
        ask 127.0.0.2 /page -H "$forged"
        [ "$status" != 200 ] || die "$forged: let in"
    done
    [ "$(origin_count)" = "$before_denied" ] || die "a denied request reached the origin"
}

# The proxy may need a moment to see that weir is there again.
is_asked() {
    ask 127.0.0.5 /page
    [ "$status" = 429 ]
}

# Sockets from the proxy to weir, open or closed a moment ago.
sockets_to_weir() { ss -Htan "dst $host:8080" | wc -l; }

# 50 more requests need no more of them.
check_keep_alive() {
    ask 127.0.0.4 /free
    before=$(sockets_to_weir)
    for _ in 1 2 3 4 5; do
        # shellcheck disable=SC2046  # words on purpose
        ask 127.0.0.4 /free $(for n in 1 2 3 4 5 6 7 8 9; do echo "-o $dir/body http://$site/free?$n"; done)
    done
    found=$(sockets_to_weir)
    [ "$found" -le "$before" ] || die "$((found - before)) more connections to weir for 50 requests"
}

# dodges NAME ARGUMENT...: sends every dodge to the proxy. The application is now that of dodges.py.
dodges() { send_dodges dodges.py "$@"; }

# dodges_h2 NAME: the same in HTTP/2, for proxies that take it without TLS
dodges_h2() { send_dodges dodges_h2.py "$@"; }

send_dodges() {
    program=$1
    attacked=$2
    shift 2
    python3 -B "$WEIR_SOURCE_DIR/tests/scripts/gateways/$program" "$site" "$host:9000" "$@" >"$dir/dodges.err" 2>&1 ||
        die "$attacked: a client gets past its limits"
    cat "$dir/dodges.err"
}

# attack_hosts DOCUMENT: the login limit becomes one for shop.example alone, and every spelling of the host is sent.
attack_hosts() {
    sed -i 's|when: {path: /login}|when: {path: /login, host: shop.example}|' "$dir/weir.yaml"
    kill -HUP "$weir_pid"
    until_true is_reloaded
    dodges "$1" hosts
}
is_reloaded() { grep -q ' reloaded ' "$dir/weir.err"; }

# A request without a user is what the rules expect: no limit is skipped, so no alert follows (WeirLimitSkipped).
check_strangers() {
    curl -s -o "$dir/body" -d '{"attributes": {"path": "/page", "ip": "192.0.2.1"}}' "http://$host:8080/v1/check" "$@" || die "curl: $?"
    grep -q '"flags":\[\],"reason":"limit"' "$dir/body" || die "a limit is skipped for a request without a user"
}

# attack DOCUMENT COMMAND...: the recipe with the rule file and the options that the document prints, or with $options
# instead of these, and every dodge; with $http2, in HTTP/2 too; unless $many is no, many at once. The command starts the proxy.
attack() {
    document=$1
    shift
    kill -KILL "$origin_pid" 2>/dev/null || true # has gone if this is the second attack
    recipe "$document" yaml >"$dir/weir.yaml"
    recipe "$document" sh | sed -n 's/^weir serve --config weir.yaml --http [^ ]*//p' >"$dir/options"
    [ "$(wc -l <"$dir/options")" = 1 ] || die "$document does not say how to start weir"
    # shellcheck disable=SC2046,SC2086  # words on purpose
    start_weir ${options-$(cat "$dir/options")}
    check_strangers
    "$@"
    dodges "$document"
    [ -z "${http2-}" ] || dodges_h2 "$document"
    [ "${many-yes}" = no ] || dodges "$document" many "$weir_pid"
    attack_hosts "$document"
}
