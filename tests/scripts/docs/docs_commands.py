#!/usr/bin/env python3
"""Runs the commands of README.md, docs/guide and docs/migrate, and compares what they print with what the pages show.

Each page has a folder, with `weir`, `build/weir`, `examples` and `proto` in it, and ports of its own. weir.yaml is
examples/rules.yaml until the page shows another. The blocks are run from top to bottom:
    ```console  commands after "$ ", further lines of them after "> ", and what they print. A line "..." stands for any
                lines, and "..." at the end of a line for anything. Times need not be the same, except in README.md.
    ```sh       commands that must succeed
    ```python   a program that must succeed
    ```yaml     becomes weir.yaml; any block whose first line is a comment with a file's name becomes that file
A further word names a program that must be installed, as in ```console node. After `about`, a number of two digits or
more stands for any number. `by-hand` says that the block is not run. `weir serve`, and what ends with "&", runs in the
background until the page ends or starts others.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support/scripts"))
from starting import PATIENCE, await_start, free_port  # noqa: E402
from docs import split  # noqa: E402

TRIES = 5  # a busy machine may miss the store's deadline of 5 ms, or see the end of a window in between
PORTS = ["3000", "6379", "6380", "6381", "8080", "8081", "8082", "9180"]
SIGNS = {"weir serve": " info started ", "redis-server": "Ready to accept"}  # what they print when they can be asked
RAN = {"sh", "console", "python"}
TIMES = [(r"\b(retry|reset) in( +)\S+", r"\1 in\2T"), (r"\bt=\d+", "t=T"), (r"(?i)(retry-after: )\d+", r"\1T"),
         (r"\b[0-9.]+(ms|s)\b", "T"), (r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z", "T"), (r"(_ms\":)[0-9.]+", r"\1T")]


class Wrong(Exception):
    pass


class Page:
    """The folder, the ports and the background programs of a page while its blocks are run."""

    def __init__(self, top, build, folder):
        self.folder, self.ports, self.running, self.started = pathlib.Path(folder), {name: str(free_port()) for name in PORTS}, [], 0
        (self.folder / "build").mkdir()
        (self.folder / "build/weir").symlink_to(build / "weir")
        (self.folder / "build/python3").symlink_to(sys.executable)  # the one that has the modules
        for name in ("examples", "proto"):
            (self.folder / name).symlink_to(top / name)
        shutil.copy(top / "examples/rules.yaml", self.folder / "weir.yaml")
        (self.folder / "run").mkdir(mode=0o700)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_") and k != "RUNTIME_DIRECTORY"}
        self.env.update(PATH=f"{self.folder}/build:{self.env['PATH']}", XDG_RUNTIME_DIR=f"{self.folder}/run",
                        HOME=str(self.folder), WEIR_HTTP="127.0.0.1:" + self.ports["8080"],
                        WEIR_ADMIN="127.0.0.1:" + self.ports["8082"])

    def here(self, text):
        """Returns a text with this page's ports instead of the documented ones."""
        return re.sub(r"(?<![\d.])(%s)(?!\d)" % "|".join(PORTS), lambda found: self.ports[found[1]], text)

    def there(self, text):
        """Returns a text with the documented ports and paths, as the page shows them."""
        for name, port in self.ports.items():
            text = re.sub(r"\b%s\b" % port, name, text)
        return text.replace(f"{self.folder}/", "")

    def write(self, name, text):
        (self.folder / name).write_text(self.here(text))

    def start(self, command):
        """Runs a command in the background, and returns when it has printed that it has started, or else anything."""
        self.started += 1
        log = open(self.folder / f"background.{self.started}", "w")
        env = dict(self.env, WEIR_RESP="127.0.0.1:" + self.ports["6380"], WEIR_MAX_AGE="0")
        shell = "exec " + self.here(command.rstrip("& \n"))
        program = subprocess.Popen(["sh", "-c", shell], cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT)
        self.running.append(program)
        sign = next((sign for name, sign in SIGNS.items() if name in command), "\n")
        said = pathlib.Path(log.name).read_text
        try:
            await_start(command, program, lambda: sign in said(), said)
        except AssertionError as e:
            raise Wrong(str(e)) from None

    def stop(self):
        for program in self.running:
            program.terminate()
        for program in self.running:
            program.wait(PATIENCE)
        self.running = []

    def run(self, command):
        """Runs a command and returns its status and what it printed."""
        options = "" if "|" in command else "--no-raw "  # as on a terminal
        text = self.here(command).replace("redis-cli ", f"redis-cli -p {self.ports['6379']} {options}")
        ran = subprocess.run(["sh", "-c", text], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        return ran.returncode, self.there(ran.stdout)


def in_background(command):
    return bool(re.search(r"&\s*(#.*)?$", command)) or bool(re.match(r"(build/)?weir serve\b", command))


def commands(kind, text):
    """Returns the commands of a block, each with what it is shown to print."""
    found = []
    for line in text.splitlines(keepends=True):
        if kind == "console" and line.startswith("$ "):
            found.append([line[2:], ""])
        elif kind == "console" and line.startswith("> ") and not found[-1][1]:
            found[-1][0] += line[2:]
        elif kind == "console":
            found[-1][1] += line
        elif found and (found[-1][0].endswith("\\\n") or subprocess.run(
                ["sh", "-n"], input=found[-1][0], text=True, capture_output=True).returncode != 0):
            found[-1][0] += line  # the last command goes on
        elif line.strip():
            found.append([line, ""])
    return found


def same(shown, printed, exact, about):
    """Says whether a command printed what the page shows."""
    def plain(text):
        for pattern, times in [] if exact else TIMES:
            text = re.sub(pattern, times, text)
        return text if exact else re.sub(r"[ \t]+", " ", text).replace("\r", "").strip() + "\n"
    pattern = re.escape(plain(shown))
    if about:
        pattern = re.sub(r"(?<![\w.])\d{2,}(?![\w.])", r"\\d+", pattern)
    pattern = re.sub(r"(?m)^\\\.\\\.\\\.(\\\n|\Z)", r"(?:.*\\n)*?", pattern)
    return re.fullmatch(re.sub(r"\\\.\\\.\\\.(?=\\\n|\Z)", ".*", pattern), plain(printed)) is not None


def run_block(page, kind, text, exact=False, about=False):
    """Runs a block and returns how many commands it has."""
    if kind == "python":
        page.write("block.py", text)
        status, printed = page.run("python3 block.py")
        if status != 0:
            raise Wrong(f"a program failed:\n{printed}")
        return 1
    all_of_it = commands(kind, text)
    if any(in_background(command) for command, _ in all_of_it):
        page.stop()
    for command, shown in all_of_it:
        if in_background(command):
            page.start(command.split(" #")[0])
            continue
        status, printed = page.run(command)
        if kind == "console" and not same(shown, printed, exact, about):
            raise Wrong(f"$ {command}is shown to print\n{shown}and prints\n{printed}")
        if kind == "sh" and (status != 0 or re.search(r"(?m)^\(error\)", printed)):
            raise Wrong(f"$ {command}ends with status {status} and prints\n{printed}")
    return len(all_of_it)


def run_page(top, build, document, blocks):
    """Runs a page; returns how many commands it has, and the words of blocks that were left out."""
    count, left_out, store = 0, [], []
    with tempfile.TemporaryDirectory(prefix="docs") as folder:
        page = Page(top, build, folder)
        try:
            if any(re.search(r"127.0.0.1:6379|redis-cli [A-Z]", text) for _, _, text in blocks):
                page.start("redis-server --port 6379 --save '' --dir . &")
            store, page.running = page.running, []
            for line, info, text in blocks:
                first = re.match(r"(?://|#|--) ([\w./-]+\.\w+)\n", text)
                if first or info == ["yaml"]:
                    page.write(first[1] if first else "weir.yaml", text)
                if not info or info[0] not in RAN or first:
                    continue
                needed = [word for word in info[1:] if word != "about"]
                if any(not shutil.which(word) for word in needed):
                    left_out += needed
                    continue
                try:
                    count += run_block(page, info[0], text, document.parent == top, "about" in info)
                except Wrong as wrong:
                    raise Wrong(f"{document.relative_to(top)}:{line}: {wrong}") from None
        finally:
            page.running += store
            page.stop()
    return count, left_out


def main(top, build, names):
    total, wrong, left_out = 0, [], []
    pages = sorted([top / "README.md", *(top / "docs/guide").rglob("*.md"), *(top / "docs/migrate").glob("*.md")])
    for document in [p for p in pages if not names or any(name in str(p) for name in names)]:
        blocks = split(document)[0]
        if not any(info and info[0] in RAN for _, info, _ in blocks):
            continue
        for attempt in range(TRIES):
            try:
                count, words = run_page(top, build, document, blocks)
                total, left_out = total + count, left_out + words
                break
            except Wrong as reason:
                print(f"attempt {attempt + 1}: {reason}", flush=True)
        else:
            wrong.append(str(document.relative_to(top)))
    left = ", ".join(f"{left_out.count(word)} {word}" for word in sorted(set(left_out)))
    print(f"{total} commands; blocks that were left out: {left or 'none'}")
    if not names and total < 60:
        wrong.append("found fewer commands than there are")
    print(*(f"wrong: {page}" for page in wrong), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]))
