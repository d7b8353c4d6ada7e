#!/bin/sh
# `weir serve --demo` as `make run` starts it. The stories are in demo_stories.py.
# test-timeout: 120
set -eu
for python in /usr/bin/python3 python3; do
    if command -v "$python" >/dev/null; then exec "$python" "$WEIR_SOURCE_DIR/tests/scripts/demo_stories.py" "$@"; fi
done
echo "python3 is missing" >&2
exit 77
