#!/bin/sh
# Clients that are generated from /openapi.json, in Python and TypeScript, use a real server (tests/clients/generated).
# test-labels: long nosan
# test-timeout: 3600
set -eu
export LC_ALL=C
dir=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
stories=$WEIR_SOURCE_DIR/tests/clients/generated
die() { echo "$*" >&2; cat "$dir/log" "$dir/err" >&2; exit 1; }
skip() { echo "left out: $*" >&2; exit 77; }
. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"
: >"$dir/err"

for tool in python3 node npm; do
    command -v "$tool" >/dev/null || skip "$tool is missing"
done
python3 -m venv "$dir/venv" >"$dir/log" 2>&1 || skip "python3 -m venv: $(tail -n 1 "$dir/log")"
timeout 600 "$dir/venv/bin/pip" install --quiet openapi-python-client httpx attrs python-dateutil </dev/null >"$dir/log" 2>&1 ||
    skip "openapi-python-client cannot be fetched: $(tail -n 1 "$dir/log")"
mkdir "$dir/ts"
cp "$stories/story.ts" "$dir/ts"
echo '{"private": true, "type": "module"}' >"$dir/ts/package.json"
(cd "$dir/ts" && timeout 600 npm install --no-audit --no-fund openapi-typescript openapi-fetch typescript@5) </dev/null >"$dir/log" 2>&1 ||
    skip "openapi-typescript cannot be fetched: $(tail -n 1 "$dir/log")"

cat >"$dir/rules.yaml" <<'END'
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 3/day}
END
echo "the-secret-of-operators" >"$dir/admin"
chmod 600 "$dir/admin"
: >"$dir/out"
"$WEIR_BUILD_DIR/weir" serve --max-age 0 --resp off --http 127.0.0.1:0 --admin 127.0.0.1:0 --config "$dir/rules.yaml" --no-watch \
    --admin-secrets "$dir/admin" </dev/null >"$dir/out" 2>"$dir/err" &
pid=$!
await_start "$pid" grep -q '^ *admin  ' "$dir/out"
http=http://$(sed -n 's/^ *http  *//p' "$dir/out")
admin=http://$(sed -n 's/^ *admin  *//p' "$dir/out")

# The generator knows no YAML: these three are left out or incomplete, and nothing else is.
(cd "$dir" && venv/bin/openapi-python-client generate --url "$http/openapi.json" --output-path made --meta none) </dev/null >"$dir/log" 2>&1 ||
    die "openapi-python-client: exit $?"
sed -n 's/^WARNING parsing \(.*\) within .*/\1/p' "$dir/log" | sort >"$dir/warned"
printf '%s\n' 'GET /v1/config' 'POST /v1/config/check' 'PUT /v1/limits/{name}' | diff - "$dir/warned" >&2 || die "other warnings"
! grep -q 'Unable to process schema' "$dir/log" || die "a schema was left out"
mv "$dir/made" "$dir/weir_client"
PYTHONPATH=$dir "$dir/venv/bin/python" -B "$stories/story.py" "$http" "$admin" "$(cat "$dir/admin")" || die "story.py"

cd "$dir/ts"
npx openapi-typescript "$http/openapi.json" -o weir.d.ts </dev/null >"$dir/log" 2>&1 || die "openapi-typescript: exit $?"
npx tsc --strict --target es2022 --module nodenext --moduleResolution nodenext story.ts </dev/null >"$dir/log" 2>&1 || die "tsc: exit $?"
node story.js "$http" "$admin" "$(cat "$dir/admin")" </dev/null || die "story.js"
kill -TERM "$pid"
rc=0
wait "$pid" || rc=$?
pid=
[ "$rc" = 0 ] || die "after SIGTERM: exit $rc"
