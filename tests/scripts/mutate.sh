#!/bin/sh
# test-labels: nosan
# scripts/mutate finds the places of C that it may change, and nothing in comments, texts, preprocessor lines and asserts; the
# same seed draws the same mutants; those of tests/mutants.tsv are left out. What it builds and runs is tried by hand.
set -eu
command -v python3 >/dev/null || { echo "python3 is missing" >&2; exit 77; }
exec python3 -B - "$WEIR_SOURCE_DIR" <<'END'
import contextlib, importlib.machinery, importlib.util, io, os, sys, tempfile

top = sys.argv[1]
loader = importlib.machinery.SourceFileLoader("mutate", os.path.join(top, "scripts", "mutate"))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))
loader.exec_module(mutate)


def expect(body, *wanted):
    """The mutants of a function with this body."""
    source = "#define X(a) \\\n  ((a) < 1)\nstatic int most = 3;\nint f(int a, int *b)\n{\n" + body + "\n}\n"
    found = list(mutate.mutants_of("f.c", source))
    assert [m.what for m in found] == list(wanted), (body, [m.what for m in found])
    for m in found:
        changed = source[:m.start] + m.new + source[m.end:]
        assert changed != source and changed.count("\n") == source.count("\n"), m
        assert m.text.endswith(source.split("\n")[m.line - 1].strip()), m


expect("/* a < 1 */ // b == 2\n g(\"a && b\", '<', '\\'', \"\\\"1\");")
expect("if (a < 7) { }", "< -> <=", "7 -> 8")
expect("if (a >= b && !c) { }", ">= -> >", "&& -> ||", "! -> nothing")
expect("if (a == 0 || b != 0x1fu) { }", "== -> !=", "0 -> 1", "|| -> &&", "!= -> ==", "0x1fu -> 0x20u")
expect("a = b + c - d;", "+ -> -", "- -> +")
expect("a = -d; p->x++; a <<= b >> c; a += b;", "- -> nothing", "++ -> --", "+= -> -=")
expect("return g(a,\n  b);", "return ... -> return 0")
expect("return true;", "true -> false")
expect("return;")
expect("return a;")
expect("assert(a < 1 && f(b)); static_assert(1, \"\"); a = 1.5 + x1;", "+ -> -")
expect("x = a < b; y = c < d ? 1 : 1;", "< -> <=", "< -> <= (2)", "1 -> 2", "1 -> 2 (2)")


lines = ["  a;", "  return 0;", "b;", "return 0;", "", "b;", "return 0;"]
assert len(set(mutate.texts_of(lines))) == len(lines), mutate.texts_of(lines)


class Options:
    files, seed, count, again, quick, timeout = ["src/wire", "src/algo/algo.c"], 7, 5, None, False, None


mutate.EQUIVALENT = os.devnull
first, again = mutate.draw(Options), mutate.draw(Options)
assert first == again and len(first) > 500, len(first)
Options.seed = 8
assert mutate.draw(Options) != first and sorted(mutate.draw(Options)) == sorted(first)
assert {m.file.rpartition("/")[0] for m in first} == {"src/wire", "src/algo"}
assert all(mutate.folder_of(m.file) in mutate.LABELS for m in first)
with tempfile.NamedTemporaryFile("w", suffix=".tsv") as known:
    known.write("# why\n%s\t%s\t%s\tit is the same\n" % (first[0].file, first[0].text, first[0].what))
    known.flush()
    mutate.EQUIVALENT = known.name
    left = mutate.draw(Options)
    Options.seed = 7
    assert [m for m in first if m in left] == mutate.draw(Options)
    assert first[0] not in left and 0 < len(first) - len(left) < 5
    known.write("src/a.c\tno reason\t< -> <=\n")
    known.flush()
    try:
        mutate.draw(Options)
        raise AssertionError("a line without a reason was taken")
    except SystemExit as e:
        assert ":3: found 3 columns" in str(e), e
for folder in sorted({mutate.folder_of(f) for f in mutate.sources(["src"])}):
    assert folder in mutate.LABELS, folder  # a new folder of src/ needs a row

# The nearest tests come first; tests of other folders come last, in the order of what they cost.
tests = mutate.Tests.__new__(mutate.Tests)
tests.labels = {name: [name.split(".")[0]] for name in (
    "unit.wire.resp", "unit.wire.http", "unit.rules.value.number", "unit.rules.yaml.yaml", "unit.base.hash", "fuzz.resp", "server.loop.crowd",
    "server.http.http", "script.ctl")}
tests.texts, tests.steps = dict.fromkeys(tests.labels, ""), {}
tests.texts["unit.wire.http"] = '#include "wire/resp.h"\n'


def groups_of(file):
    return [(distance, step.names) for distance, step in tests.steps_for(file)]


rest = mutate.OWN + mutate.ORDER.index("unit")
assert groups_of("src/wire/resp.c")[0] == (0, ["unit.wire.resp", "unit.wire.http", "fuzz.resp"]), groups_of("src/wire/resp.c")
assert groups_of("src/wire/resp.c")[1] == (rest, ["unit.rules.value.number", "unit.rules.yaml.yaml", "unit.base.hash"])
assert groups_of("src/rules/value/cookie.c")[:2] == [(1, ["unit.rules.value.number"]), (2, ["unit.rules.yaml.yaml"])]
assert groups_of("src/server/http/http_json.c")[0] == (1, ["server.http.http"])
assert groups_of("src/cli/ctl/ctl_keep.c")[0] == (1, ["script.ctl"])
assert all(distance >= mutate.OWN for distance, _ in groups_of("src/fleet/secret.c"))

# What is reported: a survivor's line, with a reason, is a line of the list.
said = io.StringIO()
results = iter(["same", None, "unit.x", "", "a time limit"])
mutate.try_mutant, Options.count = lambda *_: next(results), 3


class NoTests:
    @staticmethod
    def steps_for(file):
        return []


mutate.Tests = NoTests
with contextlib.redirect_stdout(said), tempfile.NamedTemporaryFile("w", suffix=".tsv") as known:
    counts, survivors = mutate.judge_all(Options, first)
    mutate.report(counts, survivors)
    assert survivors == [first[3]] and counts["killed"] == 2, (counts, survivors)
    known.write(said.getvalue().splitlines()[-1] + "it is the same\n")
    known.flush()
    assert mutate.read_equivalent(known.name) == {(first[3].file, first[3].text, first[3].what)}
    mutate.EQUIVALENT, Options.again = os.devnull, known.name
    assert mutate.draw(Options) and all(m.text == first[3].text for m in mutate.draw(Options))
    Options.again = None
assert "2 of 3 mutants killed (66.7 %); besides, 1 gave the same machine code, 1 did not compile" in said.getvalue(), said.getvalue()

mutate.EQUIVALENT = os.path.join(top, "tests", "mutants.tsv")
Options.files = ["src"]
assert len(mutate.draw(Options)) > 20000
END
