#!/bin/sh
# shellcheck disable=SC2154  # dir, host, site, pid are set in proxy.sh
# docs/guide/gateways/haproxy.md against HAProxy: what the document says is what a client sees.
# test-timeout: 600
. "$WEIR_SOURCE_DIR/tests/support/scripts/proxy.sh"
PATH=$PATH:/usr/sbin
need haproxy curl python3 ss

start_haproxy() {
    run haproxy haproxy -db -f "$dir/haproxy.cfg"
    haproxy_pid=$pid
    await_start "$pid" curl -s -o "$dir/body" --interface 127.0.0.9 "http://$site/ready"
}
stop_haproxy() {
    kill -TERM "$haproxy_pid"
    rc=0
    wait "$haproxy_pid" 2>/dev/null || rc=$?
    [ "$rc" = 143 ] || die "haproxy: exit $rc"
}

recipe haproxy.md lua | sed "s/abns@weir/abns@weir-$$/" >"$dir/weir.whole"
recipe haproxy.md haproxy >"$dir/haproxy.cfg"
recipe haproxy.md haproxy-map >"$dir/users.map"
sed -i "s|/etc/haproxy/weir.lua|$dir/weir.lua|; s|/etc/haproxy/users.map|$dir/users.map|; s/bind :80/bind $site/; s/abns@weir/abns@weir-$$/" "$dir/haproxy.cfg"
grep -q "bind $site" "$dir/haproxy.cfg" || die "the recipe does not listen"

cp "$dir/weir.whole" "$dir/weir.lua"
start_origin
start_weir --client-field x-forwarded-for
start_haproxy
check_limits fields
expect 429 127.0.0.2 /page
[ "$(field content-type)" = application/problem+json ] || die "not weir's own answer"
grep -q '"violated-policies":\["pages"\]' "$dir/body" || die "not weir's own answer"
check_keep_alive

# Without weir: open. With it again: as if nothing had been.
stop_weir
expect 200 127.0.0.2 /page
start_weir --client-field x-forwarded-for
until_true is_asked
for _ in 1 2 3; do expect 200 127.0.0.2 /page; done
check_denied
stop_haproxy

# Closed, as the document says.
sed 's/fail_open = true/fail_open = false/' "$dir/weir.whole" >"$dir/weir.lua"
if cmp -s "$dir/weir.whole" "$dir/weir.lua"; then die "no fail_open"; fi
start_haproxy
expect 429 127.0.0.2 /page
stop_weir
before=$(origin_count)
expect 503 127.0.0.2 /page
has_field retry-after
[ "$(origin_count)" = "$before" ] || die "a request without weir reached the origin"
stop_haproxy

cp "$dir/weir.whole" "$dir/weir.lua"
# Not many at once while weir stands still: its health checks would fail on a busy machine, and then requests pass.
many=no http2=yes attack haproxy.md start_haproxy
