#!/bin/sh
# with_redis.sh PROGRAM...: runs it with the URL of a redis-server of its own behind its arguments.
set -eu
command -v redis-server >/dev/null || { echo "redis-server is missing" >&2; exit 77; }
dir=$(mktemp -d)
redis-server --port 0 --unixsocket "$dir/socket" --save '' --dir "$dir" </dev/null >"$dir/log" 2>&1 &
redis=$!
trap 'kill -KILL $redis 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT PIPE TERM # else dash leaves without it
tries=0
until [ -S "$dir/socket" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 400 ] || { cat "$dir/log" >&2; exit 1; }
    sleep 0.05
done
"$@" "redis://$dir/socket"
