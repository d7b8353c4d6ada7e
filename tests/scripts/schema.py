"""Validates rule files by the schema and compares with what `weir config check` says (tests/golden/config).

Usage: schema.py SOURCE_DIR
"""
import glob
import json
import os
import re
import sys

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """Reads scalars as YAML 1.2 does, and so editors: `off` is a text, not a boolean."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("bool", r"^(?:true|false)$", "tf"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?[0-9]+\.[0-9]*$", "-+0123456789"),
    ("null", r"^(?:null|~|)$", ["n", "~", ""]),
):
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(pattern), list(first))

# What `weir config check` says of keys and types, and a schema must see too.
WRONG = re.compile(r": (unknown key|found (a limit|overrides|a store|a ban) without|found (a list|a map|nothing|an empty)"
                   r".*, expected)")


def read(path):
    """Returns the document, or None if it is no YAML (which an editor says without a schema)."""
    try:
        with open(path, encoding="utf-8") as file:
            documents = list(yaml.load_all(file, Loader))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError):
        return None
    return documents[0] if len(documents) == 1 else None


def main(source):
    with open(os.path.join(source, "schema/weir.schema.json"), encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    golden = os.path.join(source, "tests/golden/config")
    good = [os.path.join(source, name) for name in ("examples/rules.yaml", "packaging/weir.yaml")]
    bad = []
    for path in sorted(glob.glob(os.path.join(golden, "*.yaml"))):
        with open(path[:-len("yaml")] + "expected", encoding="utf-8") as file:
            told = file.read()
        errors = [line for line in told.splitlines() if ": warning: " not in line]
        if errors[-1] == "exit 0":
            good.append(path)
        elif any(WRONG.search(line) and os.path.basename(path) + ":" in line for line in errors):
            bad.append(path)
    failed = 0
    seen = [0, 0]
    for path in good + bad:
        document = read(path)
        if document is None and path in bad:
            continue
        found = list(validator.iter_errors(document))
        seen[path in bad] += 1
        if path in good and found:
            failed += 1
            print(f"{path}: good rules, but: {found[0].message} at {list(found[0].absolute_path)}", file=sys.stderr)
        elif path in bad and not found:
            failed += 1
            print(f"{path}: wrong keys or types, but it validates", file=sys.stderr)
    if failed or seen[0] < 15 or seen[1] < 15:
        print(f"{failed} files are wrong, of {seen[0]} good and {seen[1]} bad", file=sys.stderr)
        return 1
    print(f"{seen[0]} good files validate, {seen[1]} with wrong keys or types do not")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
