"""What operators must know at once stands below the header, and goes when it is over. Each function is a story."""
# test-labels: nosan
# test-timeout: 600
import atexit, json, os, shutil, subprocess, sys, tempfile, urllib.error, urllib.request
from browser import SECRET, WEIR, Browser, free_port, link, serve, start_redis, stories, until

DIR = tempfile.mkdtemp()
atexit.register(shutil.rmtree, DIR, ignore_errors=True)
PORT = free_port()
RULES = """store: {url: "redis://127.0.0.1:%d", deadline: 100ms, fleet_size: 2}
attributes: {user: request}
limits:
  - {name: login, when: {path: /login}, key: [user], rate: 5/min, on_store_failure: closed}
  - {name: search, when: {path: /search/**}, key: [user], rate: 30/min}
  - {name: mail, when: {path: /mail}, key: [user], rate: 5/min, consistency: local, max_keys: 64, on_full: deny}
""" % PORT
LOCAL = """attributes: {user: request}
limits:
  - {name: mail, when: {path: /mail}, key: [user], rate: 5/min, max_keys: 64, on_full: deny}
  - {name: search, when: {path: /search/**}, key: [user], rate: 30/min}
"""
B = Browser()


class Redis:
    def __init__(self):
        self.process = start_redis(PORT, DIR)
        atexit.register(self.process.kill)

    def kill(self):
        self.process.kill()
        self.process.wait()


def notice(name):
    return B.text("#notices [data-notice=%s]" % name)


def ctl(s, *words):
    return subprocess.run([WEIR, "ctl", "--admin", s.address("admin"), *words], env={"WEIR_ADMIN_SECRET": SECRET}, check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def ready(s):
    with urllib.request.urlopen("http://%s/readyz" % s.address("http"), timeout=60) as reply:
        return reply.status, reply.read().decode()


def check(s, limit, user):
    body = json.dumps({"limit": limit, "key": user}).encode()
    request = urllib.request.Request("http://%s/v1/check" % s.address("http"), body, {"Content-Type": "application/json"})
    try:
        urllib.request.urlopen(request, timeout=60).close()
    except urllib.error.HTTPError as e:
        e.close()


def leave(s):
    """Closes the page before its server ends: it would ask it again and again."""
    B.open("about:blank")
    B.check(s)


def pictures(name):
    """Light and dark, on a phone and on a desk; no view may be wider than its window."""
    for width, height, dark in ((390, 844, False), (390, 844, True), (1440, 900, False), (1440, 900, True)):
        B.resize(width, height)
        B.scheme(dark)
        until("the window has its size", lambda: B.js("return innerWidth") == width)
        B.picture("notices-%s-%d-%s" % (name, width, "dark" if dark else "light"))
        wide = B.js("return document.documentElement.scrollWidth")
        assert wide <= width, "%s: %d pixels wide, in a window of %d" % (name, wide, width)
    B.resize(1280, 900)
    B.scheme(False)


def a_store_that_is_away_says_what_each_limit_does_everywhere():
    store = Redis()
    s = serve("--metrics", "127.0.0.1:0", rules=RULES)
    B.open(link(s))
    B.driver.refresh()
    B.sees("live", "#connection")
    until("the store is there", lambda: ready(s) == (200, "ready\n") and not B.text("#notices"))
    assert B.js("return document.getElementById('notices').getBoundingClientRect().height") == 0
    store.kill()
    until("the notice", lambda: notice("store_away"))
    shown = notice("store_away")
    assert "critical" in shown, shown
    assert "Store away since " in shown and ": login denies all, search is divided by 2 nodes." in shown, shown
    assert "Connection refused" in shown and "Look at the store" in shown and "weir ctl status" in shown, shown
    assert "`" not in shown, shown
    said = ctl(s, "status")
    assert said.startswith("Store away since ") and ": login denies all, search is divided by 2 nodes\n  127.0.0.1:" in said, said
    status, words = ready(s)
    assert status == 200 and words.startswith("ready\nstore away since 20") and words.count("\n") == 2 and "login" not in words, words
    pictures("store")
    store = Redis()
    until("the notice goes", lambda: check(s, "search", "alice") or not B.text("#notices"))
    assert "notices      none" in ctl(s, "status")
    assert ready(s) == (200, "ready\n")
    leave(s)
    store.kill()
    s.stop()


def several_notices_stand_below_each_other_and_go_one_by_one():
    s = serve(rules=LOCAL)
    B.open(link(s))
    B.driver.refresh()
    B.sees("Sign out", "header")
    s.write(LOCAL.replace("5/min", "often"))
    until("the reload has failed", lambda: notice("reload_failed"))
    shown = notice("reload_failed")
    assert ": the old rules stay." in shown and "weir.yaml:3:" in shown and "found 'often'" in shown, shown
    for i in range(400):
        check(s, "mail", "user-%d" % i)
    until("a full table", lambda: "mail denies new keys" in notice("table_full"))
    ctl(s, "mode", "shadow", "search")
    until("the kill switch", lambda: "Kill switch since " in notice("kill_switch") and "search denies nothing" in notice("kill_switch"))
    ctl(s, "mode", "shadow")
    until("of all", lambda: "nothing is denied" in notice("kill_switch"))
    check(s, "mail", "new")
    until("it denies no new key now", lambda: "mail has no room for new keys" in notice("table_full"))
    assert B.js("return [...document.querySelectorAll('#notices li')].map((e) => e.dataset.notice)") == ["reload_failed", "table_full", "kill_switch"]
    pictures("several")
    until("the table has room again", lambda: not notice("table_full"))  # ten seconds after the last new key
    ctl(s, "mode", "enforce")
    until("limits are enforced", lambda: not notice("kill_switch"))
    assert notice("reload_failed")
    s.write(LOCAL)
    until("the rules are good again", lambda: not B.text("#notices"))
    leave(s)
    s.stop()


def without_the_admin_secret_no_notice_says_why():
    s = serve(rules=LOCAL)
    B.open(link(s, secret=None))
    B.driver.refresh()
    B.js("sessionStorage.clear()")
    B.driver.refresh()
    B.sees("Sign in", "header")
    s.write(LOCAL.replace("5/min", "often"))
    until("the reload has failed", lambda: ": the old rules stay." in notice("reload_failed"))
    assert "often" not in notice("reload_failed") and "weir.yaml" not in notice("reload_failed"), notice("reload_failed")
    B.open(link(s))
    B.driver.refresh()
    until("with the secret it does", lambda: "found 'often'" in notice("reload_failed"))
    B.js("[...document.querySelectorAll('header button')].find((b) => b.textContent === 'Sign out').click()")
    assert "often" not in B.text("#notices")
    until("the notice is back without it", lambda: notice("reload_failed"))
    assert "often" not in B.text("#notices")
    leave(s)
    s.stop()


def a_server_that_is_gone_has_no_notices():
    address = "127.0.0.1:%d" % free_port()
    s = serve("--admin", address, rules=LOCAL)
    B.open(link(s))
    B.driver.refresh()
    ctl(s, "mode", "shadow")
    until("the kill switch", lambda: notice("kill_switch"))
    s.stop()
    B.sees("has not answered", "#banner")
    assert not B.text("#notices")
    s = serve("--admin", address, rules=LOCAL)  # the mode does not survive
    until("it is connected again", lambda: B.text("#connection").strip().endswith("live"))
    assert not B.text("#notices")
    B.open("about:blank")
    B.check("http://%s/" % address, network=True)
    s.stop()


def a_certificate_that_ends_in_three_days_is_told():
    cert, key = os.path.join(DIR, "weir.crt"), os.path.join(DIR, "weir.key")

    def make(days):
        for path in (cert, key):
            if os.path.exists(path):
                os.unlink(path)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days),
                        "-subj", "/CN=weir", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, stderr=subprocess.DEVNULL)

    make(3)
    s = serve("--tls-cert", cert, "--tls-key", key, rules=LOCAL)
    home = "https://%s/" % s.address("admin")
    trusting = Browser(trusting=True)
    trusting.open(home + "#secret=" + SECRET)
    words = "#notices [data-notice=certificate]"
    until("the notice", lambda: "that of the listeners in 3 days, on 20" in trusting.text(words))
    assert "Certificate ends: " in trusting.text(words) and "Write a new certificate" in trusting.text(words), trusting.text(words)
    make(30)
    until("the new one is used", lambda: not trusting.text("#notices"))
    trusting.check(home)
    trusting.close()
    s.stop()


stories(sys.modules[__name__])
