"""weir top on a terminal: terminal.py COMMAND..., run several times, ended in several ways."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?25h\x1b[?1049l"


def fail(text):
    raise SystemExit("terminal: " + text)


class Run:
    """The command on a terminal of its own."""

    def __init__(self, rows=30, columns=120, more=()):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in 0, 1, 2:
                os.dup2(slave, fd)
            os.closerange(3, 64)
            os.execv(sys.argv[1], [*sys.argv[1:], *more])
        self.master, self.slave = master, slave
        self.said = b""

    def wait_for(self, text, seconds=60):
        """Reads until the text has come; what came up to its end is taken away, and returned."""
        until = time.monotonic() + seconds
        while text not in self.said:
            if not select.select([self.master], [], [], max(0, until - time.monotonic()))[0]:
                fail(f"no {text!r} within {seconds} s: {self.said[-2000:]!r}")
            self.said += os.read(self.master, 65536)
        found, self.said = self.said[: self.said.index(text) + len(text)], self.said[self.said.index(text) + len(text):]
        return found

    def resize(self, rows, columns):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self, how):
        """It must end, give the terminal back and say how it ended."""
        rest = self.wait_for(LEAVE)
        _, status = os.waitpid(self.pid, 0)
        if termios.tcgetattr(self.slave) != self.before:
            fail(f"{how}: the terminal is not as it was")
        os.close(self.master)
        os.close(self.slave)
        return rest, status


def frame(run):
    """One picture, without what drives the terminal, which is all of what may."""
    run.wait_for(b"\x1b[H")
    text = run.wait_for(b"\x1b[J").decode()
    plain = text.replace("\x1b[K", "").replace("\x1b[J", "")
    if "\x1b" in plain or re.search(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", plain):
        fail(f"something drives the terminal: {plain!r}")
    return re.split(r"\r*\n", plain)


def test_keys():
    run = Run()
    run.wait_for(ENTER)
    lines = frame(run)
    if not lines[0].startswith("weir ") or not any(line.startswith("LIMIT ") for line in lines):
        fail(f"the picture: {lines}")
    if not any("mal\\x1b[31mlory" in line or "lory" not in line for line in lines):
        fail(f"the key: {lines}")
    frame(run)  # another one comes by itself
    os.write(run.master, b"x")  # no key of ours
    frame(run)
    os.write(run.master, b"q")
    _, status = run.end("q")
    if status != 0:
        fail(f"q: status {status}")


def test_resize():
    run = Run(30, 120, ["--interval", "1h"])  # it does not wait for that
    run.wait_for(ENTER)
    frame(run)
    for rows, columns in (8, 20), (1, 1), (100, 200):
        run.resize(rows, columns)
        lines = frame(run)
        if len(lines) > rows or max(map(len, lines)) > columns or (rows == 100 and len(lines[0]) <= 20):
            fail(f"{rows} x {columns}: {lines}")
    os.write(run.master, b"q")
    run.end("q")


def test_signals():
    for number, expected in (
            (signal.SIGINT, 0), (signal.SIGTERM, signal.SIGTERM), (signal.SIGHUP, signal.SIGHUP),
            (signal.SIGQUIT, signal.SIGQUIT), (signal.SIGABRT, signal.SIGABRT), (signal.SIGSEGV, signal.SIGSEGV)):
        run = Run()
        run.wait_for(ENTER)
        frame(run)
        os.kill(run.pid, number)
        _, status = run.end(number.name)
        if status & 0x7F != expected:
            fail(f"{number.name}: status {status}")


def test_suspend():
    run = Run()
    run.wait_for(ENTER)
    frame(run)
    os.write(run.master, b"\x1a")  # Ctrl-Z
    run.wait_for(LEAVE)
    _, status = os.waitpid(run.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status) or termios.tcgetattr(run.slave) != run.before:
        fail("Ctrl-Z: not stopped, or the terminal is not as it was")
    os.kill(run.pid, signal.SIGCONT)
    run.wait_for(ENTER)
    frame(run)
    os.write(run.master, b"\x03")  # Ctrl-C
    _, status = run.end("Ctrl-C")
    if status != 0:
        fail(f"Ctrl-C: status {status}")


def test_away():
    """A server that is away is told, what was seen stays, and it may come back."""
    server = int(os.environ["SERVER_PID"])
    run = Run()
    run.wait_for(ENTER)
    first = frame(run)[0]
    os.kill(server, signal.SIGSTOP)
    try:
        lines = frame(run)
        while "no answer" not in lines[0]:
            lines = frame(run)
        if not lines[1].startswith("weir "):
            fail(f"away: {lines}")
    finally:
        os.kill(server, signal.SIGCONT)
    while frame(run)[0][:10] != first[:10]:
        pass
    os.write(run.master, b"q")
    run.end("q")


def have_terminals():
    try:
        for end in pty.openpty():
            os.close(end)
    except OSError as error:
        print(f"no terminals here ({error}): left out")
        return False
    return True


if __name__ == "__main__" and have_terminals():
    test_keys()
    test_away()
    test_resize()
    test_signals()
    test_suspend()
