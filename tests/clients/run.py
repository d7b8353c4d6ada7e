"""Tells the story of story.py through the clients of docs/guide/clients.md, and compares it with what the page says.

usage: run.py debian|newest [CLIENT...]     exit 77: there was no client to be had

`debian` takes the clients that Debian packages have installed, `newest` fetches the newest from their registries into a
temporary folder. One line for each client and version; a client that is not to be had is named and left out."""
import os
import re
import shutil
import sys
import tempfile

import fetch
import story

PAGE = os.path.join(os.environ["WEIR_SOURCE_DIR"], "docs/guide/clients.md")


def rows(debian):
    """The rows of the page's table: {client: (version, versions of RESP, what a map becomes)}."""
    found = {}
    with open(PAGE, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) == 7 and re.match(r"\d", cells[2]) and ("Debian" in cells[2]) == debian:
                found[cells[1]] = (cells[2].split()[0], [int(n) for n in cells[3].split(" and ")], cells[4])
    return found


def tell(client, row, command, env):
    version, protocols, shape = row
    for resp in protocols:
        folder = tempfile.mkdtemp()
        try:
            name = story.tell(folder, command, env, resp, shape if resp == 3 else "list")
        except AssertionError as error:
            raise SystemExit(f"{client}, RESP{resp}: {error}")
        finally:
            shutil.rmtree(folder)
    note = "" if name.endswith(" " + version) else f" (docs/guide/clients.md has {version})"
    print(f"{client} {name.split()[1]}, RESP {' and '.join(map(str, protocols))}: good{note}", flush=True)


def main():
    kind, wanted = sys.argv[1], set(sys.argv[2:])
    described = rows(kind == "debian")
    tried = set()
    left_out = False
    for get in fetch.DEBIAN if kind == "debian" else fetch.NEWEST:
        folder = tempfile.mkdtemp()
        try:
            for client, (command, env) in get(folder).items():
                tried.add(client)
                if client not in described:
                    raise SystemExit(f"{client}: not in the table of {PAGE}")
                if not wanted or client in wanted:
                    tell(client, described[client], command, env)
        except fetch.Missing as error:
            left_out = True
            print(f"left out: {get.__name__}: {error}", flush=True)
        except fetch.Broken as error:
            raise SystemExit(f"does not compile: {error}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    if not left_out and set(described) - tried:
        raise SystemExit(f"in the table of {PAGE}, but never tried: {sorted(set(described) - tried)}")
    return 0 if tried else 77


sys.exit(main())
