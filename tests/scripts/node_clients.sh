#!/bin/sh
# Clients of Redis for Node against `weir serve`: node-redis as Debian has it, and where there is npm and a network, the present
# node-redis and ioredis, in RESP2 and RESP3, fetched into the build folder once.
# test-timeout: 600
set -eu
export LC_ALL=C
command -v node >/dev/null || { echo "node is missing" >&2; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
client=$WEIR_SOURCE_DIR/tests/scripts/node_clients.js
debian=/usr/share/nodejs
fetched=$WEIR_BUILD_DIR/node_clients
wanted='redis@6.3.1 ioredis@6.0.0' # they need Node 20

cat >"$dir/rules.yaml" <<'END'
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 1000/day}
END

# try MODULES LIBRARY VERSION-OF-RESP
try() { NODE_PATH=$1 timeout 120 node "$client" "$2" "$3" "$dir/rules.yaml" </dev/null; }

# Aside, and in place only when whole.
fetch() {
    [ ! -f "$fetched/$wanted" ] || return 0
    command -v npm >/dev/null || { echo "npm is missing"; return 1; }
    node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' || { echo "node is older than 20"; return 1; }
    mkdir "$dir/npm"
    # shellcheck disable=SC2086  # words on purpose
    (cd "$dir/npm" && timeout 90 npm install --no-audit --no-fund --ignore-scripts --no-save --loglevel=error $wanted \
        </dev/null >log 2>&1) || { tail -3 "$dir/npm/log"; return 1; }
    rm -rf "$fetched"
    mkdir -p "$fetched"
    mv "$dir/npm/node_modules" "$fetched/"
    : >"$fetched/$wanted"
}

tried=
if [ -d "$debian/redis" ]; then
    try "$debian" redis 2
    tried=yes
fi
if fetch; then
    for library in redis ioredis; do
        for version in 2 3; do
            try "$fetched/node_modules" "$library" "$version"
        done
    done
    tried=yes
else
    echo "the present node-redis and ioredis are left out"
fi
[ -n "$tried" ] || exit 77
