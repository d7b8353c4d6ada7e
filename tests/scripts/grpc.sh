#!/bin/sh
# weir over gRPC, with the client that Debian has for Python. The stories are in grpc_stories.py.
# test-timeout: 240
set -eu
for python in /usr/bin/python3 python3; do
    if "$python" -c 'import grpc, grpc_tools' 2>/dev/null; then
        exec "$python" "$WEIR_SOURCE_DIR/tests/scripts/grpc_stories.py" "$@"
    fi
done
echo "python3-grpcio or python3-grpc-tools is missing" >&2
exit 77
