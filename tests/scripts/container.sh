#!/bin/sh
# test-labels: nosan
# test-timeout: 180
# The container file, the compose file and the rules in the image: their words are true, and what they say works. There is no
# Docker in tests: the processes run in namespaces of their own, with exactly these variables, arguments and files. The
# stories are in container.py.
set -eu
for python in /usr/bin/python3 python3; do
    if command -v "$python" >/dev/null && "$python" -c 'import yaml' 2>/dev/null; then
        exec "$python" "$WEIR_SOURCE_DIR/tests/scripts/container.py" "$@"
    fi
done
echo "python3 with yaml is missing" >&2
exit 77
