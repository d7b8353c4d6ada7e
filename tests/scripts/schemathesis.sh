#!/bin/sh
# schemathesis, which makes up requests from /openapi.json, finds no answer of either HTTP listener that is not as described.
# test-labels: long nosan
# test-timeout: 3600
set -eu
export LC_ALL=C
dir=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
here=$WEIR_SOURCE_DIR/tests/scripts
die() { echo "$*" >&2; exit 1; }
skip() { echo "left out: $*" >&2; exit 77; }

. "$WEIR_SOURCE_DIR/tests/support/scripts/until_true.sh"

command -v python3 >/dev/null || skip "python3 is missing"
python3 -m venv "$dir/venv" >"$dir/log" 2>&1 || skip "python3 -m venv: $(tail -n 1 "$dir/log")"
timeout 600 "$dir/venv/bin/pip" install --quiet schemathesis </dev/null >"$dir/log" 2>&1 ||
    skip "schemathesis cannot be fetched: $(tail -n 1 "$dir/log")"
"$dir/venv/bin/st" --version

cat >"$dir/rules.yaml" <<'END'
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 5/min}
  - {name: queue, when: {path: /queue}, key: [user], rate: 100/s, algorithm: leaky_bucket, queue: 5}
  - {name: seen, when: {path: /seen}, key: [user], rate: 1/h, shadow: true}
END
echo "the secret of checks" >"$dir/check"
echo "the secret of operators" >"$dir/admin"
chmod 600 "$dir/check" "$dir/admin"

for listener in http admin; do
    : >"$dir/out"
    "$WEIR_BUILD_DIR/weir" serve --max-age 0 --resp off --http 127.0.0.1:0 --admin 127.0.0.1:0 --config "$dir/rules.yaml" \
        --no-watch --check-secrets "$dir/check" --admin-secrets "$dir/admin" </dev/null >"$dir/out" 2>"$dir/err" &
    pid=$!
    await_start "$pid" grep -q '^ *admin  ' "$dir/out"
    url=http://127.0.0.1:$(sed -n "s/^ *$listener  *127\.0\.0\.1:\([0-9]*\)$/\1/p" "$dir/out")
    python3 "$here/schemathesis.py" "$url/openapi.json" api queue seen >"$dir/openapi.json"
    (cd "$dir" && timeout 1700 venv/bin/st --config-file "$here/schemathesis.toml" run openapi.json --url "$url" \
        --include-tag "$listener" -H "Weir-Secret: $(cat "$dir/admin")" --warnings off \
        --max-examples "${EXAMPLES:-200}" </dev/null) || die "$listener: see above"
    kill -TERM "$pid"
    rc=0
    wait "$pid" || rc=$?
    pid=
    [ "$rc" = 0 ] || die "$listener: the server ended with $rc: $(tail -n 5 "$dir/err")"
done
