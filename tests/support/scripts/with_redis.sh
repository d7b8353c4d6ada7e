#!/bin/sh
# with_redis.sh PROGRAM...: runs it with the URL of a redis-server of its own behind its arguments.
set -eu
command -v redis-server >/dev/null || { echo "redis-server is missing" >&2; exit 77; }
dir=$(mktemp -d)
die() { echo "$*" >&2; cat "$dir/log" >&2; exit 1; }
. "$(dirname "$0")/until_true.sh"
redis-server --port 0 --unixsocket "$dir/socket" --save '' --dir "$dir" </dev/null >"$dir/log" 2>&1 &
redis=$!
trap 'kill -KILL $redis 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT PIPE TERM # else dash leaves without it
await_start "$redis" [ -S "$dir/socket" ]
"$@" "redis://$dir/socket"
