#!/bin/sh
# shellcheck disable=SC2154  # dir, host, site, pid are set in proxy.sh
# docs/integrations/nginx.md against nginx: what the document says is what a client sees.
# test-timeout: 300
. "$WEIR_SOURCE_DIR/tests/support/proxy.sh"
PATH=$PATH:/usr/sbin
need nginx curl python3 ss

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

start_nginx() {
    grep -q "listen $site;" "$dir/site.conf" || die "the recipe does not listen"
    run nginx nginx -c "$dir/nginx.conf" -e "$dir/nginx_log.err"
    nginx_pid=$pid
    until_true curl -s -o "$dir/body" --interface 127.0.0.9 "http://$site/ready"
}
stop_nginx() {
    kill -TERM "$nginx_pid"
    wait "$nginx_pid" || die "nginx: exit $?"
}

recipe nginx.md nginx >"$dir/site.whole"
sed -i "s/listen 80;/listen $site;/" "$dir/site.whole"

# weir says 403
cp "$dir/site.whole" "$dir/site.conf"
start_origin
start_weir --auth-deny-status 403 --client-field x-forwarded-for
start_nginx
check_limits fields
check_keep_alive

# Without weir: open. With it again: as if nothing had been.
stop_weir
expect 200 127.0.0.2 /page
start_weir --auth-deny-status 403 --client-field x-forwarded-for
until_true is_asked
for _ in 1 2 3; do expect 200 127.0.0.2 /page; done
check_denied
stop_nginx

# Closed: without the line that the document names.
sed '/fail open/d' "$dir/site.whole" >"$dir/site.conf"
[ "$(wc -l <"$dir/site.conf")" = $(($(wc -l <"$dir/site.whole") - 1)) ] || die "no such line"
start_nginx
expect 429 127.0.0.2 /page
stop_weir
before=$(origin_count)
expect 500 127.0.0.2 /page
[ "$(origin_count)" = "$before" ] || die "a request without weir reached the origin"
stop_nginx

# weir says 429
recipe nginx.md nginx-429 >"$dir/here"
recipe nginx.md nginx-429-denied >"$dir/denied"
awk -v here="$dir/here" -v denied="$dir/denied" '
    function put(file, line) { while ((getline line <file) > 0) print line; seen++ }
    /error_page 403 = @weir_denied/ { put(here); next }
    /if \(\$weir_retry = ""\)/ { put(denied); skip = 3 }
    skip > 0 { skip--; next }
    { print }
    END { exit seen != 2 }' "$dir/site.whole" >"$dir/site.conf" || die "the other lines have no place"
start_weir --client-field x-forwarded-for
start_nginx
check_limits fields
check_keep_alive
