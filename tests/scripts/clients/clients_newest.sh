#!/bin/sh
# The newest clients of all languages connect, ask, and go on after a restart (tests/clients/README.md).
# test-labels: long nosan
# test-timeout: 7200
set -eu
exec timeout 7100 python3 -B "$WEIR_SOURCE_DIR/tests/clients/run.py" newest </dev/null
