"""Who is denied, and why: the list and the chart tell offenders from clients of a dead store. Each function is a story.

Writes build/screenshots/denied-{light,dark}-{390,1440}.png, to be looked at.
"""
# test-labels: nosan
# test-timeout: 300
import http.client, json, os, subprocess, sys, tempfile, threading, urllib.request
from browser import SECRET, WEIR, Browser, free_port, link, serve, start_redis, stories, until

RULES = """block: [{user: mallory}]
limits:
  - {name: login, when: {path: /login}, key: [user], rate: 1/day, consistency: exact, on_store_failure: closed}
  - {name: api, when: {path: /api}, key: [user], rate: 1/day, consistency: local, on_missing: deny}
  - {name: ban, when: {path: /ban}, key: [user], rate: 1/day, consistency: local, ban: {denials: 2, within: 365day, for: 365day}}
"""
INNOCENT = ["client-%d" % i for i in range(7)]
PANEL = "[...document.querySelectorAll('section')].find(s => s.querySelector('h2')?.textContent === 'Denied most')"
folder = tempfile.mkdtemp()
port = free_port()
STORE = start_redis(port, folder)
S = serve("--store", "redis://127.0.0.1:%d" % port, rules=RULES)
B = Browser(width=1440)


def ask(path, *more):
    return subprocess.run([WEIR, "ask", "--http", S.address("http"), "path=" + path, *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def told(minutes):
    """The rows of /v1/top, as (limit, key, reason): count."""
    fields = {"Authorization": "Bearer " + SECRET}
    url = "http://%s/v1/top?n=100&minutes=%d" % (S.address("admin"), minutes)
    with urllib.request.urlopen(urllib.request.Request(url, headers=fields)) as reply:
        return {(r["limit"], r["key"], r["reason"]): r["count"] for r in json.load(reply)["denied"]}


def rows():
    """What the page lists: key, limit, reason, denied."""
    return B.js("return [...(%s)?.querySelectorAll('tbody tr') ?? []].map(tr => [tr.querySelector('a').textContent, ...[...tr.cells].slice(1).map(c => c.textContent.replace(/^\\W/, ''))])" % PANEL)


def note():
    return B.js("return (%s).querySelector('.note').textContent" % PANEL)


def legend():
    return [item.split("\n")[0] for item in B.js("return [...document.querySelectorAll('.legend')[0].children].map(l => l.childNodes[1].textContent)")]


def lists(row):
    until("%r is listed" % (row,), lambda: row in rows())


def an_offender_is_listed_with_limit_and_reason():
    B.open(link(S))
    B.sees("Denied most")
    ask("/api", "user=eve")
    until("eve is denied", lambda: "deny" in ask("/api", "user=eve"))
    lists(["eve", "api", "limit", "1"])
    assert "denied" in legend() and not any(":" in name for name in legend()), legend()
    B.check(S)


def clients_of_a_dead_store_are_no_offenders():
    STORE.kill()
    STORE.wait()
    until("the store is away", lambda: "store" in ask("/login", "user=first"))
    for user in INNOCENT:
        until(user + " is denied", lambda: "deny" in ask("/login", "user=" + user) or "store" in ask("/login", "user=" + user))
    until("all are told by the API", lambda: all(("login", user, "store") in told(1) for user in INNOCENT))
    assert not any(key in INNOCENT and reason != "store" for _, key, reason in told(15)), told(15)
    until("all are listed", lambda: {r[0] for r in rows() if r[1:3] == ["login", "store"]} >= set(INNOCENT))
    assert not any(r[0] in INNOCENT and r[2] != "store" for r in rows()), rows()
    B.sees("these limits deny everybody", ".denied-hint")
    until("the red area is split", lambda: {"denied: limit", "denied: store"} <= set(legend()))
    said = subprocess.run([WEIR, "ctl", "top-denied", "--admin", S.address("admin"), "--minutes", "5"], env={**os.environ, "WEIR_ADMIN_SECRET": SECRET},
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    assert any(line.split()[2:] == ["store", "login", INNOCENT[0]] for line in said.splitlines()), said
    B.check(S)


def every_other_reason_is_told_too():
    for _ in range(4):
        ask("/ban", "user=bruno")
    for _ in range(2):
        ask("/api")
        ask("/api", "user=mallory")
    subprocess.run([WEIR, "ctl", "key", "block", "api", "ben", "--admin", S.address("admin")], env={**os.environ, "WEIR_ADMIN_SECRET": SECRET}, stdout=subprocess.DEVNULL, check=True)
    ask("/api", "user=ben")
    lists(["bruno", "ban", "ban", "2"])
    lists(["ben", "api", "blocked", "1"])
    lists(["(no value)", "api", "missing", "2"])
    until("each has its area", lambda: {"denied: ban", "denied: block", "denied: store", "denied: missing"} <= set(legend()))
    assert "mallory" not in str(rows())
    B.check(S)


def the_chart_of_a_limit_is_split_too():
    press = "[...document.querySelectorAll('th[scope=row] button')].find(b => b.textContent === '%s').click()"
    ask("/login", "user=" + INNOCENT[0])
    until("the limit is there", lambda: "login" in B.text("table.data"))
    B.js(press % "login")
    until("only the store denies", lambda: legend() == ["allowed", "denied: limit", "denied: store", "shadow"])
    B.js(press % "ban")
    until("a ban denies", lambda: legend() == ["allowed", "denied: limit", "denied: ban", "shadow"])
    B.js(press % "ban")
    until("all are shown again", lambda: "errors" in legend())
    B.check(S)


def the_list_follows_the_chosen_time():
    for seconds, words in (("60", "second"), ("300", ""), ("900", "")):
        B.js("document.querySelector('input[type=radio][value=\"%s\"]').click()" % seconds)
        until("the note tells a time", lambda: note().startswith("in the last ") and words in note())
        lists(["eve", "api", "limit", "1"])
    B.check(S)


def a_reason_has_words_and_the_keyboard_reads_the_chart():
    title = B.js("return [...(%s).querySelectorAll('tbody td')].find(c => c.textContent.includes('store')).title" % PANEL)
    assert "on_store_failure is closed" in title, title
    B.js("document.querySelector('.chart').focus()")
    until("the chart is read", lambda: "denied: store" in B.js("return document.querySelector('.chart').getAttribute('aria-valuetext')"))
    B.check(S)


def crowd(over):
    """Clients that go on: some meet the dead store, one has spent its limit, one is banned, one has no name, one is blocked."""
    c = http.client.HTTPConnection(S.address("http"))
    asks = [{"path": "/login", "user": user} for user in INNOCENT] + [{"path": "/api", "user": "eve"}, {"path": "/api", "user": "eve"}, {"path": "/ban", "user": "bruno"},
                                                                      {"path": "/api"}, {"path": "/api", "user": "ben"}, {"path": "/free"}, {"path": "/free"}]
    while not over.wait(0.05):
        for attributes in asks:
            c.request("POST", "/v1/check", json.dumps({"attributes": attributes}))
            c.getresponse().read()
    c.close()


def seconds_with_store():
    fields = {"Authorization": "Bearer " + SECRET}
    with urllib.request.urlopen(urllib.request.Request("http://%s/v1/history" % S.address("admin"), headers=fields)) as reply:
        return sum(sample["denied"].get("store", 0) > 20 for sample in json.load(reply)["samples"])


def it_is_drawn_light_and_dark_narrow_and_wide():
    over = threading.Event()
    clients = threading.Thread(target=crowd, args=(over,))
    clients.start()
    try:
        B.js("document.activeElement.blur(); document.querySelector('input[type=radio][value=\"60\"]').click()")
        until("the areas have a width", lambda: seconds_with_store() >= 10)
        draw()
    finally:
        over.set()
        clients.join()
    B.check(S)


def draw():
    for width in (390, 1440):
        for dark in (False, True):
            B.resize(width, 900)
            B.scheme(dark)
            until("the window has its size", lambda: B.js("return innerWidth") == width)
            B.picture("denied-%s-%d" % ("dark" if dark else "light", width))
            wide = B.js("return document.documentElement.scrollWidth")
            assert wide <= width, "%d pixels wide, in a window of %d" % (wide, width)


try:
    stories(sys.modules[__name__])
finally:
    if STORE.poll() is None:
        STORE.kill()
    STORE.wait()
    S.stop()
    os.rmdir(folder)
