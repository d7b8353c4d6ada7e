"""The playground: calls are decided by the engine in a sandbox, and shown. Each function is a story."""
# test-labels: nosan
# test-timeout: 300
import os, subprocess, sys
from browser import WEIR, Browser, link, serve, stories, until

S = serve()
B = Browser()
B.open(link(S))
ALICE, BOB = "[data-client=alice]", "[data-client=bob]"


def fresh(algorithm="token_bucket", **numbers):
    """The playground with fresh keys, and other numbers than those at first."""
    B.view("live")
    B.view("play")
    until("the playground", lambda: B.value(".play-card", "quota") == 10)
    change(algorithm, numbers)


def change(algorithm, numbers):
    """Sets the controls, and waits for the cards of the sandbox that they make."""
    B.js("""for (const card of document.querySelectorAll('.play-card')) card.dataset.old = '';
        for (const [name, value] of Object.entries(arguments[1])) {
            const input = document.querySelector(`input[name=${name}]`);
            input.value = value;
            input.dispatchEvent(new Event('input'));
        }
        document.querySelector(`input[value=${arguments[0]}]`).click();
        [...document.querySelectorAll('main button')].find(b => b.textContent === 'Start afresh').click();""", algorithm, numbers)
    until("new cards", lambda: not B.all("[data-old]") and B.value(".play-card", "remaining") == numbers.get("count", 10))


def press(name):
    B.js("[...document.querySelectorAll('main button')].find(b => b.textContent === arguments[0]).click()", name)


def a_click_takes_one_unit_and_the_bucket_refills():
    fresh()
    B.click(ALICE + " .spend")
    until("one call is allowed", lambda: B.value(ALICE, "allowed") == 1)
    until("a unit is gone", lambda: B.value(ALICE, "remaining") == 9)
    B.sees("full in", ALICE)
    until("it is full again", lambda: B.value(ALICE, "remaining") == 10 and B.value(ALICE, "reset") == 0)
    B.sees("full", ALICE)
    B.check(S)


def a_button_that_is_held_hammers_until_calls_are_denied_and_the_retry_comes_true():
    fresh(count=5, each=30)  # a unit comes back after 6 s, which also a busy machine can watch
    B.hold(ALICE + " .spend")
    until("a denial", lambda: B.value(ALICE, "denied") > 0)
    B.release()
    B.sees("denied, retry after", ALICE)
    B.sees("next call in", ALICE)
    allowed = B.value(ALICE, "allowed")
    assert allowed >= 5, allowed  # more, if a busy machine hammers so slowly that units come back meanwhile
    first = B.value(ALICE, "retry")
    until("the retry counts down", lambda: B.value(ALICE, "retry") < first)
    until("the retry has come", lambda: B.value(ALICE, "retry") == 0 and B.value(ALICE, "remaining") >= 1)
    B.click(ALICE + " .spend")
    until("it is allowed", lambda: B.value(ALICE, "allowed") == allowed + 1)
    assert B.value(BOB, "remaining") == 5 and B.value(BOB, "denied") == 0  # another client's key is another key
    B.check(S)


def a_frame_sends_one_step_at_most():
    fresh()
    B.js("""window.frames = 0; window.steps = {}; window.real = window.fetch;
        const count = () => { window.frames++; window.counting = requestAnimationFrame(count); }; count();
        window.fetch = (url, ...more) => {
            if (/sandbox\\/./.test(url) && more[0].method === 'POST') steps[frames] = (steps[frames] || 0) + 1;
            return real(url, ...more);
        };""")
    B.hold(ALICE + " .spend")
    until("many calls", lambda: B.value(ALICE, "allowed") + B.value(ALICE, "denied") > 8)
    B.release()
    steps = B.js("window.fetch = real; cancelAnimationFrame(counting); return Object.values(steps)")
    assert steps and max(steps) == 1, steps
    B.check(S)


# Waits until the browser has drawn so many frames.
FRAMES = "const done = arguments[0]; let n = 15; const next = () => --n ? requestAnimationFrame(next) : done(); next();"


def nothing_is_asked_while_nothing_moves_or_the_page_is_hidden():
    fresh()
    until("all is fresh", lambda: B.value(ALICE, "reset") == 0)
    B.driver.execute_async_script(FRAMES)
    before = B.asked("/v1/sandbox/")
    B.driver.execute_async_script(FRAMES)
    assert B.asked("/v1/sandbox/") == before
    B.click(ALICE + " .spend")
    until("it moves", lambda: B.value(ALICE, "remaining") == 9)
    hide = "Object.defineProperty(document, 'hidden', {configurable: true, value: %s}); document.dispatchEvent(new Event('visibilitychange'))"
    B.js(hide % "true")
    time = B.text(".play-time")
    B.driver.execute_async_script(FRAMES)
    before = B.asked("/v1/sandbox/")
    B.driver.execute_async_script(FRAMES)
    assert B.asked("/v1/sandbox/") == before and B.text(".play-time") == time
    B.js(hide % "false")
    until("it goes on", lambda: B.value(ALICE, "remaining") == 10)
    B.check(S)


def an_edge_burst_gets_twice_the_count_out_of_a_fixed_window_only():
    fresh()
    press("Edge burst")
    card = "[data-algorithm=%s]"
    until("five cards", lambda: len(B.all(".play-card")) == 5)
    until("all calls are decided", lambda: B.value(card % "fixed_window", "allowed") == 20)
    until("the others too", lambda: B.value(card % "sliding_log", "denied") == 10)
    assert B.value(card % "sliding_log", "allowed") == 10
    for algorithm in ("token_bucket", "leaky_bucket", "sliding_window"):
        assert 10 <= B.value(card % algorithm, "allowed") <= 13, (algorithm, B.value(card % algorithm, "allowed"))
    until("the timeline says so", lambda: "Fixed window: 20 allowed, 0 denied, most within a period 20, quota 10" in
          B.js("return document.querySelector('.play-timeline').getAttribute('aria-label')"))
    B.check(S)


def time_runs_a_hundred_times_faster():
    fresh(each=1000)  # 16 minutes: too long to wait for at the speed of a clock
    B.js("const s = document.querySelector('#play-speed'); s.value = 40; s.dispatchEvent(new Event('input'))")
    B.sees("100 ×", ".play-speed")
    for _ in range(3):
        B.click(ALICE + " .spend")
    until("units are gone", lambda: B.value(ALICE, "allowed") == 3)
    until("300 s have passed", lambda: B.value(ALICE, "remaining") == 10)
    B.check(S)


def each_algorithm_decides_and_its_lines_are_good_rules():
    for algorithm in ("leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "all"):
        fresh(algorithm)
        B.click(".play-everyone" if algorithm == "all" else ALICE + " .spend")
        until(algorithm, lambda: B.value(".play-card", "allowed") == 1 and B.value(".play-card", "remaining") == 9)
        path = os.path.join(S.folder, "copied.yaml")
        with open(path, "w") as f:
            f.write(B.js("return document.querySelector('.play-rules').textContent"))
        done = subprocess.run([WEIR, "config", "check", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
    B.check(S)


def a_number_that_cannot_be_is_told_and_a_cost_above_the_quota_is_never_allowed():
    fresh()
    B.fill("input[name=count]", "0")
    B.sees("Count: found '0', expected a whole number from 1 to 1000")
    change("token_bucket", {"count": 10, "cost": 11})
    B.sees("never: the cost is above the quota", ALICE)
    B.click(ALICE + " .spend")
    until("it is denied", lambda: B.value(ALICE, "denied") == 1)
    B.check(S)


def a_sandbox_that_has_ended_is_replaced():
    fresh()
    B.js("""const real = window.fetch; window.fetch = (url, options) => {
        window.fetch = real; return real(String(url).replace(/sandbox\\/.*/, 'sandbox/00000000000000000000000000000000'), options); }""")
    B.click(ALICE + " .spend")
    until("a new one", lambda: B.value(ALICE, "allowed") in (None, 0) and B.value(ALICE, "remaining") == 10)
    B.click(ALICE + " .spend")
    until("it decides", lambda: B.value(ALICE, "allowed") == 1)
    B.check(S, network=True)


stories(sys.modules[__name__])
S.stop()
