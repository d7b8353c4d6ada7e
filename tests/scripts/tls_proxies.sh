#!/bin/sh
# nginx and HAProxy as TLS clients of weir: they verify its certificate, keep connections, and refuse one of another CA.
# test-timeout: 300
set -eu
export LC_ALL=C no_proxy='*' NO_PROXY='*'
PATH=$PATH:/usr/sbin
for tool in nginx haproxy curl openssl timeout; do
    command -v "$tool" >/dev/null || { echo "$tool is missing" >&2; exit 77; }
done
dir=$(mktemp -d)
started=
finish() {
    for one in $started; do kill -KILL "$one" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap finish EXIT
trap 'exit 1' HUP INT PIPE TERM
die() {
    echo "$*" >&2
    for f in "$dir"/*.err; do [ ! -s "$f" ] || { echo "--- ${f##*/}" >&2; tail -40 "$f" >&2; }; done
    exit 1
}
. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"
. "$WEIR_SOURCE_DIR/tests/support/scripts/certificates.sh"

make_ca ca
make_ca other
make_certificate server ca server
# an address of the loopback that is this test's alone, so that no port is taken
host=127.$((1 + $$ / 62500 % 200)).$((1 + $$ / 250 % 250)).$((1 + $$ % 250))

"$WEIR_BUILD_DIR/weir" serve --resp off --admin off --http "$host:8443" --metrics "$host:8444" --tls-cert "$dir/server.crt" --tls-key "$dir/server.key" \
    </dev/null >"$dir/weir.out" 2>"$dir/weir.err" &
started="$started $!"
await_start $! curl -s -o "$dir/body" --cacert "$dir/ca.crt" --resolve "localhost:8443:$host" https://localhost:8443/readyz

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
    upstream weir { server $host:8443; keepalive 4; }
    upstream other { server $host:8443; } # a pool of connections of its own
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host localhost;
    proxy_ssl_name localhost;
    proxy_ssl_server_name on;
    proxy_ssl_verify on;
    server { listen $host:8001; proxy_ssl_trusted_certificate $dir/ca.crt; location / { proxy_pass https://weir; } }
    server { listen $host:8002; proxy_ssl_trusted_certificate $dir/other.crt; location / { proxy_pass https://other; } }
}
END
nginx -c "$dir/nginx.conf" -e "$dir/nginx_log.err" </dev/null >"$dir/nginx.out" 2>"$dir/nginx.err" &
nginx=$!
started="$started $nginx"

cat >"$dir/haproxy.cfg" <<END
defaults
    mode http
    timeout connect 20s
    timeout client 20s
    timeout server 20s
    retries 0
    http-reuse always
listen good
    bind $host:8003
    http-request set-header Host localhost
    server weir $host:8443 ssl verify required ca-file $dir/ca.crt sni str(localhost) verifyhost localhost
listen bad
    bind $host:8004
    http-request set-header Host localhost
    server weir $host:8443 ssl verify required ca-file $dir/other.crt sni str(localhost) verifyhost localhost
END
haproxy -db -f "$dir/haproxy.cfg" </dev/null >"$dir/haproxy.out" 2>"$dir/haproxy.err" &
haproxy=$!
started="$started $haproxy"

status() { curl -s -o "$dir/body" -w '%{http_code}' "http://$host:$1/readyz"; }
speaks() { [ "$(status "$1")" != 000 ]; }
for port in 8001 8002; do await_start "$nginx" speaks "$port"; done
for port in 8003 8004; do await_start "$haproxy" speaks "$port"; done
for port in 8001 8003; do
    for _ in 1 2 3 4 5 6 7 8; do
        [ "$(status "$port")" = 200 ] || die "port $port: found $(status "$port"), expected 200"
    done
done
[ "$(status 8002)" = 502 ] || die "nginx trusts another CA"
case $(status 8004) in 502 | 503) ;; *) die "HAProxy trusts another CA" ;; esac

# The proxies kept their connections: a handshake of each one, and not one for each request.
made=$(curl -s --cacert "$dir/ca.crt" --resolve "localhost:8444:$host" https://localhost:8444/metrics |
    sed -n 's/^weir_tls_handshakes_total{result="success"} //p')
[ "${made:-99}" -lt 15 ] || die "found $made handshakes for the proxies' 16 requests"
