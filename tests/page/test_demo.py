"""The demo: what anybody may play with on the page of `weir serve --demo`, and how the playground looks then."""
# test-labels: nosan
# test-timeout: 300
import http.client, json, re, sys
from browser import Browser, link, serve, stories, until
from selenium.webdriver.common.keys import Keys

S = serve("--demo")
B = Browser()
ALICE, BOB = "[data-client=alice]", "[data-client=bob]"
CARD = "[data-algorithm=%s]"


def press(name):
    B.js("[...document.querySelectorAll('main button')].find(b => b.textContent === arguments[0]).click()", name)


def play():
    """The playground of somebody without a secret, with fresh keys."""
    B.open(link(S, secret=None))
    B.js("sessionStorage.clear()")  # the secret of a story before
    B.open("about:blank")
    B.check(S, network=True)  # requests that the secret was taken from
    B.open(link(S, secret=None))
    B.view("play")
    until("the playground", lambda: B.value(".play-card", "quota") == 10)


def spend_alice():
    B.hold(ALICE + " .spend")
    until("a denial", lambda: "denied, retry after" in B.text(ALICE + " .play-verdict"))
    B.release()


def without_a_secret_alice_is_spent_and_bob_is_untouched():
    play()
    assert not B.all("nav a[data-admin][href='#/play']")
    spend_alice()
    assert B.value(ALICE, "denied") > 0
    assert B.value(BOB, "remaining") == 10 and B.value(BOB, "denied") == 0
    assert B.asked("/v1/demo") > 0 and B.asked("/v1/sandbox") == 0
    B.check(S)


def all_five_decide_the_same_calls_and_a_preset_plays():
    play()
    B.click("input[value=all] + span")
    until("five cards", lambda: len(B.all(".play-card")) == 5 and B.value(".play-card", "quota") == 10)
    B.click(".play-everyone")
    for algorithm in ("token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"):
        until(algorithm, lambda: B.value(CARD % algorithm, "allowed") == 1)
    press("Edge burst")
    until("the burst", lambda: B.value(CARD % "fixed_window", "allowed") == 20)
    B.check(S)


def the_lines_on_the_page_are_the_rules_of_the_server():
    play()
    for algorithm in ("token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "all"):
        B.js("""window.real = window.real || window.fetch; window.made = null;
            window.fetch = async (url, ...more) => {
                const answer = await real(url, ...more);
                if (/v1\\/demo$/.test(url)) made = (await answer.clone().json()).limits;
                return answer;
            };""")
        B.js("document.querySelector(`input[value=${arguments[0]}]`).click()", algorithm)
        press("Start afresh")
        until("its limits", lambda: B.js("return made && made.length") == (5 if algorithm == "all" else 1))
        lines = B.text(".play-rules")
        shown = [dict(re.findall(r"(name|rate|burst|queue): (\S+)", part)) for part in lines.split("- name")[1:]]
        names = re.findall(r"name: (\S+)", lines)
        made = B.js("return made")
        assert [m["name"] for m in made] == names, (made, lines)
        for limit, line in zip(made, shown):
            told = {k: str(limit[k]) for k in ("rate", "burst", "queue") if limit[k] is not None}
            assert line == told, (limit, line)
    B.js("window.fetch = real")
    B.check(S)


def numbers_explanations_and_trying_rules_stay_with_the_admin_secret():
    play()
    for name in ("count", "each", "burst", "queue"):
        assert not B.one("input[name=%s]" % name).is_displayed(), name
    B.sees("need the admin secret: run weir ctl --admin %s link" % S.address("admin"))
    for view in ("try", "keys"):
        B.view(view)
        B.sees("need the admin secret")
        B.sees("weir ctl --admin %s link" % S.address("admin"))
    B.open("about:blank")
    B.open(link(S))
    B.sees("Sign out", "header")
    B.view("play")
    until("the playground", lambda: B.value(".play-card", "quota") == 10)
    assert B.one("input[name=count]").is_displayed() and B.asked("/v1/sandbox") > 0
    B.check(S)


def the_keyboard_alone_spends_a_client_and_chooses_all_five():
    play()
    B.tab_to(ALICE + " .spend", Keys.TAB)
    B.keys(Keys.ENTER)
    B.keys(Keys.SPACE)
    until("two calls", lambda: B.value(ALICE, "allowed") == 2)
    B.tab_to("input[name^=segmented]:checked, .segmented input:checked", Keys.SHIFT + Keys.TAB)
    B.keys(Keys.ARROW_UP)  # from the first choice to the last one
    until("five cards", lambda: len(B.all(".play-card")) == 5 and B.value(".play-card", "quota") == 10)
    B.tab_to(".play-everyone", Keys.TAB)
    B.keys(Keys.ENTER)
    until("a call to each", lambda: all(B.value(CARD % a, "allowed") == 1 for a in ("token_bucket", "sliding_log")))
    B.check(S)


def another_page_of_the_address_takes_the_sandbox_until_somebody_calls_again():
    play()
    made = "return (await (await fetch('v1/demo', {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{\"scenario\":\"all\"}'})).json()).sandbox"
    B.click(ALICE + " .spend")
    until("a unit is gone", lambda: B.value(ALICE, "remaining") == 9)
    until("the other page begins", lambda: B.js(made))
    B.sees("Another page of your address plays now")
    before = B.asked("/v1/demo")
    B.sees("Another page of your address plays now")
    B.driver.execute_async_script("setTimeout(arguments[0], 500)")
    assert B.asked("/v1/demo") == before  # it does not take it back by itself
    B.click(BOB + " .spend")
    until("it begins again with that call", lambda: B.value(BOB, "allowed") == 1 and B.value(BOB, "remaining") == 9)
    assert "Another page" not in B.text()
    B.check(S, network=True)


def ask_from(address, method, path, body=None):
    connection = http.client.HTTPConnection(S.address("admin"), timeout=60, source_address=(address, 0))
    connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, json.loads(text) if text else None


def a_fifth_viewer_is_told_and_plays_when_a_place_is_free():
    play()
    B.view("live")  # leaves its place
    others = ["127.0.0.%d" % n for n in range(2, 6)]
    made = {}

    def taken():
        made.update({a: ask_from(a, "POST", "/v1/demo", {"scenario": "all"}) for a in others})
        return all(status == 201 for status, _ in made.values())

    until("the places are taken", taken)
    B.view("play")
    B.sees("all 4 places of the demo are taken")
    assert ask_from(others[0], "DELETE", "/v1/demo/" + made[others[0]][1]["sandbox"])[0] == 204
    until("it plays", lambda: B.value(".play-card", "quota") == 10)
    assert "places of the demo" not in B.text()
    for address in others[1:]:
        ask_from(address, "DELETE", "/v1/demo/" + made[address][1]["sandbox"])
    B.check(S, network=True)


def the_last_verdict_goes_when_the_bucket_is_full():
    play()
    B.js("const s = document.querySelector('#play-speed'); s.value = 40; s.dispatchEvent(new Event('input'))")
    B.sees("100 ×", ".play-speed")
    press("Flood")
    until("a denial", lambda: (B.value(ALICE, "denied") or 0) > 0)
    press("Stop the calls")
    until("it is full", lambda: B.value(ALICE, "remaining") == 10 and B.value(ALICE, "reset") == 0)
    until("no verdict", lambda: B.text(ALICE + " .play-verdict") == "")
    B.check(S)


def a_denial_is_not_told_beside_units_that_have_come_back():
    play()
    spend_alice()
    refilling = "const c = document.querySelector(arguments[0]), n = Number(c.dataset.remaining); return n > 2 && n < 10 && c.querySelector('.play-verdict').innerText === ''"
    until("no verdict while it refills", lambda: B.js(refilling, ALICE))
    B.check(S)


def a_bucket_is_burst_and_refill_and_no_alarm():
    play()
    B.js("const s = document.querySelector('#play-speed'); s.value = 20; s.dispatchEvent(new Event('input'))")
    press("Flood")
    words = lambda: B.js("return document.querySelector('.play-timeline').getAttribute('aria-label')")
    until("more than the quota", lambda: re.search(r"alice: \d+ allowed, \d+ denied, most within a period (\d+): burst 10 \+ refill (\d+)", words()))
    most, refill = map(int, re.search(r"period (\d+): burst 10 \+ refill (\d+)", words()).groups())
    assert most == 10 + refill, words()
    B.check(S)


def on_a_phone_the_three_clients_stand_side_by_side():
    B.resize(390, 664)  # what a browser leaves of 844 pixels
    play()
    boxes = B.js("return [...document.querySelectorAll('.play-card')].map(c => { const b = c.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })")
    assert len(boxes) == 3 and len({round(top) for _, top, _, _ in boxes}) == 1, boxes
    assert all(0 <= left and right <= 390 for left, _, right, _ in boxes), boxes
    assert max(bottom for _, _, _, bottom in boxes) <= 664, boxes  # with the buttons, without scrolling
    spend_alice()
    for algorithm in ("leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "all"):
        B.js("document.querySelector(`input[value=${arguments[0]}]`).click()", algorithm)
        until(algorithm, lambda: B.value(CARD % ("sliding_log" if algorithm == "all" else algorithm), "quota") == 10)
        assert B.js("return document.documentElement.scrollWidth <= innerWidth"), algorithm
    B.resize(1280, 900)
    B.check(S)


def the_dialog_to_sign_in_closes_with_its_view_and_names_the_address():
    play()
    B.view("keys")
    B.click("#sign")
    B.sees("weir ctl --admin %s link" % S.address("admin"), "dialog")
    B.driver.back()
    until("the playground", lambda: B.js("return document.querySelector('main').dataset.view") == "play")
    assert not B.all("dialog")
    B.click("#sign")
    B.sees("Admin secret", "dialog")
    B.driver.get(link(S))  # the same page: only the part after # is another
    B.sees("Sign out", "header")
    until("no dialog", lambda: not B.all("dialog"))
    B.check(S)


def pictures_are_drawn_for_eyes():
    play()
    for width in (390, 1440):
        for dark in (False, True):
            B.resize(width, 844)
            B.scheme(dark)
            play()
            spend_alice()
            name = "demo-%s-%d" % ("dark" if dark else "light", width)
            B.picture(name)
            press("Edge burst")
            until("the burst", lambda: B.value(CARD % "fixed_window", "allowed") == 20)
            B.picture(name + "-five")
    B.resize(1280, 900)
    B.scheme(False)
    B.check(S)


stories(sys.modules[__name__])
S.stop()
