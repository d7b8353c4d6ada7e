"""Try rules: the checker's messages at their places, and requests by these rules. Each function is a story."""
# test-labels: nosan
# test-timeout: 300
import sys
from browser import HOSTILE, Browser, link, serve, stories, until

RULES = """attributes: {user: request}
limits:
  - name: search
    when: {path: /search/**}
    key: [user]
    rate: 2/min
  - name: login
    when: {method: POST, path: /login}
    key: [ip]
    rate: 5/min
"""
S = serve()
B = Browser()
B.open(link(S))


def send(request):
    B.fill("input[name=request]", request)
    B.click(".try-form button[type=submit]")


def problems_appear_at_their_line_and_column_while_a_rule_file_is_typed():
    B.view("try")
    B.sees("no problems")
    B.fill(".editor-area", RULES.replace("2/min", "often"))
    B.sees("line 6, column 11", ".try-messages")
    B.sees("found 'often'", ".try-messages")
    assert B.js("return document.querySelector('.editor-lines .error').textContent") == "6"
    assert B.js("return document.querySelector('.editor-marks mark').textContent") == "often"
    B.click(".try-message .link")
    at = B.js("const a = document.querySelector('.editor-area'); return a.value.slice(a.selectionStart)")
    assert at.startswith("often"), at
    B.fill(".editor-area", RULES)
    B.sees("no problems")
    B.check(S)


def rules_outlive_a_reload_of_the_tab_but_no_secret_and_no_sign_out_does():
    B.view("try")
    B.fill(".editor-area", RULES.replace("2/min", "7/min"))
    B.fill("input[name=request]", "GET /search/cats api_key=of-somebody")
    B.sees("no problems")
    kept = lambda: B.js("return JSON.stringify(sessionStorage) + JSON.stringify(localStorage)")
    assert "7/min" in kept() and "of-somebody" not in kept()
    B.driver.refresh()
    B.sees("no problems")
    assert "7/min" in B.js("return document.querySelector('.editor-area').value")
    B.fill(".editor-area", RULES + "store: redis://weir:of-the-store@127.0.0.1:6379\n")
    until("it is checked", lambda: B.all(".try-message"))
    assert "of-the-store" not in kept() and "7/min" not in kept()
    B.fill(".editor-area", RULES.replace("2/min", "8/min"))
    until("it is kept", lambda: "8/min" in kept())
    B.js("document.querySelector('#sign').click()")
    B.sees("need the admin secret")
    assert B.js("return sessionStorage.length") == 0
    B.open("about:blank")
    B.open(link(S))
    B.sees("Sign out", "header")
    B.view("try")
    B.sees("no problems")
    assert "8/min" not in B.js("return document.querySelector('.editor-area').value")
    B.check(S)


def a_request_meets_limits_until_it_is_denied_and_the_others_say_why_not():
    B.view("try")
    B.fill(".editor-area", RULES)
    send("GET /search/cats user=alice")
    result = ".try-result[open]"
    B.sees("HTTP/1.1 200", result)
    B.sees("1 of 2 left", result)
    B.sees("alice", result + " [data-limit=search]")
    B.sees("does not apply", result + " [data-limit=login]")
    B.sees("path is /search/cats, expected /login", result + " [data-limit=login]")
    send("GET /search/cats user=alice")
    B.sees("0 of 2 left", result)
    send("GET /search/cats user=alice")
    until("a denial", lambda: B.value(result, "verdict") == "deny")
    B.sees("HTTP/1.1 429", result)
    B.sees("Retry-After: ", result)
    B.sees("RateLimit-Policy: ", result)
    B.js("[...document.querySelectorAll('button')].find(b => b.textContent === '+ 1 min').click()")
    send("GET /search/cats user=alice")
    until("time has passed", lambda: B.value(result, "verdict") == "allow")
    B.check(S)


def on_a_phone_a_request_shows_all_columns():
    B.view("try")
    B.fill(".editor-area", RULES)
    send("GET /search/cats user=alice")
    B.sees("Left before the request", ".try-result[open]")
    B.resize(390, 844)
    until("the table fits", lambda: B.js("return [...document.querySelectorAll('.try-result .scroll')].every((e) => e.scrollWidth <= e.clientWidth + 1)"))
    B.resize(1280, 900)
    B.check(S)


def a_request_that_cannot_be_read_is_told():
    B.view("try")
    send("nonsense")
    B.sees("found 'nonsense', expected a method such as GET, a path such as /search, or name=value")
    send("/search cost=none")
    B.sees("cost: found 'none', expected a whole number of at least 1")
    B.check(S)


def hostile_rules_and_requests_are_text():
    B.view("try")
    B.fill(".editor-area", RULES + "  - name: %s\n    key: [user]\n    rate: 1/s\n" % HOSTILE.replace(": ", ":"))
    B.sees("<img src=x", ".try-messages")
    B.fill(".editor-area", RULES)
    B.sees("no problems")
    send('/search user="%s"' % HOSTILE.replace("\\", "\\\\").replace('"', '\\"'))
    B.sees("<img src=x", ".try-result[open] [data-limit=search]")
    assert B.all("main img, main script, main iframe") == []
    B.check(S)


stories(sys.modules[__name__])
S.stop()
