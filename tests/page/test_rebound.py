"""A page whose host name has come to point to this machine: a real browser decides what it may send."""
# test-labels: nosan
# test-timeout: 300
import sys
from browser import Browser, serve, stories

RULES = """server: {trusted_proxies: [127.0.0.1/32]}
limits: [{name: api, key: [ip], rate: 3/day}]
"""
S = serve(rules=RULES)
B = Browser(here="evil.example")
PORT = S.address("http").rsplit(":", 1)[1]
ASK = """const done = arguments[arguments.length - 1];
    fetch(arguments[0], {method: arguments[1], headers: arguments[2], body: arguments[3]})
        .then((r) => done(r.status), (e) => done(String(e)));"""


def asks(path, method="GET", body=None, **fields):
    """Returns the status of what a script of the page asks."""
    return B.driver.execute_async_script(ASK, path, method, {k.replace("_", "-"): v for k, v in fields.items()}, body)


def a_page_under_a_name_that_points_here_cannot_spend_the_quota_of_a_client():
    B.open("http://evil.example:%s/none" % PORT)  # whatever is there: the scripts of that origin may ask
    assert B.js("return location.origin") == "http://evil.example:" + PORT
    for fields in ({}, {"X_Forwarded_For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}, {"X_Original_URI": "/a"},
                   {"X_Forwarded_For": "192.0.2.1", "X_Forwarded_Host": "localhost"}):
        for path in ("/v1/auth", "/v1/auth/a"):
            assert asks(path, **fields) == 403, (path, fields)
    assert asks("/v1/check", "POST", '{"limit": "api", "key": "192.0.2.1"}') == 403


def a_page_of_another_site_cannot_either():
    B.open("http://evil.example:%s/none" % PORT)
    there = "http://127.0.0.1:%s/v1/auth" % PORT
    assert asks(there, X_Forwarded_For="192.0.2.1") == "TypeError: Failed to fetch"  # asked first, and refused


def the_client_has_its_whole_quota():
    B.open("http://127.0.0.1:%s/none" % PORT)  # of the server's own origin: what the gateway would send
    assert [asks("/v1/auth", X_Forwarded_For="192.0.2.1") for _ in range(4)] == [200, 200, 200, 429]


def such_a_page_cannot_play_the_demo_either():
    demo = serve("--demo")
    port = demo.address("admin").rsplit(":", 1)[1]
    play = ("POST", '{"scenario": "all"}')
    B.open("http://evil.example:%s/healthz" % port)
    assert asks("/v1/demo", *play, Content_Type="application/json") == 403
    assert asks("/v1/history") == 403
    assert asks("http://127.0.0.1:%s/v1/demo" % port, *play, Content_Type="application/json") == "TypeError: Failed to fetch"
    B.open("http://127.0.0.1:%s/healthz" % port)
    assert asks("/v1/demo", *play, Content_Type="application/json") == 201
    demo.stop()


stories(sys.modules[__name__])
S.stop()
