#!/bin/sh
# shellcheck disable=SC2154  # dir, host, site, pid are set in proxy.sh
# docs/guide/gateways/ingress-nginx.md without ingress-nginx, which needs a Kubernetes: nginx with the fields that ingress-nginx
# sends for `auth-url`, and with the snippets and the rule file of the page. What the controller itself does is not tested.
. "$WEIR_SOURCE_DIR/tests/support/scripts/proxy.sh"
PATH=$PATH:/usr/sbin
need nginx curl python3
python=
for p in python3 /usr/bin/python3; do
    if "$p" -c 'import yaml' 2>/dev/null; then python=$p; fi
done
[ -n "$python" ] || { echo "python3-yaml is missing" >&2; exit 77; }

secret=the-secret-of-the-controller
echo "$secret" >"$dir/secrets"
chmod 600 "$dir/secrets"
recipe ingress-nginx.md 'yaml kubernetes' >"$dir/ingress.yaml"
# snippet NAME: the value of an annotation
snippet() {
    "$python" -c 'import sys, yaml
print(yaml.safe_load(open(sys.argv[1]))["metadata"]["annotations"]["nginx.ingress.kubernetes.io/" + sys.argv[2]])' \
        "$dir/ingress.yaml" "$1" | sed "s/Weir-Secret \"\\.\\.\\.\"/Weir-Secret $secret/"
}
snippet auth-snippet >"$dir/auth-snippet"
grep -q "$secret" "$dir/auth-snippet" || die "the snippet has no secret"

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
    server {
        listen $site;
        $(snippet server-snippet)
        location / {
            auth_request /external-auth;
            $(snippet configuration-snippet)
            proxy_set_header Host \$http_host;
            proxy_pass http://$host:9000;
        }
        location = /external-auth {
            internal;
            proxy_pass_request_body off;
            proxy_set_header Content-Length "";
            proxy_set_header X-Forwarded-Proto "";
            proxy_set_header Host weir.default.svc.cluster.local;
            proxy_set_header X-Original-URL \$scheme://\$http_host\$request_uri;
            proxy_set_header X-Original-Method \$request_method;
            proxy_set_header X-Sent-From nginx-ingress-controller;
            proxy_set_header X-Real-IP \$remote_addr;
            proxy_set_header X-Forwarded-For \$remote_addr;
            proxy_set_header X-Auth-Request-Redirect \$request_uri;
            $(cat "$dir/auth-snippet")
            proxy_pass http://$host:8080/v1/auth;
        }
    }
}
END

recipe ingress-nginx.md 'sh by-hand' | grep -q -- '--check-secrets secrets --auth-deny-status 403$' || die "other options"
recipe ingress-nginx.md yaml | sed 's|10\.244\.0\.0/16|127.0.0.1/32|' >"$dir/weir.yaml"
start_weir --check-secrets "$dir/secrets" --auth-deny-status 403
check_strangers -H "Weir-Secret: $secret"
run nginx nginx -c "$dir/nginx.conf" -e "$dir/nginx_log.err"
nginx_pid=$pid
await_start "$pid" curl -s -o "$dir/body" --interface 127.0.0.9 "http://$site/ready"
dodges ingress-nginx.md strangers
attack_hosts ingress-nginx.md
for _ in 1 2 3 4 5 6; do ask 127.0.0.2 /login -H 'Host: shop.example'; done
[ "$status" = 429 ] || die "not denied: $status"
has_field retry-after

# Without weir: closed.
stop_weir
expect 500 127.0.0.3 /page
kill -TERM "$nginx_pid"
wait "$nginx_pid" || die "nginx: exit $?"
