#!/bin/sh
# `weir serve` as a service manager and an operator see it: options, reloads, sockets from outside, signs of life, its
# log and its end. The stories are in running.py.
# test-timeout: 180
set -eu
for python in /usr/bin/python3 python3; do
    if command -v "$python" >/dev/null; then exec "$python" "$WEIR_SOURCE_DIR/tests/scripts/running.py" "$@"; fi
done
echo "python3 is missing" >&2
exit 77
