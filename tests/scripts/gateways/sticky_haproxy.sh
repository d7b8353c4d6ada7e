#!/bin/sh
# shellcheck disable=SC2154  # dir, host, site, pid are set in proxy.sh
# docs/guide/gateways/sticky.md against HAProxy and three weir nodes: a client stays where it is, and only those of a node
# that is killed move.
# test-timeout: 600
. "$WEIR_SOURCE_DIR/tests/support/scripts/proxy.sh"
. "$WEIR_SOURCE_DIR/tests/support/scripts/sticky.sh"
PATH=$PATH:/usr/sbin
need haproxy curl python3

# The recipe of haproxy.md with the other way to weir; fails closed, so that every answer is a node's.
recipe haproxy.md lua | sed "s/abns@weir/abns@weir-$$/; s/fail_open = true/fail_open = false/" >"$dir/weir.lua"
recipe haproxy.md haproxy >"$dir/whole"
recipe haproxy.md haproxy-map >"$dir/users.map"
recipe sticky.md haproxy-sticky | places >"$dir/listen"
recipe sticky.md haproxy-sticky-uri | places | sed "s/listen weir/listen uri/; s/127\\.0\\.0\\.1:8070/$host:8070/" >"$dir/uri"
awk -v other="$dir/listen" -v uri="$dir/uri" '
    /^listen weir/ { while ((getline line <other) > 0) print line; skip = 1; seen++; next }
    skip && /^ / { next }
    { print }
    END { print ""; while ((getline line <uri) > 0) print line; exit seen != 1 }' "$dir/whole" |
    sed "s|/etc/haproxy/weir.lua|$dir/weir.lua|; s|/etc/haproxy/users.map|$dir/users.map|; s/bind :80/bind $site/; s/abns@weir/abns@weir-$$/" >"$dir/haproxy.cfg"
[ "$(grep -c "$host:8083" "$dir/haproxy.cfg")" = 2 ] || die "the nodes are not in the configuration"

start_origin
for n in $nodes; do start_node "$n" --client-field x-forwarded-for; done
run haproxy haproxy -db -f "$dir/haproxy.cfg"
await_start "$pid" curl -s -o "$dir/body" --interface 127.0.0.9 "http://$site/ready"

# The same question goes to the same node, whoever asks.
ask_uri() {
    curl -s --max-time 20 -o "$dir/body" -D "$dir/head" -H "X-Forwarded-For: 127.0.5.$2" "http://$host:8070/v1/auth/$1"
    answered_by
}
for path in a b c d e f g h; do
    first=$(ask_uri "$path" 1)
    [ -n "$first" ] || die "/$path was answered by nobody"
    [ "$(ask_uri "$path" 2)" = "$first" ] || die "/$path goes to several nodes"
    echo "$first"
done | sort -u >"$dir/seen"
[ "$(wc -l <"$dir/seen")" -ge 2 ] || die "all questions go to one node"

check_sticky

start_node 2 --client-field x-forwarded-for
check_return
attack_sticky haproxy.md
