#!/bin/sh
# Envoy's rate limit service as weir serves it, with the client that Debian has for Python: what envoyproxy/ratelimit
# documents, line by line (envoy_table.py), what is weir's own (envoy_stories.py), and its files (envoy_config_stories.py).
# test-timeout: 240
set -eu
here=$WEIR_SOURCE_DIR/tests/scripts/envoy
for python in /usr/bin/python3 python3; do
    if "$python" -c 'import grpc, grpc_tools' 2>/dev/null; then
        "$python" "$here/envoy_table.py" "$@"
        "$python" "$here/envoy_stories.py" "$@"
        exec "$python" "$here/envoy_config_stories.py" "$@"
    fi
done
echo "python3-grpcio or python3-grpc-tools is missing" >&2
exit 77
