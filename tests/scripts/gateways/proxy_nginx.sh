#!/bin/sh
# shellcheck disable=SC2034,SC2154  # weir_pid is used in proxy.sh, and dir, host, site, pid are set there
# docs/guide/gateways/nginx.md against nginx: what the document says is what a client sees.
# test-timeout: 600
. "$WEIR_SOURCE_DIR/tests/support/scripts/proxy.sh"
PATH=$PATH:/usr/sbin
need nginx curl python3 ss

cat >"$dir/nginx.conf" <<END
daemon off;
master_process off;
pid $dir/nginx.pid;
error_log $dir/nginx_log.err;
worker_processes 1;
events { worker_connections 8000; }
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
    await_start "$pid" curl -s -o "$dir/body" --interface 127.0.0.9 "http://$site/ready"
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
    END { exit seen != 2 }' "$dir/site.whole" >"$dir/site.429" || die "the other lines have no place"
cp "$dir/site.429" "$dir/site.conf"
start_weir --client-field x-forwarded-for
start_nginx
check_limits fields
check_keep_alive
stop_nginx
stop_weir

# nginx passes on the client's fields to a weir on a unix socket. What a client writes into Forwarded neither lifts a limit
# nor a block, and weir does not start without the name of nginx's own field.
sed "s|server $host:8080;|server unix:$dir/weir.sock;|; /proxy_pass_request_headers off/d" "$dir/site.whole" >"$dir/site.conf"
grep -q "unix:$dir/weir.sock" "$dir/site.conf" || die "no upstream"
sed "s/^block: .*/block: [{ip: 127.0.0.6}]/" "$dir/weir.yaml" >"$dir/socket.yaml"
socket_options="serve --config $dir/socket.yaml --http unix:$dir/weir.sock --resp off --admin off --threads 1 --max-age 0
    --no-watch --auth-deny-status 403"
rc=0
# shellcheck disable=SC2086  # words on purpose
timeout 20 "$weir" $socket_options </dev/null >"$dir/out" 2>"$dir/refused.err" || rc=$?
{ [ "$rc" = 2 ] && grep -q 'expected --client-field NAME' "$dir/refused.err"; } || die "started without the name of the field: $rc"
# shellcheck disable=SC2086
run weir "$weir" $socket_options --client-field x-forwarded-for
weir_pid=$pid
await_start "$pid" curl -sf --unix-socket "$dir/weir.sock" -o "$dir/body" http://localhost/healthz
start_nginx
let_in=0
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    ask 127.0.0.2 /page -H 'Forwarded: for=1.2.3.4'
    case $status in 200) let_in=$((let_in + 1)) ;; 429) ;; *) die "got $status" ;; esac
done
[ "$let_in" = 3 ] || die "$let_in of 20 were let in, expected 3"
expect 403 127.0.0.6 /page
expect 403 127.0.0.6 /page -H 'Forwarded: for=1.2.3.4'
stop_nginx
stop_weir

# Over TCP without the name: a request whose fields name different clients is refused, and counts as nobody's.
sed '/proxy_pass_request_headers off/d' "$dir/site.whole" >"$dir/site.conf"
start_weir --auth-deny-status 403
start_nginx
expect 200 127.0.0.2 /page
expect 500 127.0.0.2 /page -H 'Forwarded: for=1.2.3.4' # nginx makes this of weir's 400
expect 500 127.0.0.3 /page -H 'X-Real-IP: 192.0.2.66'
grep -q 'why="x-forwarded-for and forwarded name different clients' "$dir/weir.err" || die "not in the log"
grep -q -e '--client-field' "$dir/weir.err" || die "the log does not name the option"
stop_nginx
stop_weir

# A leaky bucket paces what nginx lets through: weir holds its reply. A longer delay is a denial.
cat >"$dir/weir.yaml" <<'END'
server: {trusted_proxies: [127.0.0.1/32]}
limits:
  - {name: paced, when: {path: /paced}, key: [], algorithm: leaky_bucket, rate: 20/s, queue: 3}
  - {name: slow, when: {path: /slow}, key: [], algorithm: leaky_bucket, rate: 1/min, queue: 3}
END
cp "$dir/site.whole" "$dir/site.conf"
start_weir --auth-deny-status 403 --client-field x-forwarded-for
start_nginx
began=$(date +%s%N)
for _ in 1 2 3; do expect 200 127.0.0.2 /paced; done
took_ms=$((($(date +%s%N) - began) / 1000000))
[ "$took_ms" -ge 98 ] || die "three requests at 20/s passed in $took_ms ms, expected 100"
expect 200 127.0.0.2 /slow
expect 429 127.0.0.2 /slow
[ "$(field Retry-After)" -ge 58 ] || die "Retry-After: $(field Retry-After)"
stop_nginx
stop_weir

attack nginx.md start_nginx
stop_nginx
stop_weir
cp "$dir/site.429" "$dir/site.conf"
options='' attack nginx.md start_nginx
