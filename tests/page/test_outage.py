"""The page while something is down: the server, or the store of a fleet. Each function is a story."""
# test-labels: nosan
# test-timeout: 300
import os, subprocess, sys, tempfile
from browser import WEIR, Browser, free_port, link, serve, start_redis, stories, until

B = Browser()
RULES = "limits: [{name: api, when: {path: /api/**}, key: [user], rate: 1000/day}]\n"


def the_page_reconnects_after_the_server_was_restarted():
    address = "127.0.0.1:%d" % free_port()
    s = serve("--admin", address, rules=RULES)
    B.open(link(s))
    until("it is connected", lambda: B.text("#connection").strip().endswith("live"))
    B.view("play")
    until("a sandbox", lambda: B.value("[data-client=alice]", "remaining") == 10)
    own = "http://%s/" % address
    s.stop()
    B.sees("has not answered", "#banner")
    s = serve("--admin", address, rules=RULES)
    until("it is connected again", lambda: B.text("#connection").strip().endswith("live"))
    until("the banner goes", lambda: not B.text("#banner"))
    until("calls are decided again", lambda: B.click("[data-client=alice] .spend") or (B.value("[data-client=alice]", "allowed") or 0) > 0)
    B.open("about:blank")
    B.check(own, network=True)
    s.stop()


def a_store_that_dies_is_seen_and_so_is_its_return():
    folder = tempfile.mkdtemp()
    port = free_port()
    store = start_redis(port, folder)
    s = serve("--store", "redis://127.0.0.1:%d" % port, rules=RULES)
    ask = [WEIR, "ask", "--http", s.address("http"), "path=/api/x", "user=alice"]
    try:
        B.open(link(s))
        B.driver.refresh()
        facts = ".facts:not([hidden]) + .rule ~ .facts"
        until("the store is up", lambda: "up" in B.text(facts))
        until("keys are in the store, not in a table of this node", lambda: "in the store" in B.text(".tiles") and "0 of 0" not in B.text(".tiles"))
        until("nor in the table of limits", lambda: B.text(".limits tbody tr td:last-child") == "\u2013")
        store.kill()
        store.wait()
        until("the store is down", lambda: subprocess.run(ask, stdout=subprocess.DEVNULL).returncode is not None and "away" in B.text(facts))
        store = start_redis(port, folder)
        until("the store is back", lambda: subprocess.run(ask, stdout=subprocess.DEVNULL).returncode is not None and "up" in B.text(facts))
        B.check(s)
    finally:
        store.kill()
        store.wait()
    s.stop()
    os.rmdir(folder)


stories(sys.modules[__name__])
