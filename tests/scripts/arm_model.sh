#!/bin/sh
# test-labels: aarch64 nosan
# The table's protocol holds in every execution that the Armv8 memory model allows; qemu on x86 would not show a weak order.
set -eu
command -v python3 >/dev/null || { echo "no python3 here"; exit 77; }
exec python3 -B "$WEIR_SOURCE_DIR/tests/models/table.py"
