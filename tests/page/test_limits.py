"""The table of limits with many limits, and the key inspector under load, as an operator at night meets them."""
# test-labels: nosan
# test-timeout: 300
import http.client, json, os, subprocess, sys, threading
from selenium.webdriver.common.keys import Keys
from browser import SECRET, WEIR, Browser, link, serve, stories, until

LIMITS = 150
WORST = "limit-077"  # the 78th denies nearly all, and decides less than those that are busy
BUSY = ["limit-%03d" % i for i in range(100, 140)]
RULES = "limits:\n" + "".join("  - {name: limit-%03d, when: {path: /p%d/**}, key: [user], rate: %s}\n" % (i, i, "30/min" if i == 77 else "1M/s")
                              for i in range(LIMITS))
with open(os.path.join(os.environ["WEIR_SOURCE_DIR"], "tests", "golden", "key_states.json")) as f:
    CASES = json.load(f)
S = serve("--no-watch", rules=RULES)
B = Browser(width=1440, height=900)
B.open(link(S))
B.sees("Sign out", "header")


class Load:
    """A client that asks the server again and again, each turn for all of `asks`: pairs of limit and key."""

    def __init__(self, asks, pause):
        self.stop, self.turns, self.failed = threading.Event(), 0, None
        self.thread = threading.Thread(target=self.run, args=(json.dumps({"requests": [{"limit": l, "key": k} for l, k in asks]}), pause), daemon=True)
        self.thread.start()

    def run(self, body, pause):
        host, port = S.address("http").rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        while not self.stop.wait(pause):
            connection.request("POST", "/v1/check/batch", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                self.failed = answer.status
                return
            self.turns += 1

    def __enter__(self):
        until("it asks", lambda: self.turns > 0 or self.failed)
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        assert self.failed is None, self.failed


def busy():
    """40 limits that allow much, and the worst one, of which 3 in 100 are allowed at most."""
    return Load([(name, "alice") for name in BUSY] * 3 + [(WORST, "mallory")] * 100, 0.2)


def ctl(*words):
    return subprocess.run([WEIR, "ctl", "--admin", S.address("admin"), *words], env={**os.environ, "WEIR_ADMIN_SECRET": SECRET}, stdout=subprocess.PIPE,
                          check=True, text=True).stdout


def rows():
    """Names in the table of limits, from the top."""
    return B.js("return [...document.querySelectorAll('.limits tbody tr')].map((row) => row.querySelector('button').textContent)")


# Looks at the card in each frame that is drawn, and notes what contradicts itself.
WATCH = """
window.seen = {frames: 0, verdicts: {}, uses: {}, wrong: []};
const look = () => {
    const card = document.querySelector('article.limit-card');
    if (card) {
        const verdict = card.querySelector('.badge:not(.warn)').innerText.trim().split(/\\s/).at(-1), left = card.querySelector('.left').innerText;
        const [retry, reset, use] = [...card.querySelectorAll('dl.inline dd')].map((e) => e.innerText);
        const whole = document.querySelector('.verdict .badge').innerText.trim().split(/\\s/).at(-1);
        const units = parseInt(left);
        seen.frames++;
        seen.verdicts[verdict] = (seen.verdicts[verdict] ?? 0) + 1;
        seen.uses[use] = (seen.uses[use] ?? 0) + 1;
        if (verdict !== whole || (verdict === 'deny') !== (units < 1) || (verdict === 'deny') === (retry === 'now') || (reset === 'fresh' && units < 30)) {
            seen.wrong.push([verdict, whole, left, retry, reset, use].join(' | '));
        }
    }
    window.frame = requestAnimationFrame(look);
};
look();
"""


def seen():
    return B.js("return window.seen")


# ---- stories ----


def the_page_tells_keys_in_the_words_of_the_cases():
    found = B.driver.execute_async_script("""
        const [cases, done] = arguments;
        import(new URL('page/key_state.js', location.href)).then(({evenOf, useOf, stateAt}) => {
            done(cases.map((c) => {
                const even = evenOf(c.algorithm, c);
                const state = stateAt(c.polls.at(-1).answer, c.age ?? 0, even, useOf(c.polls, even));
                return {verdict: state.verdict, ...state.words};
            }));
        });""", CASES)
    assert len(found) == len(CASES) > 10
    for case, got in zip(CASES, found):
        assert got == case["expect"], (case["says"], got, case["expect"])
    B.check(S)


def a_key_under_load_is_never_denied_beside_units_that_are_left():
    """The badge was that of the last poll, and the numbers went on by themselves: deny, 1 of 30 left, retry now."""
    B.js("location.hash = '#/keys?path=/p77/x&user=mallory'")
    B.sees("of 30 left", "article.limit-card")
    with Load([(WORST, "mallory")] * 30, 0.01) as load:
        until("its quota is spent", lambda: load.turns > 10)
    with Load([(WORST, "mallory")], 0.14):
        B.js(WATCH)
        until("it is told to be in use", lambda: any("in use, about 0." in use for use in seen()["uses"]))
        until("it was looked at for long", lambda: seen()["frames"] > 300)
    assert seen()["wrong"] == [], seen()["wrong"][:10]
    assert "deny" in seen()["verdicts"], seen()
    until("nobody uses it any more", lambda: B.js("return document.querySelector('article.limit-card dl.inline > div:last-child dd').innerText") == "no use seen")
    until("it is allowed again", lambda: seen()["verdicts"].get("allow", 0) > 30)
    B.js("cancelAnimationFrame(window.frame)")
    assert seen()["wrong"] == [], seen()["wrong"][:10]
    B.check(S)


def what_an_operator_takes_is_no_use():
    B.view("live")
    B.js("location.hash = '#/keys?path=/p77/x&user=oscar'")
    B.sees("30 of 30 left", "article.limit-card")
    B.js("[...document.querySelectorAll('article.limit-card button')].find((b) => b.textContent === 'Penalize …').click()")
    B.fill("dialog input[type=number]", "20")
    B.js(WATCH)
    B.click("dialog button[type=submit]")
    B.sees("1", "article.limit-card .left")
    until("20 are gone", lambda: B.js("return parseInt(document.querySelector('.left').innerText)") < 15)
    asked = B.asked("v1/explain")
    until("two more polls", lambda: B.asked("v1/explain") > asked + 2)
    B.js("cancelAnimationFrame(window.frame)")
    assert list(seen()["uses"]) == ["no use seen"], seen()["uses"]
    B.check(S)


def of_150_limits_those_that_do_not_apply_are_folded():
    B.js("location.hash = '#/keys?path=/p77/x&user=peggy'")
    B.sees("149 limits do not apply", ".rest summary")
    assert B.js("return document.querySelectorAll('.rest tbody tr').length") == 0
    B.tab_to(".rest summary", Keys.TAB)
    B.keys(Keys.ENTER)
    B.sees("path is /p77/x, expected /p149/**", ".rest")
    asked = B.asked("v1/explain")
    until("another poll", lambda: B.asked("v1/explain") > asked + 1)
    assert B.js("return document.querySelectorAll('.rest tbody tr').length") == 149  # it stays open
    B.check(S)


def the_kill_switch_of_one_of_150_limits_is_found():
    B.view("keys")
    B.sees("138 more limits: filter to see them", ".operate")
    B.tab_to("input[aria-label^='Filter the limits']", Keys.TAB)
    B.keys("077")
    B.sees("limit-077", ".operate")
    B.click("button[aria-label='Switch to shadow: limit-077']")
    B.click("dialog button[type=submit]")
    until("it is in shadow mode", lambda: B.all("button[aria-label='Enforce: limit-077']"))
    B.fill("input[aria-label^='Filter the limits']", "")
    until("it is the first", lambda: "limit-077" in B.js("return document.querySelectorAll('.switch')[1].innerText"))
    B.click("button[aria-label='Enforce: limit-077']")
    until("it is as before", lambda: B.all("button[aria-label='Switch to shadow: limit-000']") and not B.all("button[aria-label='Enforce: limit-077']"))
    B.check(S)


def the_limit_that_denies_most_is_the_first_of_150():
    B.view("live")
    with busy():
        until("it is the first", lambda: rows()[:1] == [WORST])
        until("the others that are in use", lambda: set(rows()[1:]) <= set(BUSY) and len(rows()) == 25)
        B.sees("25 of 150 limits shown; 109 idle and 16 in use are folded", ".limits-foot")
        height = B.js("return document.querySelector('.limits').closest('section').offsetHeight")
        assert height < 1200, height  # it was 10,750
        share = B.js("return document.querySelector('.limits tbody tr').children[4].textContent")
        until("97 % or more are denied", lambda: int(B.js("return document.querySelector('.limits tbody tr').children[4].textContent").split()[0]) >= 90)
        assert share.endswith("%")
        listed = [line.split() for line in ctl("limits").splitlines()]
        assert listed[1][0] == WORST and float(listed[1][8]) > 10, listed[1]
        assert {line[0] for line in listed[2:42]} == set(BUSY), [line[0] for line in listed[:45]]
    B.check(S)


def limits_are_found_and_unfolded_by_the_keyboard_alone():
    B.view("live")
    with busy():
        until("it is the first", lambda: rows()[:1] == [WORST])
        B.js("document.activeElement.blur()")
        B.keys("/")
        assert B.js("return document.activeElement.getAttribute('aria-label')") == "Filter limits"
        B.keys("LIMIT-00")
        until("ten of them, idle ones too", lambda: sorted(rows()) == ["limit-%03d" % i for i in range(10)])
        B.keys("/")  # it is a letter here
        B.sees("No limit has such a name", ".limits-foot")
        B.keys(Keys.ESCAPE)
        until("all again", lambda: len(rows()) == 25)
        B.tab_to(".limits-foot button", Keys.TAB)
        B.keys(Keys.ENTER)
        until("all but 25", lambda: len(rows()) == 125)
        B.keys(Keys.ENTER)
        B.sees("150 limits, all shown", ".limits-foot")
        until("all in the table", lambda: len(rows()) == 150)
        assert rows()[:1] == [WORST]
        B.js("[...document.querySelectorAll('.limits-foot button')].find((b) => b.textContent === 'Fold').focus()")
        B.keys(Keys.SPACE)
        until("folded", lambda: len(rows()) == 25)
    B.check(S)


def a_row_with_the_focus_keeps_it_while_others_move():
    B.view("live")
    B.js("document.querySelector('.limits-foot button')?.click()")
    until("idle ones too", lambda: "limit-000" in rows())
    B.js("[...document.querySelectorAll('.limits tbody button')].find((b) => b.textContent === 'limit-000').focus()")
    with Load([("limit-149", "alice"), ("limit-001", "bob")], 0.2), busy():
        until("others have moved", lambda: "limit-149" in rows()[:rows().index("limit-000")])
        assert B.js("return document.activeElement.textContent") == "limit-000"
    B.js("[...document.querySelectorAll('.limits-foot button')].find((b) => b.textContent === 'Fold')?.click()")
    B.check(S)


def the_table_is_compact_on_a_phone_and_on_a_screen():
    B.view("live")
    with busy():
        until("it is the first", lambda: rows()[:1] == [WORST])
        for width, most in ((1440, 42), (390, 56)):
            B.resize(width, 900)
            until("the window has its size", lambda: B.js("return innerWidth") == width)
            for dark in (False, True):
                B.scheme(dark)
                B.picture("limits-%d-%s" % (width, "dark" if dark else "light"))
            high = B.js("return Math.max(...[...document.querySelectorAll('.limits tbody tr')].map((row) => row.offsetHeight))")
            assert high <= most, "a row of %d pixels in a window of %d" % (high, width)
            wide = B.js("const t = document.querySelector('.limits'); return [document.documentElement.scrollWidth, t.scrollWidth - t.clientWidth]")
            assert wide[0] <= width and wide[1] <= 0, (width, wide)
        B.js("location.hash = '#/keys?path=/p77/x&user=mallory'")
        until("it is in use", lambda: "in use" in B.text("article.limit-card"))
        for width in (390, 1440):
            B.resize(width, 900)
            until("the window has its size", lambda: B.js("return innerWidth") == width)
            for dark in (False, True):
                B.scheme(dark)
                B.picture("inspector-%d-%s" % (width, "dark" if dark else "light"))
            wide = B.js("return document.documentElement.scrollWidth")
            assert wide <= width, (width, wide)
    B.scheme(False)
    B.check(S)


stories(sys.modules[__name__])
S.stop()
