#!/bin/sh
# schema/weir.schema.json is what the rows of the rule file say, and agrees with `weir config check`: good rule files
# validate, and those with unknown keys, missing keys or values of the wrong type do not.
set -eu
python=
for p in python3 /usr/bin/python3; do
    if "$p" -c 'import jsonschema, yaml' 2>/dev/null; then python=$p; fi
done
[ -n "$python" ] || { echo "python3-jsonschema or python3-yaml is missing" >&2; exit 77; }
"$WEIR_BUILD_DIR/make_manual" --schema | diff -u "$WEIR_SOURCE_DIR/schema/weir.schema.json" - ||
    { echo "schema/weir.schema.json is old: run make schema" >&2; exit 1; }
for example in examples/rules.yaml packaging/weir.yaml; do
    head -2 "$WEIR_SOURCE_DIR/$example" | grep -q '^# yaml-language-server: [$]schema=.*/weir.schema.json$' ||
        { echo "$example does not name its schema in the first two lines" >&2; exit 1; }
done
"$python" "$WEIR_SOURCE_DIR/tests/scripts/schema.py" "$WEIR_SOURCE_DIR" </dev/null
