#!/bin/sh
# shellcheck disable=SC2154  # dir, host, site, pid are set in proxy.sh
# docs/guide/gateways/caddy.md against Caddy: what the document says is what a client sees.
# test-timeout: 600
. "$WEIR_SOURCE_DIR/tests/support/scripts/proxy.sh"
need caddy curl python3 ss
export HOME="$dir" XDG_DATA_HOME="$dir" XDG_CONFIG_HOME="$dir"

# start_caddy LANGUAGE
start_caddy() {
    { printf '{\n admin off\n auto_https off\n default_bind %s\n}\n' "$host"; recipe caddy.md "$1"; } >"$dir/caddyfile"
    sed -i "s/^:80 {/:8000 {/" "$dir/caddyfile"
    grep -q '^:8000 {' "$dir/caddyfile" || die "the recipe does not listen"
    run caddy caddy run --config "$dir/caddyfile" --adapter caddyfile
    caddy_pid=$pid
    await_start "$pid" curl -s -o "$dir/body" --interface 127.0.0.9 "http://$site/ready"
}
stop_caddy() {
    kill -TERM "$caddy_pid"
    wait "$caddy_pid" || die "caddy: exit $?"
}

start_origin
start_weir --client-field x-forwarded-for
start_caddy caddyfile
check_limits plain
expect 429 127.0.0.2 /page
[ "$(field content-type)" = application/problem+json ] || die "not weir's own answer"
grep -q '"violated-policies":\["pages"\]' "$dir/body" || die "not weir's own answer"
check_keep_alive

# Without weir: closed. With it again: as if nothing had been.
stop_weir
before=$(origin_count)
expect 502 127.0.0.3 /page
[ "$(origin_count)" = "$before" ] || die "a request without weir reached the origin"
start_weir --client-field x-forwarded-for
until_true is_asked
for _ in 1 2 3; do expect 200 127.0.0.2 /page; done
check_denied
stop_caddy
stop_weir

start_weir --client-field x-forwarded-for
start_caddy caddyfile-fields
check_limits fields
check_keep_alive
stop_caddy
stop_weir

attack caddy.md start_caddy caddyfile
stop_caddy
stop_weir
attack caddy.md start_caddy caddyfile-fields
