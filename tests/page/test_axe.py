"""axe-core, which looks for what people with disabilities stumble over, has no finding in any view."""
# test-labels: long nosan
# test-timeout: 600
import os, shutil, subprocess, sys, tempfile
from browser import SECRET, WEIR, Browser, free_port, link, serve, stories, until

FOLDER = tempfile.mkdtemp()
try:
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", FOLDER, "axe-core"], check=True, timeout=300,
                   stdin=subprocess.DEVNULL)
except (OSError, subprocess.SubprocessError) as e:
    print("axe-core cannot be had:", e, file=sys.stderr)
    sys.exit(77)
with open(os.path.join(FOLDER, "node_modules", "axe-core", "axe.min.js")) as f:
    AXE = f.read()
shutil.rmtree(FOLDER)
RULES = "limits:\n" + "".join("  - {name: %s, when: {path: /%s/**}, key: [user], rate: 5/min}\n" % (name, name) for name in ["search"] + ["limit-%02d" % i for i in range(40)])
S = serve(rules=RULES)
B = Browser()
RUN = "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(r => done(r.violations), e => done([{impact: 'error', id: String(e), nodes: []}]))"


def findings(name):
    B.js(AXE)
    found = B.driver.execute_async_script(RUN)
    return ["%s: %s: %s: %s" % (name, v["impact"], v["id"], "; ".join(n["html"][:160] for n in v["nodes"][:4]))
            for v in found]


def no_view_has_a_finding_light_or_dark_narrow_or_wide():
    B.open(link(S))
    B.sees("Sign out", "header")
    wait = {"live": "Rules in effect", "keys": "What the request meets", "play": "full", "try": "no problems"}
    found = []
    for name, words in wait.items():
        for dark in (False, True):
            B.scheme(dark, still=True)
            B.view(name)
            B.sees(words)
            if name == "try":
                B.click(".try-form button[type=submit]")
                until("an answer", lambda: "HTTP/1.1" in B.text())
                B.fill(".editor-area", "limits:\n  - {name: x, rate: often}\n")
                B.sees("line 2")
                B.fill(".editor-area", "limits:\n  - {name: x, key: [ip], rate: 1/s}\n")
                B.sees("no problems")
            if name == "keys":
                B.js("location.hash = '#/keys?path=/search/cats&user=alice'")
                B.sees("of 5 left")
            for width in (390, 1440):
                B.resize(width, 900)
                found += findings("%s, %d, %s" % (name, width, "dark" if dark else "light"))
            B.view("live")
    assert found == [], "\n".join(found)


def the_reasons_of_denials_have_no_finding():
    rules = ("block: [{user: mallory}]\nlimits:\n  - {name: api, key: [user], rate: 1/day, on_missing: deny}\n"
             "  - {name: ban, when: {path: /ban}, key: [user], rate: 1/day, ban: {denials: 1, within: 1day, for: 1day}}\n")
    server = serve(rules=rules)
    found = []
    B.open(link(server))
    B.sees("Denied most")
    for _ in range(3):
        for attributes in (["path=/x", "user=ann"], ["path=/x"], ["path=/x", "user=mallory"], ["path=/ban", "user=bea"]):
            subprocess.run([WEIR, "ask", "--http", server.address("http"), *attributes], stdout=subprocess.DEVNULL)
    for width in (390, 1440):
        B.resize(width, 844)
        for dark in (False, True):
            B.scheme(dark, still=True)
            B.sees("(no value)", "td.key")
            B.sees("denied: missing", ".legend")
            B.sees("denied: block", ".legend")
            found += findings("denied, %d, %s" % (width, "dark" if dark else "light"))
    B.open("about:blank")
    B.resize(1280, 900)
    B.scheme(False)
    server.stop()
    assert found == [], "\n".join(found)


def the_demo_has_no_finding_without_a_secret_narrow_or_wide():
    server = serve("--demo")
    found = []
    B.open(link(server, secret=None))  # another server is another origin, which has no secret yet
    for width in (390, 1440):
        B.resize(width, 844)
        for dark in (False, True):
            B.scheme(dark, still=True)
            B.view("live")
            B.view("play")
            until("the playground", lambda: B.value(".play-card", "quota") == 10)
            B.hold("[data-client] .spend")
            until("a denial", lambda: (B.value(".play-card", "denied") or 0) > 0)
            B.release()
            found += findings("demo, %d, %s" % (width, "dark" if dark else "light"))
            B.js("document.querySelector('input[value=all]').click()")
            until("five cards", lambda: len(B.all(".play-card")) == 5 and B.value(".play-card", "quota") == 10)
            found += findings("all five, %d, %s" % (width, "dark" if dark else "light"))
            B.click("#sign")
            B.sees("Admin secret", "dialog")
            found += findings("sign in, %d, %s" % (width, "dark" if dark else "light"))
            B.js("document.querySelector('dialog button').click()")
    server.stop()
    assert found == [], "\n".join(found)


def notices_of_each_severity_have_no_finding():
    s = serve("--store", "redis://127.0.0.1:%d" % free_port(), rules="limits: [{name: api, key: [user], rate: 5/min}]\n")
    B.open(link(s))
    B.driver.refresh()
    until("a critical one", lambda: B.text("#notices .bad"))
    subprocess.run([WEIR, "ctl", "--admin", s.address("admin"), "mode", "shadow"], env={"WEIR_ADMIN_SECRET": SECRET}, check=True,
                   stdout=subprocess.DEVNULL)
    until("a warning", lambda: B.text("#notices .warn"))
    found = []
    for dark in (False, True):
        for width in (390, 1440):
            B.resize(width, 900)
            B.scheme(dark, still=True)
            found += findings("notices, %s, %d" % ("dark" if dark else "light", width))
    B.open("about:blank")
    B.resize(1280, 900)
    B.scheme(False)
    s.stop()
    assert found == [], "\n".join(found)


stories(sys.modules[__name__])
S.stop()
