"""What every client must be able to do with `weir serve`: one story, told through the driver of a client."""
import json
import os
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.environ["WEIR_SOURCE_DIR"], "tests", "support", "scripts"))
from starting import PATIENCE, await_start  # noqa: E402

WEIR = os.path.join(os.environ["WEIR_BUILD_DIR"], "weir")
NAMES = ["verdict", "limit", "quota", "remaining", "retry_after_ms", "reset_after_ms", "delay_ms", "flags",
         "reason"]
RULES = """\
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 1000/day}
  - {name: once, when: {path: /once}, key: [user], rate: 1/day}
"""
SECRET = "a-secret-of-some-length"  # without spaces: fred does not quote it


class Server:
    """A `weir serve` that can be restarted on the same port."""

    def __init__(self, folder, secret):
        self.options = ["--config", os.path.join(folder, "rules.yaml"), "--no-watch"]
        self.secret, self.port = secret, 0
        self.out, self.log = os.path.join(folder, "out"), os.path.join(folder, "log")
        write(folder, "rules.yaml", RULES)
        if secret:
            self.options += ["--check-secrets", write(folder, "secrets", secret + "\n")]
        self.start()

    def start(self):
        # --max-age 0: on a busy machine, what has waited must not be refused for that.
        with open(self.out, "w") as out, open(self.log, "a") as log:
            self.process = subprocess.Popen(
                [WEIR, "serve", "--http", "off", "--admin", "off", "--max-age", "0", "--resp", f"127.0.0.1:{self.port}",
                 *self.options], stdin=subprocess.DEVNULL, stdout=out, stderr=log)
        await_start("the server listens", self.process, self.listens, lambda: read(self.log))

    def listens(self):
        found = re.search(r"^\s*resp\s+127\.0\.0\.1:(\d+)\n", read(self.out), re.MULTILINE)
        self.port = int(found[1]) if found else self.port
        return found is not None

    def stop(self):
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        assert status == 0, f"the server ended with {status}: {read(self.log)}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Driver:
    """A client: a program that takes a line for each request and answers with a line of JSON (README.md)."""

    def __init__(self, command, env, port, resp, secret):
        words = [*command, str(port), str(resp), secret or ""]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**os.environ, **env})
        self.complaints = []
        threading.Thread(target=lambda: self.complaints.extend(self.process.stderr), daemon=True).start()
        self.timer = threading.Timer(PATIENCE * 2, self.process.kill)
        self.timer.start()
        self.name = next((line.strip() for line in self.process.stdout if re.match(r"[\w-]+ \d", line)), "")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.timer.cancel()

    def send(self, verb, commands):
        self.process.stdin.write("\t".join([verb, "\t;\t".join("\t".join(words) for words in commands)]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the client ended: {''.join(self.complaints)[-2000:]}"
        return json.loads(line)

    def ask(self, *words):
        return self.send("ask", [words])


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def expect(found, expected, what):
    assert found == expected, f"{what}: found {found!r}, expected {expected!r}"


def failed(reply):
    return isinstance(reply, dict) and "error" in reply


def numbers(reply):
    """The five of CL.THROTTLE."""
    assert isinstance(reply, list) and len(reply) == 5, f"found {reply!r}, expected five numbers"
    return reply


def values(reply, shape):
    """The nine values of an answer, which must have come in this shape."""
    found = ("map" if isinstance(reply, dict) and list(reply) and not failed(reply) else
             {9: "list", 18: "flat list"}.get(len(reply), "?") if isinstance(reply, list) else "?")
    assert found == shape, f"found {reply!r}, expected a {shape}"
    if found == "map":
        return [reply[name] for name in NAMES]
    return reply[1::2] if found == "flat list" else reply


# ---- the chapters ----


def throttle(client, key):
    """Five units at once, then a denial that says when to try again."""
    words = ["CL.THROTTLE", key, "4", "6", "86400"]  # a unit comes back every four hours
    for remaining in (4, 3, 2, 1, 0):
        expect(numbers(client.ask(*words))[:4], [0, 5, remaining, -1], "CL.THROTTLE")
    denied = numbers(client.ask(*words))
    expect(denied[:3], [1, 5, 0], "CL.THROTTLE, denied")
    assert 14000 < denied[3] <= 14400, f"time to retry: {denied}"


def check(client, shape):
    expect(values(client.ask("WEIR.CHECK", "api", "alice"), shape)[:7], ["allow", "api", 1000, 999, 0, 86400, 0], "check")
    expect(values(client.ask("WEIR.CHECK", "api", "alice", "COST", "9"), shape)[3], 990, "a cost of 9")
    expect(values(client.ask("WEIR.ASK", "path", "/api/x", "user", "alice"), shape)[3], 989, "by attributes")
    expect(values(client.ask("WEIR.CHECK", "once", "alice"), shape)[0], "allow", "once")
    denied = values(client.ask("WEIR.CHECK", "once", "alice"), shape)
    expect(denied[0], "deny", "twice")
    assert 80000000 < denied[4] <= 86400000, f"time to retry: {denied}"


def errors(client):
    for words in ("WEIR.CHECK", "nope", "x"), ("NO.SUCH",):
        reply = client.ask(*words)
        assert failed(reply) and re.search("no limit named 'nope'|unknown command", reply["error"]), reply
    expect(client.ask("ECHO", "still there"), "still there", "after errors")


def pipeline(client, shape):
    """Exactly as many as the limit admits."""
    replies = [values(reply, shape) for reply in client.send("pipeline", [("WEIR.CHECK", "api", "crowd")] * 1500)]
    expect([reply[0] for reply in replies], ["allow"] * 1000 + ["deny"] * 500, "pipeline")


def transaction(client, shape):
    replies = client.send("multi", [("CL.THROTTLE", "multi", "4", "6", "86400"), ("WEIR.CHECK", "api", "multi")])
    assert isinstance(replies, list) and len(replies) == 2, f"MULTI: {replies}"
    expect(numbers(replies[0])[:4], [0, 5, 4, -1], "CL.THROTTLE in MULTI")
    expect(values(replies[1], shape)[3], 999, "WEIR.CHECK in MULTI")
    # A command that cannot be queued: nothing is charged.
    refused = client.send("multi", [("WEIR.CHECK", "api", "multi"), ("NO.SUCH",)])
    assert failed(refused), f"MULTI with an unknown command: {refused}"
    expect(values(client.ask("WEIR.PEEK", "api", "multi"), shape)[3], 999, "after EXECABORT")


def restart(client, server, shape):
    """The same client goes on; its first commands may fail."""
    server.stop()
    server.start()
    end = time.monotonic() + PATIENCE
    while client.ask("ECHO", "again") != "again":
        assert time.monotonic() < end, "the client does not connect again"
        time.sleep(0.05)
    expect(values(client.ask("WEIR.CHECK", "api", "later"), shape)[3], 999, "after a restart")


def tell(folder, command, env, resp, shape):
    """Tells the story over RESP `resp`, without a secret and with one. Returns "NAME VERSION" of the client."""
    for secret in None, SECRET:
        with Server(folder, secret) as server:
            with Driver(command, env, server.port, resp, secret) as client:
                assert client.name, f"no connection: {''.join(client.complaints)[-2000:]}"
                throttle(client, "k")
                check(client, shape)
                errors(client)
                pipeline(client, shape)
                transaction(client, shape)
                restart(client, server, shape)
                name = client.name
            if secret:
                with Driver(command, env, server.port, resp, "another-" + secret) as client:
                    assert not client.name, "a wrong secret was good enough"
            server.stop()
    return name
