"""The protocol of drivers (see ../README.md) for clients in Python."""
import json
import sys

port, resp, secret = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] or None


def plain(value):
    """What json.dumps() can write."""
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, Exception):
        return {"error": str(value)}
    return value.decode() if isinstance(value, bytes) else value


def run(name, version, ask, many):
    """Answers the lines of standard input. ask(words) sends one command, many(commands, transaction) several."""
    print(name, version, flush=True)
    for line in sys.stdin:
        verb, *words = line.rstrip("\n").split("\t")
        try:
            if verb == "ask":
                reply = ask(words)
            else:
                reply = many([c.split("\t") for c in "\t".join(words).split("\t;\t")], verb == "multi")
        except Exception as error:  # whatever the library raises is its answer
            reply = error
        print(json.dumps(plain(reply)), flush=True)
