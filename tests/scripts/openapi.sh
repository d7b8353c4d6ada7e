#!/bin/sh
# docs/reference/openapi.json says what the server does: every operation is asked for, and what comes back validates.
set -eu
python=
for p in python3 /usr/bin/python3; do
    if "$p" -c 'import jsonschema' 2>/dev/null; then python=$p; fi
done
[ -n "$python" ] || { echo "python3-jsonschema is missing" >&2; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
timeout 250 "$python" "$WEIR_SOURCE_DIR/tests/scripts/openapi.py" "$WEIR_SOURCE_DIR/docs/reference/openapi.json" \
    "$WEIR_BUILD_DIR/weir" "$dir" </dev/null
