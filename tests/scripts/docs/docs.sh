#!/bin/sh
# Every rule file in the documents is accepted by `weir config check`, and every relative link in them leads somewhere.
set -eu
export LC_ALL=C.UTF-8
command -v python3 >/dev/null || { echo "python3 is missing" >&2; exit 77; }
timeout 250 python3 "$WEIR_SOURCE_DIR/tests/scripts/docs/docs.py" "$WEIR_SOURCE_DIR" "$WEIR_BUILD_DIR/weir" </dev/null
