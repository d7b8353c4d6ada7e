"""The page as an operator uses it: signing in, the live view, the key inspector, the keyboard. Each function is a story."""
# test-labels: nosan
# test-timeout: 300
import json, subprocess, sys, time, urllib.error, urllib.request
from selenium.webdriver.common.keys import Keys
from browser import HOSTILE, SECRET, WEIR, Browser, link, serve, stories, until

RULES = """limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 6/min}
  - {name: search, when: {path: /search/**}, key: [user|ip, method], rate: 6/min}
  - {name: login, when: {method: POST, path: /login}, key: [ip], rate: 5/min}
"""
S = serve("--no-watch", rules=RULES)
B = Browser()


def ask(*attributes):
    """A request of a client; returns what it was told."""
    done = subprocess.run([WEIR, "ask", "--http", S.address("http"), *attributes], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


def operate(method, path):
    """A request of an operator besides those of the page; returns the body."""
    fields = {"Authorization": "Bearer " + SECRET, "Content-Type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request("http://%s/v1/%s" % (S.address("admin"), path), b"" if method == "POST" else None, fields, method=method)).read()


def flood(user, times):
    for _ in range(times):
        ask("path=/api/x", "user=" + user)


def deny(user):
    """Asks until a request is denied; a fixed number of them may refill while a busy machine asks."""
    until("it is denied", lambda: "deny" in ask("path=/api/x", "user=" + user))


def press(name, within="main"):
    until(name, lambda: B.js("const b = [...document.querySelectorAll(arguments[1] + ' button')].find(b => b.textContent === arguments[0] && !b.hidden);"
                             "if (b) b.click(); return Boolean(b)", name, within))


def inspect(**attributes):
    B.view("keys")
    for name, value in attributes.items():
        B.fill("input[aria-label='Value of %s']" % name, value)


def the_page_without_a_secret_shows_counts_only():
    B.open(link(S, secret=None))
    B.sees("Requests per second")
    B.sees("Sign in", "header")
    B.sees("Counts only")
    assert "Rules in effect" not in B.text()
    for view in ("keys", "play", "try"):
        B.view(view)
        B.sees("need the admin secret")
    B.check(S)


def a_link_signs_in_and_the_secret_leaves_the_address():
    B.open(link(S))
    B.driver.refresh()  # only the fragment had changed
    B.sees("Sign out", "header")
    B.sees("Rules in effect")
    assert SECRET not in B.driver.current_url, B.driver.current_url
    assert B.js("return sessionStorage.getItem('weir.secret')") == SECRET
    B.check(S)


def the_live_view_shows_limits_and_the_keys_that_are_denied_most():
    B.view("live")
    deny("alice")
    B.sees("api", "table.data")
    B.sees("alice", "td.key")
    B.sees("live", "#connection")
    B.check(S)


def the_live_view_counts_requests_without_a_key():
    B.view("live")
    for _ in range(3):
        ask("path=/login", "method=POST")
    cell = "return [...document.querySelectorAll('table.data tr')].find(r => r.querySelector('button')?.textContent === 'login')?.children[7]"
    until("three requests without an address", lambda: B.js(cell + "?.textContent") == "3")
    assert B.js(cell + ".title") == ("3 requests had no value for the key; to 3 of them no other limit of the group "
                                     "applied"), B.js(cell + ".title")
    B.check(S)


def a_newcomer_is_shown_a_request_for_each_limit():
    B.view("keys")
    B.sees("Describe a request")
    B.click(".examples a[href*='login']")
    B.sees("203.0.113.7", "article[aria-label='Limit login']")
    B.view("live")
    B.view("keys")
    B.sees("Describe a request")
    B.check(S)


def a_key_is_inspected_blocked_and_unblocked():
    flood("bob", 3)
    inspect(path="/api/x", user="bob")
    card = "article[aria-label='Limit api']"
    B.sees("of 6 left", card)
    B.sees("bob", card)
    B.sees("login")
    B.sees("path is /api/x, expected /login")
    left = B.text(card)
    until("it refills", lambda: B.text(card) != left)
    press("Block …")
    press("Block", "dialog")
    B.sees("Blocked for", card)
    assert "deny" in ask("path=/api/x", "user=bob"), ask("path=/api/x", "user=bob")
    B.sees("bob", ".operate")
    press("Unblock", card)
    until("it is unblocked", lambda: "Blocked for" not in B.text(card))
    assert "deny" not in ask("path=/api/x", "user=bob")
    B.check(S)


def a_key_of_a_later_alternative_is_blocked_and_unblocked():
    inspect(path="/search/x", user="", ip="192.0.2.7", method="GET")
    card = "article[aria-label='Limit search']"
    B.sees("ip=192.0.2.7|GET", card)
    press("Block …", card)
    press("Block", "dialog")
    B.sees("Blocked for", card)
    request = ("path=/search/x", "ip=192.0.2.7", "method=GET")
    assert "deny" in ask(*request), ask(*request)
    B.sees("ip=192.0.2.7|GET", ".operate")
    B.resize(390, 844)  # on a phone too, the button is on the screen
    until("the button", lambda: B.js("return [...document.querySelectorAll('.blocks button')].map(b => b.getBoundingClientRect().right)[0] <= innerWidth"))
    assert "search" in B.text(".blocks")
    B.resize(1280, 900)
    press("Unblock", ".operate")
    until("it is unblocked", lambda: "Blocked for" not in B.text(card))
    assert "allow" in ask(*request), ask(*request)
    B.check(S)


def times_are_those_of_the_viewers_zone():
    for zone, hours in (("Asia/Kolkata", 5.5), ("America/Phoenix", -7)):  # zones without summer time
        B.command("Emulation.setTimezoneOverride", {"timezoneId": zone})
        B.driver.refresh()
        B.view("live")
        start = json.loads(operate("GET", "history"))["events"][0]["at_ms"] / 1000 + hours * 3600
        B.sees(time.strftime("%H:%M:%S", time.gmtime(start)), ".events")
    B.command("Emulation.setTimezoneOverride", {"timezoneId": ""})
    B.driver.refresh()
    B.check(S)


def a_reload_shows_first_what_it_would_change():
    S.write(RULES.replace("5/min", "7/min"))
    B.view("keys")
    press("Show what would change")
    B.sees("login")
    B.sees("7/min")
    press("Reload now")
    B.sees("reloaded at")
    B.view("live")
    B.sees("reload", ".events")
    B.check(S)


def a_reload_that_fails_shows_each_error_once():
    S.write(RULES.replace("5/min", "8/min"))
    B.view("keys")
    press("Show what would change")
    B.sees("8/min")
    S.write("limits:\n  - {name: api, key: [user], rate: often, mood: bad}\n")
    press("Reload now")
    B.sees("unknown key 'mood'")
    assert B.text().count("found 'often'") == 1, B.text()
    S.write(RULES)
    B.check(S, network=True)  # 422


def a_reload_that_ends_in_another_view_leaves_the_address_alone():
    """It set the address back to that of the keys, and the link to them did nothing."""
    B.view("keys")
    S.write(RULES.replace("5/min", "9/min"))
    press("Show what would change")
    B.sees("9/min")
    asked = B.asked("v1/config")
    B.js("[...document.querySelectorAll('main button')].find(b => b.textContent === 'Reload now').click(); location.hash = '#/live'")
    until("the rules are read", lambda: B.asked("v1/config") > asked)
    B.driver.execute_async_script("fetch('/healthz').then(arguments[0])")
    assert B.js("return location.hash") == "#/live"
    B.view("keys")
    S.write(RULES)
    B.check(S)


def hostile_keys_reasons_and_messages_are_text_in_every_view():
    deny(HOSTILE)
    B.view("live")
    until("its key", lambda: B.js("return [...document.querySelectorAll('td.key')].some((e) => e.innerText.includes('<img src=x'))"))
    inspect(path="/api/x", user=HOSTILE)
    card = "article[aria-label='Limit api']"
    B.sees("<img src=x", card)
    press("Block …")
    B.fill("dialog input[maxlength]", HOSTILE)
    press("Block", "dialog")
    B.sees("Blocked for", card)
    B.sees("<script>", ".operate")
    B.sees("<img src=x", "#toasts")
    S.write("limits:\n  - name: %s\n    key: [user]\n    rate: 1/s\n" % HOSTILE)
    press("Show what would change")
    B.sees("The file has errors")
    B.sees("<img src=x", ".operate")
    try:
        operate("POST", "reload")
        raise AssertionError("bad rules are in effect")
    except urllib.error.HTTPError as e:
        assert e.code == 422, e.code
    B.js("location.hash = '#/keys?' + new URLSearchParams([[arguments[0], 'x'], ['path', '/' + arguments[0]], ['method', 'x']])", HOSTILE)
    B.sees("<img src=x")  # a link that somebody has made, with an attribute of this name
    B.js("location.hash = '#/keys?' + new URLSearchParams([['path', '/' + arguments[0]]])", "<img src=x onerror=alert(1)>")
    B.sees("path is /<img src=x", "main")
    B.view("live")
    B.sees("reload failed", ".events")
    B.sees("<img src=x", ".events")
    assert B.all("main img, main script, #toasts img, dialog img") == []
    S.write(RULES)
    B.check(S)


def the_keyboard_alone_uses_every_view():
    B.view("live")
    B.js("document.body.focus(); document.activeElement.blur()")
    B.tab_to(".segmented input", Keys.TAB)
    B.keys(Keys.ARROW_RIGHT)
    until("five minutes", lambda: B.js("return document.querySelector('.segmented input[value=\"300\"]').checked"))
    B.tab_to("table.data button.link", Keys.TAB)
    B.keys(Keys.ENTER)
    B.sees("decisions per second")
    B.js("document.activeElement.blur(); scrollTo(0, 0)")
    for name in ("keys", "play", "try"):
        B.js("document.querySelector('.brand').focus()")
        B.tab_to("a[href='#/%s']" % name, Keys.TAB)
        B.keys(Keys.ENTER)
        until(name, lambda: B.js("return document.querySelector('main').dataset.view") == name)
        {"keys": keyboard_keys, "play": keyboard_play, "try": keyboard_try}[name]()
    B.check(S)


def keyboard_keys():
    B.tab_to("input[aria-label='Value of path']", Keys.TAB)
    B.keys("/api/y")
    B.tab_to("input[aria-label='Value of user']", Keys.TAB)
    B.keys("carol")
    B.sees("carol", "article[aria-label='Limit api']")


def keyboard_play():
    B.tab_to("[data-client=bob] .spend", Keys.TAB)
    until("it is ready", lambda: B.value("[data-client=bob]", "remaining") == 10)
    B.keys(Keys.SPACE)
    until("one call", lambda: B.value("[data-client=bob]", "allowed") == 1)
    B.keys(Keys.ENTER)
    until("two calls", lambda: B.value("[data-client=bob]", "allowed") == 2)


def keyboard_try():
    B.tab_to("input[name=request]", Keys.TAB)
    B.keys(Keys.ENTER)
    B.sees("HTTP/1.1 200")


def a_server_with_its_page_off_says_so():
    s = serve("--page", "off")
    B.open("http://%s/" % s.address("admin"))
    B.sees("the page is off", "body")
    s.stop()


stories(sys.modules[__name__])
S.stop()
