#!/bin/sh
# The clients that Debian packages install connect, ask, and go on after a restart (tests/clients/README.md).
# test-timeout: 300
set -eu
exec timeout 280 python3 -B "$WEIR_SOURCE_DIR/tests/clients/run.py" debian </dev/null
