#!/bin/sh
# shellcheck disable=SC2154  # dir, host, site, pid are set in proxy.sh
# docs/guide/gateways/sticky.md against nginx and three weir nodes: a client stays where it is, and only those of a node
# that is killed move.
# test-timeout: 600
. "$WEIR_SOURCE_DIR/tests/support/scripts/proxy.sh"
. "$WEIR_SOURCE_DIR/tests/support/scripts/sticky.sh"
PATH=$PATH:/usr/sbin
need nginx curl python3

cat >"$dir/nginx.conf" <<END
daemon off;
master_process off;
pid $dir/nginx.pid;
error_log $dir/nginx_log.err;
worker_processes 1;
events { worker_connections 100; }
http {
    access_log off;
    client_body_temp_path $dir/t1; proxy_temp_path $dir/t2; fastcgi_temp_path $dir/t3;
    uwsgi_temp_path $dir/t4; scgi_temp_path $dir/t5;
    include $dir/site.conf;
}
END

# The recipe of nginx.md with the other upstream.
recipe nginx.md nginx | sed "s/listen 80;/listen $site;/; /fail open/d" >"$dir/whole"
recipe sticky.md nginx-sticky | places >"$dir/upstream"
awk -v other="$dir/upstream" '
    /^upstream weir / { while ((getline line <other) > 0) print line; skip = 1; seen++ }
    skip { if (/^}/) skip = 0; next }
    { print }
    END { exit seen != 1 }' "$dir/whole" >"$dir/site.conf" || die "no upstream weir in nginx.md"
grep -q "$host:8083" "$dir/site.conf" || die "the nodes are not in the configuration"

start_origin
for n in $nodes; do start_node "$n" --auth-deny-status 403 --client-field x-forwarded-for; done
run nginx nginx -c "$dir/nginx.conf" -e "$dir/nginx_log.err"
await_start "$pid" curl -s -o "$dir/body" --interface 127.0.0.9 "http://$site/ready"
check_sticky

start_node 2 --auth-deny-status 403 --client-field x-forwarded-for
check_return
attack_sticky nginx.md
