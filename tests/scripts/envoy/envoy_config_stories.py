"""The files of --envoy-config: messages about bad ones, reloads, and their conversion to a rule file of weir. Each function
below is a story; its name says which."""
import os, re, shutil, subprocess

from envoy_world import PATIENCE, World, listen_at, write_all
from running import WEIR, Server, tell, until

GOOD = """domain: shop
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 5}}
"""
HEAD = "domain: shop\ndescriptors:\n  - "

# What is wrong, a file in which § is the place of the error (its line and column) or ¶ only its line, and words of the
# message: what was found, what was expected.
ERRORS = [
    ("a misspelt key", HEAD + "{key: a, §rate_limt: {unit: day, requests_per_unit: 1}}\n", "rate_limt", "rate_limit"),
    ("a key of the reference server at the wrong place", HEAD + "{key: a, §unit: day}\n", "unit", "rate_limit"),
    ("an empty domain", "domain: §''\ndescriptors: [{key: a}]\n", "domain"),
    ("no domain", "¶descriptors: [{key: a}]\n", "domain"),
    ("an empty key", HEAD + "{key: §'', rate_limit: {unit: day, requests_per_unit: 1}}\n", "key"),
    ("no key", HEAD + "¶{value: a, rate_limit: {unit: day, requests_per_unit: 1}}\n", "key"),
    ("a key twice", HEAD + "{key: a, value: b}\n  - {key: a}\n  - ¶{key: a, value: b}\n", "'a'", "'b'"),
    ("a key without a value twice", HEAD + "{key: a}\n  - {key: b}\n  - ¶{key: a}\n", "'a'"),
    ("a key twice on a lower level", HEAD + "key: a\n    descriptors:\n      - {key: b}\n      - ¶{key: b}\n", "'b'"),
    ("a unit that there is not", HEAD + "{key: a, rate_limit: {unit: §fortnight, requests_per_unit: 1}}\n", "fortnight", "second",
     "year"),
    ("no unit", HEAD + "{key: a, rate_limit: ¶{requests_per_unit: 1}}\n", "unit"),
    ("no count", HEAD + "{key: a, rate_limit: §{unit: day}}\n", "no requests_per_unit", "4294967295"),
    ("a unit of something unlimited", HEAD + "{key: a, rate_limit: {¶unit: day, unlimited: true}}\n", "unit", "unlimited"),
    ("a count below 0", HEAD + "{key: a, rate_limit: {unit: day, requests_per_unit: §-1}}\n", "-1", "4294967295"),
    ("a count that is too large", HEAD + "{key: a, rate_limit: {unit: day, requests_per_unit: §4294967296}}\n", "4294967296",
     "4294967295"),
    ("a count that is a word", HEAD + "{key: a, rate_limit: {unit: day, requests_per_unit: §many}}\n", "many"),
    ("a flag that is a number", HEAD + "{key: a, shadow_mode: §7}\n", "7", "true"),
    ("a limit that replaces itself", HEAD +
     "{key: a, rate_limit: {name: me, replaces: [{name: ¶me}], unit: day, requests_per_unit: 1}}\n", "'me'", "another"),
    ("a limit that replaces an empty name", HEAD +
     "{key: a, rate_limit: {replaces: [{name: §''}], unit: day, requests_per_unit: 1}}\n", "empty", "name"),
    ("a key of weir that there is not", HEAD +
     "{key: a, rate_limit: {unit: day, requests_per_unit: 1, weir: {§algoritm: token_bucket}}}\n", "algoritm", "algorithm"),
    ("a bad value of a key of weir", HEAD +
     "{key: a, rate_limit: {unit: day, requests_per_unit: 1, weir: {algorithm: §tokens}}}\n", "tokens", "token_bucket"),
    ("keys of weir that do not go together", HEAD +
     "{key: a, rate_limit: {unit: day, requests_per_unit: 1, weir: {¶burst: 5}}}\n", "burst", "fixed_window"),
    ("a list where a map is meant", "domain: shop\ndescriptors: ¶{key: a}\n", "descriptors", "list"),
    ("no YAML", "domain: shop\ndescriptors:\n  - {key: a\n¶", "shop.yaml"),
]


def place_of(text):
    """Returns the file without its mark, and the place that messages name for the mark."""
    before = re.split("[§¶]", text)[0]
    line, column = before.count("\n") + 1, len(before.rsplit("\n", 1)[-1]) + 1
    return re.sub("[§¶]", "", text), "%d:%d:" % (line, column) if "§" in text else "%d:" % line


def start_fails(files, *words):
    """A server does not start with these files, and says so in one line that has all the words."""
    folder = World.scratch()
    write_all(os.path.join(folder, "envoy"), files)
    server = Server(*listen_at(0), "--envoy-config", "envoy", rules=None, folder=folder, wait=False)
    until("it has started or ended", lambda: " started " in server.log() or server.process.poll() is not None)
    started = server.process.poll() is None
    server.close()
    said = server.last[1]
    assert not started and server.process.returncode == 2, "it started: " + said
    assert any(all(word in line for word in words) for line in said.splitlines()), (words, said)


def each_mistake_is_refused_with_its_place_and_what_was_expected():
    failed = []
    for what, marked, *words in ERRORS:
        text, place = place_of(marked)
        try:
            start_fails({"shop.yaml": text}, "envoy/shop.yaml:" + place, *words)
        except AssertionError as e:
            failed.append("%s: %s" % (what, e))
    assert not failed, "\n".join(failed)


def a_name_that_replaces_nothing_is_told_and_changes_nothing():
    w = World({"shop.yaml": HEAD + "{key: user, rate_limit: {unit: year, requests_per_unit: 5, replaces: [{name: none}]}}\n"})
    w.expect("shop", "user=x -> OK: OK 4 of 5/YEAR")
    done = convert(w.config)
    assert done.returncode == 0 and "found 'none' in 'replaces'" in done.stderr and "replaces" not in done.stdout, done
    log = w.close()
    assert "shop.yaml:3:" in log and "found 'none' in 'replaces'" in log, log


def a_domain_in_two_files_names_both_and_all_mistakes_are_told_at_once():
    start_fails({"a.yaml": GOOD, "b.yaml": GOOD}, "envoy/b.yaml:1:9:", "'shop'", "a.yaml")
    bad = {"a.yaml": HEAD + "{key: ''}\n", "b.yaml": "domain: b\ndescriptors: [{kye: a}]\n"}
    start_fails(bad, "envoy/a.yaml:3:")
    start_fails(bad, "envoy/b.yaml:2:")
    folder = World.scratch()
    server = Server(*listen_at(0), "--envoy-config", "nothing", rules=None, folder=folder, wait=False)
    assert server.ended() == 2 and "nothing" in server.last[1], server.last


def files_of_other_names_are_not_read():
    w = World({"shop.yaml": GOOD, "notes.txt": "no: [rules", ".hidden.yaml": "no: [rules", "README.md": "# no rules"})
    w.expect("shop", "user=x -> OK: OK 4 of 5/YEAR")
    w.close()


# ---- reloads ----

def with_limit(count, more=""):
    return GOOD.replace("5}}", "%d}}" % count) + more


def limit_of(world):
    return world.call("shop", "user=look *0").statuses[0].current_limit.requests_per_unit


def a_file_that_changes_is_read_again_and_counts_go_on():
    w = World({"shop.yaml": GOOD})
    w.expect("shop", "user=x *2 -> OK: OK 3 of 5/YEAR", "more=x -> OK: OK -")
    write_all(w.config, {"shop.yaml": GOOD + "  - {key: more, rate_limit: {unit: year, requests_per_unit: 1}}\n"})
    until("the new rule is there", lambda: w.ask("shop", "more=x *0") == "OK: OK 1 of 1/YEAR")
    w.expect("shop", "user=x -> OK: OK 2 of 5/YEAR")
    write_all(w.config, {"shop.yaml": with_limit(7)})
    until("the new count is there", lambda: limit_of(w) == 7)
    w.expect("shop", "user=x -> OK: OK 3 of 7/YEAR", "more=x -> OK: OK -")
    write_all(w.config, {"second.yaml": GOOD.replace("shop", "second")})
    until("the new file is there", lambda: w.ask("second", "user=x *0") == "OK: OK 5 of 5/YEAR")
    os.remove(os.path.join(w.config, "second.yaml"))
    until("the file is gone", lambda: w.ask("second", "user=x *0") == "OK: OK -")
    w.close()


def a_rule_file_beside_them_is_read_again_too():
    rules = "limits: [{name: all, when: {domain: shop}, key: [user], algorithm: fixed_window, rate: %d/365day}]\n"
    w = World({"shop.yaml": GOOD}, rules=rules % 3)
    w.expect("shop", "user=x -> OK: OK 2 of 3/YEAR")  # of both limits, the one that has less left is told
    w.server.write(rules % 4)
    until("the rule file is read again", lambda: limit_of(w) == 4)
    write_all(w.config, {"shop.yaml": with_limit(2)})
    until("the other file is read again", lambda: limit_of(w) == 2)
    w.expect("shop", "user=x -> OK: OK 0 of 2/YEAR")
    w.close()


def a_bad_file_changes_nothing_and_is_told():
    w = World({"shop.yaml": GOOD})
    w.expect("shop", "user=x *2 -> OK: OK 3 of 5/YEAR")
    write_all(w.config, {"shop.yaml": with_limit(9, "  - {kye: a}\n")})
    until("the mistake is told", lambda: "the old rules stay" in w.server.log())
    assert "shop.yaml line=4 column=6 " in w.server.log() and "'kye'" in w.server.log(), w.server.log()
    w.expect("shop", "user=x -> OK: OK 2 of 5/YEAR")
    write_all(w.config, {"shop.yaml": with_limit(9)})
    until("the good file is there", lambda: limit_of(w) == 9)
    write_all(w.config, {"copy.yaml": GOOD})
    until("the second file of the domain is told", lambda: "found the domain 'shop' a second time" in w.server.log())
    assert limit_of(w) == 9
    w.close()


def a_config_map_of_kubernetes_is_read_again_when_its_link_is_swapped():
    w = World({"..2026_01/shop.yaml": GOOD}, links={"..data": "..2026_01", "shop.yaml": "..data/shop.yaml"})
    w.expect("shop", "user=x -> OK: OK 4 of 5/YEAR")
    for count in (6, 7):
        made = "..2026_0%d" % count
        write_all(w.config, {made + "/shop.yaml": with_limit(count)})
        os.symlink(made, os.path.join(w.config, "..data_tmp"))
        os.rename(os.path.join(w.config, "..data_tmp"), os.path.join(w.config, "..data"))
        until("the new rules are there", lambda: limit_of(w) == count)
    shutil.rmtree(os.path.join(w.config, "..2026_01"))
    w.expect("shop", "user=x -> OK: OK 5 of 7/YEAR")
    w.close()


# ---- conversion ----

SHOP = {"shop.yaml": """domain: shop
descriptors:
  - key: path
    value: /login
    descriptors:
      - {key: remote_address, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: user, rate_limit: {unit: year, requests_per_unit: 5}}
  - {key: user, value: batch, rate_limit: {unlimited: true}}
  - {key: user, value: 'trial-*', rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: user, value: banned, rate_limit: {unit: year, requests_per_unit: 0}}
  - {key: generic_key, value: all, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: generic_key, value: tokens, rate_limit: {unit: day, requests_per_unit: 9, weir: {algorithm: token_bucket, burst: 3}}}
""", "second.yaml": GOOD.replace("shop", "second")}
QUESTIONS = [
    *[("shop", "path=/login, remote_address=10.0.0.1")] * 3, ("shop", "path=/login, remote_address=10.0.0.2"),
    ("shop", "path=/logout, remote_address=10.0.0.1"), *[("shop", "user=ann")] * 6, *[("shop", "user=bob | user=ann")] * 2,
    *[("shop", "user=batch")] * 7, *[("shop", "user=trial-1")] * 2, ("shop", "user=trial-2"), ("shop", "user=banned"),
    *[("shop", "generic_key=all")] * 2, *[("shop", "generic_key=tokens")] * 4, ("shop", "generic_key=other"),
    *[("second", "user=ann")] * 6, ("third", "user=ann"), ("shop", "hits=3; user=c"), ("shop", "hits=3; user=c"),
]


def convert(folder):
    return subprocess.run([WEIR, "config", "convert", "--from", "envoy", folder], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE)


def verdicts(world):
    """Returns the codes and what is left: names and units may differ."""
    told = [world.ask(domain, question) for domain, question in QUESTIONS]
    world.close()
    return [re.sub(r" of \S+( [^ |]+)?", "", t).replace(" unlimited", " -") for t in told]


def converted_files_are_a_rule_file_that_decides_the_same():
    original = World(SHOP)
    done = convert(original.config)
    assert done.returncode == 0, done
    write_all(original.folder, {"converted.yaml": done.stdout})
    checked = subprocess.run([WEIR, "config", "check", os.path.join(original.folder, "converted.yaml")],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    assert checked.returncode == 0, checked.stdout + done.stdout
    wanted, got = verdicts(original), verdicts(World({}, rules=done.stdout))
    for question, one, other in zip(QUESTIONS, wanted, got):
        assert one == other, (question, one, other, done.stdout)
    write_all(original.config, {"bad.yaml": "domain: bad\ndescriptors: [{kye: a}]\n"})
    done = convert(original.config)
    assert done.returncode != 0 and "bad.yaml:2:16:" in done.stderr and done.stdout == "", done


if __name__ == "__main__":
    tell(globals())
