#!/bin/sh
# test-labels: nosan
# test-timeout: 600
# The commands of README.md, the guides and docs/migrate print what these pages show.
set -eu
export LC_ALL=C.UTF-8
for needed in redis-cli redis-server curl openssl; do
    command -v $needed >/dev/null || { echo "$needed is missing" >&2; exit 77; }
done
python=
for p in python3 /usr/bin/python3; do
    if "$p" -c 'import redis, grpc, grpc_tools' 2>/dev/null; then python=$p; fi
done
[ -n "$python" ] || { echo "python3-redis, python3-grpcio or python3-grpc-tools is missing" >&2; exit 77; }
timeout 550 "$python" "$WEIR_SOURCE_DIR/tests/scripts/docs/docs_commands.py" "$WEIR_SOURCE_DIR" "$WEIR_BUILD_DIR" "$@" </dev/null
