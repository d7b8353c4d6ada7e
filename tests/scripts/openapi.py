"""Checks docs/reference/openapi.json against a running server: openapi.py DESCRIPTION WEIR FOLDER"""
import base64
import http.client
import json
import os
import re
import subprocess
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support", "scripts"))
from starting import await_start  # noqa: E402

warnings.simplefilter("ignore")  # of newer versions of jsonschema
import jsonschema  # noqa: E402

with open(sys.argv[1], encoding="utf-8") as file:
    DOC = json.load(file)
WEIR, FOLDER = sys.argv[2], sys.argv[3]
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}
asked = set()  # (path, method) of the description
seen = set()  # (path, method, status)


def fail(text):
    raise SystemExit("openapi: " + text)


# ---- the description itself ----


def resolve(value):
    """What a $ref points to, or the value."""
    while isinstance(value, dict) and "$ref" in value:
        at = DOC
        for part in value["$ref"].removeprefix("#/").split("/"):
            if part not in at:
                fail(f"{value['$ref']} leads nowhere")
            at = at[part]
        value = at
    return value


def walk(value):
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from walk(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from walk(inner)


def check_document():
    if not DOC["openapi"].startswith("3.1."):
        fail("not OpenAPI 3.1")
    for value in walk(DOC):
        resolve(value)
        if isinstance(value.get("schema"), dict):
            jsonschema.Draft202012Validator.check_schema(value["schema"])
    for name, schema in DOC["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        if json.dumps(DOC).count(f'"#/components/schemas/{name}"') == 0:
            fail(f"schema {name} is used by nobody")
    for path, item in DOC["paths"].items():
        for method, operation in item.items():
            if method not in METHODS:
                fail(f"{path}: {method} is no method")
            check_operation(path, method, operation)
    check_for_generators()


def check_for_generators():
    """What generators of clients need: a name for each operation and each choice; no default, which makes a member required
    in some languages; and no constant for a member that may be absent, of which one makes Python that is none."""
    names = [operation.get("operationId", "") for item in DOC["paths"].values() for operation in item.values()]
    for name in names:
        if not re.fullmatch(r"[a-z][A-Za-z]*", name) or names.count(name) > 1:
            fail(f"operationId {name!r}, expected a name that no other operation has")
    for value in walk(DOC):
        if "default" in value:
            fail(f"found a default: {json.dumps(value)[:200]}")
        for choice in value.get("oneOf", []):
            if choice.get("type") == "object":
                fail(f"found a choice without a name: {json.dumps(value)[:200]}")
        for name, member in value.get("properties", {}).items():
            if "const" in member and name not in value.get("required", []):
                fail(f"found a constant that may be absent: {name}: {json.dumps(member)}")


def check_bounds_of_the_server():
    """Bounds that are settings, or that rows do not have."""
    schemas = DOC["components"]["schemas"]
    if schemas["Reserve"]["properties"]["ttl_ms"]["maximum"] != 600000:
        fail("ttl_ms: expected the default of server.reservation_ttl")
    call = {"domain": "d", "descriptors": [{"entries": [{"key": "k"}], "limit": {"unit": "MINUTE", "requestsPerUnit": 4294967295}}]}
    request = {"$ref": "#/components/schemas/RateLimitRequest"}
    validate(request, call, "a limit of the caller")
    for change in ({"unit": "SECOND", "requestsPerUnit": 1000000001}, {"unit": "MINUTE", "requestsPerUnit": 4294967296}):
        call["descriptors"][0]["limit"] = change
        if not errors_of(request, call):
            fail(f"RateLimitRequest allows {change}")
    call["descriptors"][0].update(limit={"unit": "MINUTE"}, isNegativeHits=True)
    validate(request, call, "units for a limit of the caller, which takes none back")


def check_bounds(schema, where):
    """Every number that a request can have is bounded, and every name must have a character."""
    for part in walk(schema):
        for name, member in part.get("properties", {}).items():
            types = member.get("type", [])
            if "integer" in types and not {"minimum", "maximum"} <= set(member):
                fail(f"{where}: {name} has no bounds")
            if name in part.get("required", []) and types == "string" and member.get("minLength") != 1:
                fail(f"{where}: {name} may be empty")


def check_operation(path, method, operation):
    where = f"{method.upper()} {path}"
    for body in operation.get("requestBody", {}).get("content", {}).values():
        check_bounds(resolve(body["schema"]), where)
    names = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
    if names != set(re.findall(r"{(\w+)}", path)):
        fail(f"{where}: parameters of the path")
    if not operation["tags"] or not set(operation["tags"]) <= {t["name"] for t in DOC["tags"]}:
        fail(f"{where}: tags")
    for status, response in operation["responses"].items():
        if not re.fullmatch(r"[1-5]\d\d", status) or not resolve(response)["description"]:
            fail(f"{where}: {status}")


# ---- the server ----


class Server:
    def __init__(self, *options):
        self.out, self.log = open(os.path.join(FOLDER, "out"), "w+b"), open(os.path.join(FOLDER, "log"), "w+b")
        # --max-age 0: on a busy machine, what has waited must not be refused for that.
        command = [WEIR, "serve", "--max-age", "0", "--resp", "off", "--http", "127.0.0.1:0",
                   "--admin", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.log,
            env={**os.environ, "XDG_RUNTIME_DIR": FOLDER})
        self.ports = {}
        self.secret = None  # of operators, if the server has made it
        await_start("it listens for HTTP and operators", self.process, self.listens, lambda: self.said(self.log))
        made = os.path.join(FOLDER, "weir", f"admin-127.0.0.1:{self.ports['admin']}.secret")
        if os.path.exists(made):
            with open(made, encoding="utf-8") as file:
                self.secret = file.read().strip()

    @staticmethod
    def said(file):
        with open(file.name, encoding="utf-8") as text:
            return text.read()

    def listens(self):
        found = re.findall(r"^\s*(http|admin)\s+127\.0\.0\.1:(\d+)\n", self.said(self.out), re.M)
        self.ports = {name: int(port) for name, port in found}
        return len(self.ports) == 2

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        if self.process.wait(30) != 0:
            fail(f"the server ended with {self.process.returncode}")


def find_operation(tag, method, path):
    for pattern, item in DOC["paths"].items():
        operation = item.get(method.lower())
        if re.fullmatch(re.sub(r"{\w+}", "[^/].*", pattern), path) and operation and tag in operation["tags"]:
            if "{" not in pattern or path not in DOC["paths"]:
                return pattern, operation
    return fail(f"{tag}: {method} {path} is not in the description")


def errors_of(schema, value):
    resolver = jsonschema.RefResolver.from_schema(DOC)
    return list(jsonschema.Draft202012Validator(schema, resolver=resolver).iter_errors(value))


def validate(schema, value, where):
    errors = errors_of(schema, value)
    if errors:
        fail(f"{where}: {errors[0].message}\n{json.dumps(value)[:2000]}")


def check_fields(expected, reply, where):
    for name, field in expected.items():
        value = reply.getheader(name)
        field = resolve(field)
        if value is None:
            if field.get("required"):
                fail(f"{where}: no {name}")
            continue
        if field["schema"].get("type") == "integer":
            value = int(value) if value.isdigit() else fail(f"{where}: {name}: {value}")
        validate(field["schema"], value, f"{where}: {name}")


def check_body(expected, reply, body, where):
    if not expected:
        if body:
            fail(f"{where}: a body of {len(body)} bytes that is not described")
        return None
    kind = reply.getheader("Content-Type")
    if kind not in expected:
        fail(f"{where}: Content-Type {kind}, described are {list(expected)}")
    value = json.loads(body) if kind.endswith("json") else body.decode()
    validate(expected[kind]["schema"], value, where)
    return value


def check_request(operation, body, fits, where):
    """What the server takes is described, and what is not described it does not take."""
    errors = errors_of(operation["requestBody"]["content"]["application/json"]["schema"], body)
    if bool(errors) == fits:
        fail(f"{where}: the request is {'not ' if fits else ''}as described: {json.dumps(body)[:2000]} {errors}")


def read_events(reply, count):
    """The first events of a stream, which has no end."""
    text = b""
    while text.count(b"\n\n") < count:
        text += reply.readline()
    return text


def ask(server, tag, method, target, body=None, *, status, headers=None, raw=None, fits=None):
    """One request; its reply must be `status`, and as the description says. Its body.

    The request must be as described too, and one that gets a 400 must not, unless `fits` says otherwise."""
    headers = dict(headers or {})
    if tag == "admin" and server.secret:
        headers["Authorization"] = "Bearer " + server.secret
    if body is not None:
        headers.setdefault("Content-Type", "application/json")
        raw = json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", server.ports[tag], timeout=60)
    connection.request(method, target, raw, headers)
    reply = connection.getresponse()
    stream = reply.getheader("Content-Type") == "text/event-stream"
    text = read_events(reply, 4) if stream else reply.read()
    connection.close()
    where = f"{method} {target}: {reply.status}"
    if reply.status != status:
        fail(f"{where}, expected {status}: {text[:2000]}")
    pattern, operation = find_operation(tag, method, target.split("?")[0])
    if str(status) not in operation["responses"]:
        fail(f"{where} is not described")
    if body is not None and status not in (413, 415, 431):
        check_request(operation, body, status != 400 if fits is None else fits, where)
    asked.add((pattern, method.lower()))
    seen.add((pattern, method.lower(), status))
    described = resolve(operation["responses"][str(status)])
    check_fields(described.get("headers", {}), reply, where)
    return check_body(described.get("content"), reply, text, where)


def expect(found, **members):
    for name, value in members.items():
        if found[name] != value:
            fail(f"{name} is {found[name]!r}, expected {value!r}: {found}")


# ---- the http listener ----

RULES = """\
block: [{user: [mallory]}]
attributes: {user: ['header:X-User'], a: request, b: request}
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 2/h}
  - {name: pairs, key: [a, b], when: {path: /pairs}, rate: 5/min, burst: 3}
  - {name: queue, key: [user], when: {path: /queue}, rate: 1/s, algorithm: leaky_bucket, queue: 5}
  - {name: seen, key: [user], when: {path: /seen}, rate: 1/h, shadow: true}
"""


def check_questions(server):
    api = {"limit": "api", "key": "alice"}
    expect(ask(server, "http", "POST", "/v1/check", api, status=200), verdict="allow", remaining=1)
    ask(server, "http", "POST", "/v1/check", api, status=200)
    expect(ask(server, "http", "POST", "/v1/check", api, status=429), verdict="deny", limit="api")
    expect(ask(server, "http", "POST", "/v1/check", {**api, "cost": 3}, status=422),
           verdict="never", retry_after_ms=None)
    mallory = {"attributes": {"path": "/api/x", "user": "mallory"}}
    expect(ask(server, "http", "POST", "/v1/check", mallory, status=403), verdict="never")
    expect(ask(server, "http", "POST", "/v1/check", {"attributes": {"path": "/none"}}, status=200),
           limit=None, remaining=-1)
    ask(server, "http", "POST", "/v1/check", {"limit": "nope", "key": "x"}, status=404)
    expect(ask(server, "http", "POST", "/v1/check", {"limit": "pairs", "key": ["a", "b"]}, status=200), quota=3)
    queue = {"limit": "queue", "key": "alice", "max_wait_ms": 10000}
    for _ in range(3):
        last = ask(server, "http", "POST", "/v1/check", queue, status=200)
    if last["delay_ms"] < 1:
        fail("nothing waits")
    for _ in range(2):
        shadow = ask(server, "http", "POST", "/v1/check", {"limit": "seen", "key": "x"}, status=200)
    expect(shadow, verdict="allow", flags=["shadow"])
    for bad in ({}, [], {"limit": "api", "key": 1}, {"limit": "api", "cost": 0}, {"lmit": "api"},
                {"limit": "api", "attributes": {}}, {"attributes": {}, "tier": "free"}, {"limit": "", "key": "x"},
                {"limit": "api", "key": ""}, {"limit": "api", "key": ["a", ""]}, {"limit": "api", "cost": 2**63}):
        ask(server, "http", "POST", "/v1/check", bad, status=400)
        ask(server, "http", "POST", "/v1/peek", bad, status=400)
    ask(server, "http", "POST", "/v1/check", {"limit": "pairs", "key": "one"}, status=400, fits=True)
    ask(server, "http", "POST", "/v1/check", raw=b"{", status=400)
    ask(server, "http", "POST", "/v1/check", raw=b" " * 270000, status=413)
    ask(server, "http", "POST", "/v1/check", api, status=431, headers={"X": "y" * 20000})
    expect(ask(server, "http", "POST", "/v1/peek", api, status=200), verdict="deny")
    ask(server, "http", "POST", "/v1/peek", {"limit": "nope"}, status=404)


def check_throttle(server):
    rate = {"key": "t", "burst": 1, "count": 2, "period_ms": 3600000}
    expect(ask(server, "http", "POST", "/v1/throttle", rate, status=200), verdict="allow", quota=2, remaining=1)
    ask(server, "http", "POST", "/v1/throttle", rate, status=200)
    expect(ask(server, "http", "POST", "/v1/throttle", rate, status=429), limit="adhoc", verdict="deny")
    expect(ask(server, "http", "POST", "/v1/throttle", {**rate, "cost": 3}, status=422), verdict="never")
    for bad in ({}, {"key": "t"}, {**rate, "count": 0}, {**rate, "burst": -1}, {**rate, "limit": "api"}):
        ask(server, "http", "POST", "/v1/throttle", bad, status=400)
    ask(server, "http", "POST", "/v1/throttle", {**rate, "key": ["a", "b"]}, status=400, fits=True)
    ask(server, "http", "POST", "/v1/throttle", {**rate, "burst": 999, "count": 1, "period_ms": 86400000}, status=200)
    ask(server, "http", "POST", "/v1/throttle", {**rate, "burst": 13140, "count": 1, "period_ms": 86400000}, status=400, fits=True)
    ask(server, "http", "POST", "/v1/throttle", {**rate, "count": 10**10, "period_ms": 1}, status=400, fits=True)


def check_batches(server):
    batch = [{"limit": "api", "key": "bob"}, {"limit": "nope"}, {"limit": "api", "key": "bob", "cost": 9}, 7]
    results = ask(server, "http", "POST", "/v1/check/batch", {"requests": batch}, status=200, fits=False)["results"]
    if [r.get("verdict") or r["status"] for r in results] != ["allow", 404, "never", 400]:
        fail(f"batch: {results}")
    ask(server, "http", "POST", "/v1/check/batch", {"requests": []}, status=200)
    ask(server, "http", "POST", "/v1/check/batch", {"requests": [{}] * 1001}, status=400)
    ask(server, "http", "POST", "/v1/check/batch", [], status=400)


def check_reservations(server):
    pairs = {"limit": "pairs", "key": ["r", "s"]}
    got = ask(server, "http", "POST", "/v1/reserve", {**pairs, "cost": 3, "ttl_ms": 10000}, status=200)
    expect(got, verdict="allow", remaining=0)
    expect(ask(server, "http", "POST", "/v1/reserve", pairs, status=429), verdict="deny", reservation=None)
    ask(server, "http", "POST", "/v1/reserve", {**pairs, "cost": 4}, status=422)
    ask(server, "http", "POST", "/v1/reserve", {**pairs, "ttl_ms": 0}, status=400)
    ask(server, "http", "POST", "/v1/reserve", {**pairs, "ttl_ms": 600001}, status=400)
    ask(server, "http", "POST", "/v1/reserve", {"limit": "nope"}, status=404)
    done = {"reservation": got["reservation"], "actual": 1}
    expect(ask(server, "http", "POST", "/v1/settle", done, status=200), remaining=2)
    ask(server, "http", "POST", "/v1/settle", done, status=404)
    ask(server, "http", "POST", "/v1/settle", {"reservation": got["reservation"]}, status=400)
    got = ask(server, "http", "POST", "/v1/reserve", {**pairs, "cost": 2}, status=200)
    expect(ask(server, "http", "POST", "/v1/cancel", {"reservation": got["reservation"]}, status=200), remaining=2)
    ask(server, "http", "POST", "/v1/cancel", {"reservation": got["reservation"]}, status=404)
    ask(server, "http", "POST", "/v1/cancel", {}, status=400)


def check_auth(server):
    fields = {"X-Forwarded-Uri": "/api/x", "X-Forwarded-Method": "GET", "X-User": "carol"}
    ask(server, "http", "GET", "/v1/auth", status=200, headers=fields)
    ask(server, "http", "POST", "/v1/auth", status=200, headers=fields)
    ask(server, "http", "GET", "/v1/auth", status=429, headers=fields)
    ask(server, "http", "POST", "/v1/auth/api/x", status=429, headers={"X-User": "carol"})
    ask(server, "http", "GET", "/v1/auth/api/x", status=200, headers={"X-User": "dave"})
    ask(server, "http", "GET", "/v1/auth", status=403, headers={**fields, "X-User": "mallory"})


def check_both(server):
    for tag in "http", "admin":
        ask(server, tag, "GET", "/healthz", status=200)
        ask(server, tag, "GET", "/readyz", status=200)
        served = ask(server, tag, "GET", "/openapi.json", status=200)
        if served != DOC:
            fail("/openapi.json is not docs/reference/openapi.json: `make openapi` writes it anew")


def check_methods(server):
    """Another method is a 405 that names the right ones."""
    for path, item in DOC["paths"].items():
        if path.startswith("/v1/auth") or path == "/v1/keys":
            continue
        tag = next(iter(item.values()))["tags"][-1]
        connection = http.client.HTTPConnection("127.0.0.1", server.ports[tag], timeout=60)
        connection.request("PATCH", re.sub(r"{\w+}", "x", path))
        reply = connection.getresponse()
        described = resolve(DOC["components"]["responses"]["BadMethod"])
        check_fields(described["headers"], reply, f"PATCH {path}")
        check_body(described["content"], reply, reply.read(), f"PATCH {path}")
        connection.close()
        allowed = {m.strip().lower() for m in reply.getheader("Allow").split(",")} - {"head"}
        if reply.status != 405 or not set(item) <= allowed:
            fail(f"PATCH {path}: {reply.status}, Allow: {allowed}, described: {set(item)}")


# ---- the admin listener ----


def check_limits(server):
    limits = ask(server, "admin", "GET", "/v1/limits", status=200)["limits"]
    if [x["name"] for x in limits] != ["api", "pairs", "queue", "seen", "adhoc"]:
        fail(f"limits: {limits}")
    expect(ask(server, "admin", "GET", "/v1/limits/api", status=200)["limits"][0], rate="2/h", mode="enforce")
    ask(server, "admin", "GET", "/v1/limits/nope", status=404)
    new = {"name": "new", "key": ["user"], "rate": "7/min", "when": {"path": "/new"}}
    ask(server, "admin", "PUT", "/v1/limits/new", new, status=201)
    ask(server, "admin", "PUT", "/v1/limits/new", raw=b"{name: new, key: [user], rate: 8/min}",
        headers={"Content-Type": "application/yaml"}, status=200)
    refused = ask(server, "admin", "PUT", "/v1/limits/new", {**new, "rate": "often"}, status=422)
    if not refused["messages"]:
        fail("no messages")
    ask(server, "admin", "PUT", "/v1/limits/other", new, status=400, fits=True)
    ask(server, "admin", "PUT", "/v1/limits/new", new, status=415, headers={"Content-Type": "text/plain"})
    ask(server, "admin", "DELETE", "/v1/limits/new", status=204)
    ask(server, "admin", "DELETE", "/v1/limits/new", status=404)
    ask(server, "admin", "GET", "/v1/limits", status=403, headers={"Origin": "http://elsewhere.example"})


def check_keys(server):
    expect(ask(server, "admin", "GET", "/v1/keys?limit=api&key=alice", status=200), verdict="deny", blocked_ms=0)
    ask(server, "admin", "GET", "/v1/keys?limit=nope&key=alice", status=404)
    ask(server, "admin", "GET", "/v1/keys?limit=pairs&key=alice", status=400)
    ask(server, "admin", "GET", "/v1/keys?key=alice", status=400)
    key = {"limit": "api", "key": "alice"}
    expect(ask(server, "admin", "POST", "/v1/keys/reset", key, status=200), remaining=2)
    expect(ask(server, "admin", "POST", "/v1/keys/penalize", {**key, "units": 2}, status=200), remaining=0)
    expect(ask(server, "admin", "POST", "/v1/keys/refund", {**key, "units": 1}, status=200), remaining=1)
    blocked = ask(server, "admin", "POST", "/v1/keys/block", {**key, "for_ms": 3600000}, status=200)
    if not 0 < blocked["blocked_ms"] <= 3600000:
        fail(f"block: {blocked}")
    ask(server, "http", "POST", "/v1/check", key, status=429)
    expect(ask(server, "admin", "POST", "/v1/keys/block", key, status=200), blocked_ms=-1)
    ask(server, "http", "POST", "/v1/check", key, status=403)
    expect(ask(server, "admin", "POST", "/v1/keys/unblock", key, status=200), blocked_ms=0)
    for verb in "reset", "block", "unblock", "refund", "penalize":
        ask(server, "admin", "POST", "/v1/keys/" + verb, {"limit": "nope", "key": "x"}, status=404)
        ask(server, "admin", "POST", "/v1/keys/" + verb, {"key": "x"}, status=400)
        ask(server, "admin", "POST", "/v1/keys/" + verb, raw=b"limit=api", status=415,
            headers={"Content-Type": "application/x-www-form-urlencoded"})


def check_settings(server, rules):
    expect(ask(server, "admin", "GET", "/v1/log-level", status=200), level="info")
    expect(ask(server, "admin", "PUT", "/v1/log-level", {"level": "debug"}, status=200), level="debug")
    ask(server, "admin", "PUT", "/v1/log-level", {"level": "loud"}, status=400)
    expect(ask(server, "admin", "GET", "/v1/mode", status=200), mode="enforce", limits={})
    ask(server, "admin", "PUT", "/v1/mode", {"mode": "shadow", "limit": "api"}, status=200)
    ask(server, "admin", "PUT", "/v1/mode", {"mode": "shadow"}, status=200)
    ask(server, "admin", "PUT", "/v1/mode", {"mode": "enforce"}, status=200)
    ask(server, "admin", "PUT", "/v1/mode", {"mode": "shadow", "limit": "nope"}, status=404)
    ask(server, "admin", "PUT", "/v1/mode", {"mode": "off"}, status=400)
    expect(ask(server, "admin", "POST", "/v1/reload", status=200), messages=[])
    if "2/h" not in ask(server, "admin", "GET", "/v1/config", status=200):
        fail("the rules in effect are not these")
    with open(rules, "w", encoding="utf-8") as file:
        file.write("limits: [{name: api, rate: often}]\n")
    if "often" not in str(ask(server, "admin", "POST", "/v1/reload", status=422)["messages"]):
        fail("no message about the rule file")


def check_numbers(server, rules):
    status = ask(server, "admin", "GET", "/v1/status", status=200)
    expect(status, state="ready", config=rules, version=DOC["info"]["version"], pid=server.process.pid)
    if "weir_decisions_total{" not in ask(server, "admin", "GET", "/metrics", status=200):
        fail("no metrics")
    denied = ask(server, "admin", "GET", "/v1/top", status=200)["denied"]
    if not {"api", "adhoc"} <= {entry["limit"] for entry in denied}:
        fail(f"top: {denied}")
    if len(ask(server, "admin", "GET", "/v1/top?n=1", status=200)["denied"]) != 1:
        fail("?n=1")
    ask(server, "admin", "GET", "/v1/top?n=0", status=400)
    if ask(server, "admin", "GET", "/v1/top?minutes=5&n=1", status=200)["minutes"] != 5:
        fail("?minutes=5")
    ask(server, "admin", "GET", "/v1/top?minutes=2", status=400)


def check_live(server):
    history = ask(server, "admin", "GET", "/v1/history", status=200)
    if history["role"] != "admin" or history["events"][0]["kind"] != "start":
        fail(f"history: {history}")
    described = DOC["paths"]["/v1/events"]["get"]["responses"]["200"]["content"]["text/event-stream"]["x-events"]
    names = []
    for event in ask(server, "admin", "GET", "/v1/events", status=200).rstrip("\n").split("\n\n"):
        name, data = re.fullmatch(r"event: (\w+)\ndata: (.*)", event).groups()
        validate(described[name], json.loads(data), f"event {name}")
        names.append(name)
    if names[:2] != ["hello", "notices"] or not {"sample", "top"} <= set(names):
        fail(f"events: {names}")


def check_page(server):
    page = ask(server, "admin", "GET", "/", status=200)
    for file in re.findall(r'(?:src|href)="(/page/[^"]+)"', page):
        ask(server, "admin", "GET", file, status=200)
    ask(server, "admin", "GET", "/", status=304, headers={"If-None-Match": "*"})
    ask(server, "admin", "GET", "/page/style.css", status=304, headers={"If-None-Match": "*"})
    ask(server, "admin", "GET", "/page/none.js", status=404)


# ---- rules that are tried out ----


def check_checks(server):
    yaml = {"Content-Type": "application/yaml"}
    good = ask(server, "admin", "POST", "/v1/config/check", raw=RULES.replace("2/h", "3/h").encode(),
               headers=yaml, status=200)
    expect(good, ok=True, changes=["api: rate 2/h -> 3/h, burst 2 -> 3; keys kept"])
    bad = ask(server, "admin", "POST", "/v1/config/check", raw=b"limits:\n  - {name: a, rate: often}\n",
              headers=yaml, status=200)
    expect(bad, ok=False, changes=[])
    expect(bad["messages"][-1], severity="error", line=2, column=21)
    expect(ask(server, "admin", "POST", "/v1/config/check?source=file", status=200), ok=True, changes=[])
    ask(server, "admin", "POST", "/v1/config/check?source=else", status=400)
    ask(server, "admin", "POST", "/v1/config/check?source=file", raw=b"a", headers=yaml, status=400)


def check_explain(server):
    question = {"attributes": {"path": "/api/x", "user": "zoe"}, "cost": 2}
    said = ask(server, "admin", "POST", "/v1/explain", question, status=200)
    expect(said, verdict="allow", limit="api", attributes={"path": "/api/x", "user": "zoe"}, list=None)
    expect(said["limits"][0], applies=True, key="zoe", remaining=2, line=4, rate="2/h")
    expect(said["limits"][1], applies=False, why="path is /api/x, expected /pairs")
    question["attributes"]["user"] = "mallory"
    expect(ask(server, "admin", "POST", "/v1/explain", question, status=200), verdict="never", list="block")
    for bad in {}, {"attributes": 1}, {"attributes": {}, "cost": 0}, {"limit": "api"}:
        ask(server, "admin", "POST", "/v1/explain", bad, status=400)


def check_sandbox(server):
    made = ask(server, "admin", "POST", "/v1/sandbox", {"rules": RULES}, status=201)
    path = "/v1/sandbox/" + made["sandbox"]
    attributes = {"path": "/api/x", "user": "ann"}
    asks = [{"at_ms": t, "attributes": attributes, "headers": True} for t in (0, 0.5, 1)]
    answers = ask(server, "admin", "POST", path, {"asks": asks}, status=200)["answers"]
    if [a["status"] for a in answers] != [200, 200, 429] or ["Retry-After", "1800"] not in answers[2]["headers"]:
        fail(f"answers: {answers}")
    [answer] = ask(server, "admin", "POST", path, {"asks": [{**asks[2], "explain": True}]}, status=200)["answers"]
    expect(answer["explain"], verdict="deny", limit="api", list=None)
    [answer] = ask(server, "admin", "POST", path, {"asks": [{"at_ms": 1, "attributes": {"path": "/a%2fb%00"}}]},
                   status=200)["answers"]
    expect(answer, status=400)
    for step in ({}, {"asks": 1}, {"asks": [{}]}, {"asks": asks[:1] * 513}, {"asks": [{"at_ms": 9}]},
                 {"asks": [{"at_ms": -1, "attributes": {}}]}, {"asks": [{"at_ms": 9, "attributes": {}, "cost": 0}]},
                 {"asks": [{"at_ms": 9, "attributes": {}, "peek": 1}]}):
        ask(server, "admin", "POST", path, step, status=400)
    ask(server, "admin", "POST", path, {"asks": asks[:1]}, status=400, fits=True)
    for rules in {}, {"rules": ""}, {"rules": 1}, {"rules": RULES, "more": 1}:
        ask(server, "admin", "POST", "/v1/sandbox", rules, status=400)
    refused = ask(server, "admin", "POST", "/v1/sandbox", {"rules": "limits: {}"}, status=422)
    expect(refused["messages"][0], severity="error", line=1, column=9)
    ask(server, "admin", "DELETE", path, status=204)
    ask(server, "admin", "DELETE", path, status=404)
    ask(server, "admin", "POST", path, {"asks": asks}, status=404)


def check_demo(server):
    made = ask(server, "admin", "POST", "/v1/demo", {"scenario": "all"}, status=201)
    path = "/v1/demo/" + made["sandbox"]
    asks = [{"at_ms": 0, "attributes": {"path": "/fixed_window", "user": "ann"}, "cost": c} for c in (10, 1)]
    answers = ask(server, "admin", "POST", path, {"asks": asks}, status=200)["answers"]
    if [a["verdict"] for a in answers] != ["allow", "deny"] or len(made["limits"]) != 5:
        fail(f"demo: {made}, {answers}")
    ask(server, "admin", "POST", path, {"asks": asks + [{**asks[1], "explain": True}]}, status=400)
    ask(server, "admin", "POST", path, {"asks": asks + [{**asks[1], "headers": True}]}, status=400)
    for scenario in {}, {"scenario": ""}, {"scenario": "limits: []"}, {"rules": RULES}:
        ask(server, "admin", "POST", "/v1/demo", scenario, status=400)
    ask(server, "admin", "POST", "/v1/sandbox/" + made["sandbox"], {"asks": asks}, status=404)
    ask(server, "admin", "DELETE", path, status=204)
    ask(server, "admin", "DELETE", path, status=404)
    ask(server, "admin", "POST", path, {"asks": asks}, status=404)


# ---- secrets ----


def check_secrets(server):
    admin = {"Authorization": "Bearer one-admin"}
    wrong = 0
    check = {"Authorization": "Basic " + base64.b64encode(b":one-check").decode()}
    for path, item in DOC["paths"].items():
        target = path.replace("{name}", "api").replace("{path}", "x").replace("{file}", "style.css").replace("{id}", "0" * 32)
        for method, operation in item.items():
            tag = operation["tags"][0]
            if operation.get("security") == []:
                ask(server, tag, method.upper(), target, status=200)
                continue
            ask(server, tag, method.upper(), target, status=401)
            wrong += 1
            if wrong < 10:  # after that they cost time
                ask(server, tag, method.upper(), target, status=401, headers={"Weir-Secret": "wrong"})
            if operation["x-role"] == "admin":
                ask(server, tag, method.upper(), target, status=403, headers=check)
    ask(server, "admin", "GET", "/v1/status", status=200, headers=check)
    ask(server, "admin", "GET", "/v1/status", status=200, headers=admin)
    ask(server, "http", "POST", "/v1/check", {"limit": "api", "key": "x"}, status=200, headers=check)
    ask(server, "admin", "PUT", "/v1/mode", {"mode": "enforce"}, status=200, headers=admin)


def write(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def main():
    check_document()
    check_bounds_of_the_server()
    rules = write("rules.yaml", RULES)
    with Server("--config", rules) as server:
        ask(server, "admin", "POST", "/v1/demo", {"scenario": "all"}, status=404)
    with Server("--config", rules, "--demo") as server:
        check_questions(server)
        check_throttle(server)
        check_batches(server)
        check_reservations(server)
        check_auth(server)
        check_both(server)
        check_methods(server)
        check_numbers(server, rules)
        check_page(server)
        check_live(server)
        check_checks(server)
        check_explain(server)
        check_sandbox(server)
        check_demo(server)
        check_limits(server)
        check_keys(server)
        check_settings(server, rules)
    write("rules.yaml", RULES)
    secrets = {role: write(role, f"one-{role}\n") for role in ("check", "admin")}
    with Server("--config", rules, "--check-secrets", secrets["check"], "--admin-secrets", secrets["admin"]) as server:
        check_secrets(server)
    every = {(path, method) for path, item in DOC["paths"].items() for method in item}
    if every - asked:
        fail(f"never asked for: {sorted(every - asked)}")
    print(f"{len(every)} operations, {len(seen)} kinds of responses")


main()
