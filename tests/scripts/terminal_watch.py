"""weir watch on a terminal: terminal_watch.py COMMAND... with the server's address of HTTP in $HTTP."""
import os
import re
import signal
import sys
import termios
import threading
import time
import urllib.error
import urllib.request

from terminal import Run, fail, have_terminals

LINES = 5
UP = b"\x1b[%dA\r\x1b[J" % LINES
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def picture(run):
    """The lines of the next picture, and its bytes."""
    raw = b""
    while raw.count(b"\n") < LINES:
        raw += run.wait_for(b"\n")
    plain = COLOUR.sub(b"", raw.replace(UP, b"").replace(b"\x1b[K", b"")).decode()
    if "\x1b" in plain:
        fail(f"something drives the terminal: {plain!r}")
    return plain.replace("\r", "").split("\n")[:LINES], raw


def end(run, how):
    _, status = os.waitpid(run.pid, 0)
    if termios.tcgetattr(run.slave) != run.before:
        fail(f"{how}: the terminal is not as it was")
    os.close(run.master)
    os.close(run.slave)
    return status


def ask(key, stop=None):
    """One request of a client, or one after the other until it is stopped."""
    while True:
        try:
            urllib.request.urlopen("http://%s/v1/check" % os.environ["HTTP"], ('{"limit":"bucket","key":"%s"}' % key).encode(), timeout=60).read()
        except urllib.error.HTTPError as error:
            if error.code != 429:
                raise
        if stop is None or stop.wait(0.02):
            return


def test_in_place():
    run = Run(30, 100, ["bucket", "mal\x1b[31mlory", "--interval", "100ms"])
    lines, raw = picture(run)
    if not lines[0].startswith("bucket mal\\x1b[31mlory at ") or lines[1:] != ["allow  5 of 5 left", "[" + "#" * 40 + "]", "retry now, reset fresh", "no use seen"]:
        fail(f"the picture: {lines}")
    if b"\x1b[32mallow" not in raw or b"\x1b[?" in raw:
        fail(f"no colour, or another screen: {raw!r}")
    again, raw = picture(run)
    if again != lines or not raw.startswith(UP):
        fail(f"not in place: {raw!r}")
    os.write(run.master, b"\x03")  # Ctrl-C
    status = end(run, "Ctrl-C")
    if status != 0:
        fail(f"Ctrl-C: status {status}")


def test_narrow():
    run = Run(30, 12, ["bucket", "narrow", "--interval", "100ms", "--count", "3"])
    for _ in range(3):
        lines, _ = picture(run)
        if max(map(len, lines)) > 11:
            fail(f"12 columns: {lines}")
    status = end(run, "--count")
    if status != 0:
        fail(f"--count: status {status}")


def test_no_colour():
    for name, value in ("NO_COLOR", "1"), ("TERM", "dumb"):
        before = os.environ.get(name)
        os.environ[name] = value
        run = Run(30, 100, ["bucket", "plain", "--count", "1"])
        _, raw = picture(run)
        end(run, name)
        if COLOUR.search(raw):
            fail(f"{name}: {raw!r}")
        os.environ.pop(name) if before is None else os.environ.update({name: before})


def test_load():
    """A key that is asked for all the time: it is denied, and in use at about the rate of its limit."""
    stop = threading.Event()
    thread = threading.Thread(target=ask, args=("busy", stop))
    thread.start()
    run = Run(30, 100, ["bucket", "busy", "--interval", "500ms"])
    until = time.monotonic() + 60
    try:
        lines = [""]
        while not (lines[1:2] == ["deny   0 of 5 left"] and re.fullmatch(r"in use, about [12]/s", lines[4])):
            if time.monotonic() > until:
                fail(f"under load: {lines}")
            lines, _ = picture(run)
    finally:
        stop.set()
        thread.join()
    while not lines[4] == "no use seen":
        if time.monotonic() > until:
            fail(f"after it: {lines}")
        lines, _ = picture(run)
    os.kill(run.pid, signal.SIGINT)
    status = end(run, "SIGINT")
    if status != 0:
        fail(f"SIGINT: status {status}")


if have_terminals():
    os.environ.pop("NO_COLOR", None)
    os.environ["TERM"] = "xterm"
    test_in_place()
    test_narrow()
    test_no_colour()
    test_load()
