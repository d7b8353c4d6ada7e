#!/usr/bin/env python3
"""Checks the documents: every rule file in them is one that `weir config check` accepts, without a warning unless only its
reader can say whether it is right; every relative link leads to a file, and to a heading if it names one; and every path of
the repository that is written as `code` exists. (Decisions and the changelog may name files of the past.)

A fenced block that begins with ```yaml is a whole rule file, and so is ```yaml ratelimit, a file for envoyproxy/ratelimit.
```yaml part is one without limits: a limit is added before it is checked. Any other word, as in ```yaml kong, names the
program whose file it is.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^ *(`{3,}|~{3,})(.*)$")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\s*\[[^\]]+\]:\s*(\S+)|(?:src|href)=\"([^\"]+)\"")
PATH = re.compile(r"`((?:bench|cmake|docs|examples|include|packaging|proto|schema|scripts|src|tests|web)/[^`\s<>$]*)`")
ONE_LIMIT = "limits: [{name: any, key: [], rate: 1/s}]\n"


def documents(top):
    """Returns the Markdown files that users read."""
    return sorted([*top.glob("*.md"), *(top / "docs").rglob("*.md")])


def split(document):
    """Returns the blocks of a document, as (line, info, text), and its other lines, as (line, text)."""
    blocks, prose, fence = [], [], None
    for number, line in enumerate(document.read_text().splitlines(), 1):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence = mark[1]
            blocks.append([number, mark[2].split(), ""])
        elif fence is not None and line.strip() == fence:
            fence = None
        elif fence is not None:
            blocks[-1][2] += line + "\n"
        else:
            prose.append((number, line))
    return blocks, prose


# Whether a gateway sets a field, and which files are on another machine, only the reader of the page knows.
UNHEEDED = re.compile(r": warning: (limit '.*': clients can make up its key|the (secrets|certificate) cannot be used)")


def check_rules(weir, text, folder):
    """Returns what `weir config check` has against a rule file, or nothing."""
    file = pathlib.Path(folder) / "weir.yaml"
    file.write_text(text)
    ran = subprocess.run([weir, "config", "check", file.name], cwd=folder, capture_output=True, text=True, timeout=60)
    if ran.returncode != 0:
        return ran.stderr.strip() or f"exit status {ran.returncode}"
    return "\n".join(line for line in ran.stderr.splitlines() if not UNHEEDED.search(line))


def anchors(document):
    """Returns the names by which links can lead to the headings of a document, as GitHub makes them."""
    titles = [re.sub(r"^#+\s*", "", line) for _, line in split(document)[1] if re.match(r"#+\s", line)]
    plain = [re.sub(r"\]\([^)]*\)", "]", title).lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in plain}


def check_link(document, target):
    """Returns what is wrong with a link, or nothing."""
    if re.match(r"[a-z]+:", target):
        return ""
    path, _, heading = target.partition("#")
    file = document.parent / path if path else document
    if not file.exists():
        return f"found a link to '{target}', expected a file of this repository"
    if heading and file.suffix == ".md" and heading not in anchors(file):
        return f"found a link to '{target}', expected a heading of that file"
    return ""


def check_path(top, path):
    """Returns what is wrong with a path in the text, such as `tests/{fleet,store}/test_*.c`, or nothing."""
    braces = re.fullmatch(r"(.*)\{(.*)\}(.*)", path)
    for one in [braces[1] + word + braces[3] for word in braces[2].split(",")] if braces else [path]:
        if not any(top.glob(one.rstrip("/"))):
            return f"found the path '{one}', expected a file or folder of this repository"
    return ""


def main(top, weir):
    wrong, rules, links, paths = [], 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for document in documents(top):
            blocks, prose = split(document)
            name = document.relative_to(top)
            past = document.parent.name == "decisions" or document.name == "CHANGELOG.md"
            for line, info, text in blocks:
                if info in (["yaml"], ["yaml", "part"], ["yaml", "ratelimit"]):
                    rules += 1
                    said = check_rules(weir, text + (ONE_LIMIT if "part" in info else ""), folder)
                    wrong += [f"{name}:{line}: a rule file of which weir says:\n{said}"] if said else []
            for line, text in prose:
                for found in PATH.finditer("" if past else text):
                    paths += 1
                    said = check_path(top, found[1])
                    wrong += [f"{name}:{line}: {said}"] if said else []
                for found in LINK.finditer(re.sub(r"`[^`]*`", "", text)):
                    links += 1
                    said = check_link(document, next(filter(None, found.groups())))
                    wrong += [f"{name}:{line}: {said}"] if said else []
    if rules < 10 or links < 100 or paths < 50:
        wrong.append("found fewer than there are: this script does not read the documents as they are written")
    print(f"{rules} rule files, {links} links, {paths} paths", *wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2]))
