"""Writes build/screenshots/VIEW-{light,dark,narrow,wide}.png, to be looked at. It fails if a view is wider than the window."""
# test-labels: nosan
# test-timeout: 300
import subprocess, sys
from browser import WEIR, Browser, link, serve, stories, until

# Quotas by the hour: however slowly a busy machine asks, none refills before alice has met its end.
RULES = """attributes: {user: request, tier: request}
limits:
  - name: login
    when: {method: POST, path: /login}
    key: [ip]
    rate: 5/min
  - name: search
    when: {path: /search/**}
    key: [user|ip]
    rate: 20/h
    tiers: {by: tier, default: free, free: {}, pro: {rate: 1k/min}}
  - {name: everyone, key: [], rate: 50k/s}
"""
S = serve(rules=RULES)
B = Browser()


def traffic():
    for user, times in (("alice", 30), ("bob", 12), ("carol", 4)):
        for _ in range(times):
            subprocess.run([WEIR, "ask", "--http", S.address("http"), "path=/search/cats", "user=" + user], stdout=subprocess.DEVNULL)


def live():
    B.sees("alice", "td.key")
    until("the table of limits fits", lambda: B.js("const t = document.querySelector('table.data'), p = t.parentElement;"
                                                   "return innerWidth < 1280 || t.scrollWidth <= p.clientWidth"))


def keys():
    B.js("location.hash = '#/keys?path=/search/cats&user=alice'")
    B.sees("of 20 left", "article[aria-label='Limit search']")


def play():
    until("the playground", lambda: B.value(".play-card", "quota") == 10)
    B.js("[...document.querySelectorAll('main button')].find(b => b.textContent === 'Edge burst').click()")
    until("the burst is over", lambda: B.value("[data-algorithm=fixed_window]", "allowed") == 20)


def try_rules():
    B.fill(".editor-area", RULES.replace("5/min", "often"))
    B.sees("found 'often'")
    B.fill(".editor-area", RULES)
    B.sees("no problems")
    B.click(".try-form button[type=submit]")
    B.sees("HTTP/1.1 200")


def every_view_is_drawn_light_dark_narrow_and_wide():
    traffic()
    B.open(link(S))
    for name, prepare in (("live", live), ("keys", keys), ("play", play), ("try", try_rules)):
        B.view(name)
        prepare()
        for look, width, height, dark in (("light", 1280, 900, False), ("dark", 1280, 900, True), ("narrow", 360, 780, False), ("wide", 3840, 2160, False)):
            B.resize(width, height)
            B.scheme(dark)
            until("the window has its size", lambda: B.js("return innerWidth") == width)
            B.picture("%s-%s" % (name, look))
            wide = B.js("return document.documentElement.scrollWidth")
            assert wide <= width, "%s, %s: %d pixels wide, in a window of %d" % (name, look, wide, width)
        B.resize(1280, 900)
        B.scheme(False)
    B.check(S)


stories(sys.modules[__name__])
S.stop()
