"""Envoy's rate limit service as weir serves it, beyond the table: windows, charging, header fields, bad input, health,
JSON, and what weir adds. Each function below is a story; its name says which."""
import hashlib, http.client, json, os, re, shutil, subprocess, sys, time

import grpc

from envoy_world import PATIENCE, SECONDS, World, health_pb2, refused, request_of, rls, start_redis
from running import WEIR, tell, until

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NEGATIVE = "weir_negative_hits_total{result=\"%s\"}"
BAD = "weir_bad_calls_total{answer=\"%s\"}"
UNREAD = "weir_unread_total{what=\"%s\"}"
FILES = {"shop.yaml": """domain: shop
descriptors:
  - {key: user, rate_limit: {unit: year, requests_per_unit: 5}}
  - {key: one, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: dry, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 1}}
  - {key: many, rate_limit: {unit: year, requests_per_unit: 500}}
  - {key: named, rate_limit: {name: by-name, unit: year, requests_per_unit: 2}}
"""}


def post(world, path, body):
    """Returns the status and the JSON of a reply on the HTTP listener."""
    host, port = world.server.address("http").rsplit(":", 1)
    c = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    c.request("POST", path, body)
    reply = c.getresponse()
    text = reply.read()
    c.close()
    return reply.status, json.loads(text) if text.startswith(b"{") else text


def ctl(world, *words):
    return subprocess.run([WEIR, "ctl", "--admin", world.server.address("admin"), *words], check=True, timeout=PATIENCE,
                          stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "XDG_RUNTIME_DIR": world.server.folder}).stdout


def metric(world, series):
    host, port = world.server.address("admin").rsplit(":", 1)
    c = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    c.request("GET", "/metrics")
    text = c.getresponse().read().decode()
    c.close()
    return int(re.search(r"^%s (\d+)$" % re.escape(series), text, re.M).group(1))


def fields_of(response):
    return {h.key.lower(): h.value for h in response.response_headers_to_add}


# ---- windows, and what is charged ----

def windows_begin_at_multiples_of_their_unit_since_1970():
    units = "".join("  - {key: %s, rate_limit: {unit: %s, requests_per_unit: 9}}\n" % (u, u.lower()) for u in SECONDS)
    w = World({"units.yaml": "domain: units\ndescriptors:\n" + units})
    for unit, seconds in SECONDS.items():
        before = int(time.time())
        status = w.call("units", unit + "=x").statuses[0]
        times = range(before - 1, int(time.time()) + 2)
        assert rls.RateLimitResponse.RateLimit.Unit.Name(status.current_limit.unit) == unit, status
        found = (status.duration_until_reset.seconds, status.duration_until_reset.nanos)
        assert found in [(seconds - t % seconds, 0) for t in times], (unit, found, seconds - before % seconds)
    w.close()


def with_charge_each_a_descriptor_is_charged_even_if_another_denies():
    w = World(FILES, rules="envoy: {charge: each}\n")
    w.expect("shop", "one=a | user=a -> OK: OK 0 of 1/YEAR | OK 4 of 5/YEAR",
             "one=a | user=a -> OVER: OVER 0 of 1/YEAR | OK 3 of 5/YEAR",
             "user=a | one=a -> OVER: OK 2 of 5/YEAR | OVER 0 of 1/YEAR", "user=a -> OK: OK 1 of 5/YEAR",
             "one=a | dry=a *0 -> OVER: OVER 0 of 1/YEAR | OK 1 of 1/YEAR",
             "one=a | dry=a -> OVER: OVER 0 of 1/YEAR | OK 0 of 1/YEAR")  # limits in shadow mode too
    w.close()
    w = World(FILES, rules="envoy: {charge: together}\n")
    w.expect("shop", "one=a | user=a -> OK: OK 0 of 1/YEAR | OK 4 of 5/YEAR",
             "one=a | user=a -> OVER: OVER 0 of 1/YEAR | OK 4 of 5/YEAR")
    w.close()


def with_charge_each_a_limit_of_a_descriptor_is_charged_too_here_and_in_a_store():
    rules = ["envoy: {charge: each}\n"]
    if shutil.which("redis-server") is not None:
        redis, url = start_redis(World.scratch())
        rules.append(rules[0] + "store: {url: '%s', deadline: 10s}\n" % url)
    for text in rules:
        w = World(FILES, rules=text)
        until("the store is there", lambda: "store" not in text or "the store is there" in w.server.log())
        w.expect("shop", "one=o @3/YEAR | user=o *9 -> OVER: OK 2 of 3/YEAR | OVER 0 of 5/YEAR",
                 "one=o *3 @3/YEAR | user=p -> OVER: OVER 0 of 3/YEAR | OK 4 of 5/YEAR",
                 "one=o *0 @3/YEAR -> OVER: OVER 0 of 3/YEAR",
                 "one=o @0/YEAR | user=p -> OVER: OVER 0 of 0/YEAR | OK 3 of 5/YEAR", "user=p *0 -> OK: OK 3 of 5/YEAR")
        w.close()


def a_descriptor_that_is_there_twice_counts_twice():
    w = World(FILES)
    assert w.call("shop", "user=d | user=d").overall_code == rls.RateLimitResponse.OK
    w.expect("shop", "user=d *0 -> OK: OK 3 of 5/YEAR")
    assert w.call("shop", "hits=2; user=d | user=d").overall_code == rls.RateLimitResponse.OVER_LIMIT
    w.expect("shop", "user=d *0 -> OK: OK 3 of 5/YEAR")
    w.close()


def calls_at_the_same_time_take_exactly_what_there_is():
    w = World(FILES)
    futures = [w.service.ShouldRateLimit.future(request_of("shop", "many=x | user=%d" % i), timeout=PATIENCE)
               for i in range(1000)]
    assert sum(f.result().overall_code == rls.RateLimitResponse.OK for f in futures) == 500
    w.close()


# ---- what clients are told ----

FORMATS = {
    "ietf": ({"ratelimit-policy": r'"[^"]+";q=5;w=31536000', "ratelimit": r'"[^"]+";r=4;t=\d+'}),
    "x-delta": {"x-ratelimit-limit": "5", "x-ratelimit-remaining": "4", "x-ratelimit-reset": r"\d{1,8}"},
    "x-epoch": {"x-ratelimit-limit": "5", "x-ratelimit-remaining": "4", "x-ratelimit-reset": r"\d{10}"},
    "off": {},
}


def response_headers_are_those_of_the_setting_headers():
    for form, wanted in FORMATS.items():
        w = World(FILES, rules="server: {headers: %s}\n" % form)
        got = fields_of(w.call("shop", "user=a | many=a"))
        assert got.keys() == wanted.keys() and all(re.fullmatch(wanted[k], got[k]) for k in got), (form, got)
        got = fields_of(w.call("shop", "user=a *5"))
        assert set(got) - {"content-type"} == wanted.keys() | {"retry-after"}, (form, got)
        assert 1 <= int(got["retry-after"]) <= SECONDS["YEAR"], got
        assert fields_of(w.call("shop", "other=a")) == {}
        assert form != "ietf" or fields_of(w.call("shop", "named=a"))["ratelimit"].startswith('"by-name";'), form
        assert "retry-after" not in fields_of(w.call("shop", "user=a *6"))  # waiting does not help
        w.close()


def a_denied_request_has_the_body_that_its_limit_states():
    w = World({"a.yaml": """domain: a
descriptors:
  - {key: plain, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: told, rate_limit: {unit: day, requests_per_unit: 0, weir: {deny: {message: 'Slow down, please.'}}}}
"""})
    assert w.call("a", "other=x").raw_body == b""
    assert b"Slow down, please." in w.call("a", "told=x").raw_body
    assert b"Slow down, please." in w.call("a", "other=x | told=x").raw_body
    assert b"Slow down" not in w.call("a", "plain=x").raw_body
    w.close()


def a_limit_in_shadow_mode_is_counted_as_such_and_the_kill_switch_allows_all():
    w = World(FILES)
    for _ in range(3):
        assert w.call("shop", "dry=x").overall_code == rls.RateLimitResponse.OK
    for _ in range(7):
        w.call("shop", "user=x")
    limits = {l["name"]: l for l in json.loads(ctl(w, "--json", "limits"))["limits"]}
    seen = {name: (l["allowed"], l["denied"], l["shadow_denied"]) for name, l in limits.items() if l["keys"] > 0}
    assert seen == {"shop.dry": (1, 0, 2), "shop.user": (5, 2, 0)}, seen
    ctl(w, "mode", "shadow")
    assert w.call("shop", "user=x").overall_code == rls.RateLimitResponse.OK
    ctl(w, "mode", "enforce")
    assert w.call("shop", "user=x").overall_code == rls.RateLimitResponse.OVER_LIMIT
    w.close()


# ---- bad input ----

def message(domain=b"shop", key=b"user", value=b"x"):
    """Returns a call as bytes: the client of Python sends no strings that are not UTF-8."""
    def field(tag, data):
        size, bytes_of = len(data), [tag]
        while size >= 128:
            bytes_of.append(size % 128 + 128)
            size //= 128
        return bytes(bytes_of + [size]) + data
    return field(0x0a, domain) + field(0x12, field(0x0a, field(0x0a, key) + field(0x12, value)))


def left_after(world, **parts):
    """Asks with such a call, and returns what remains; -1 if no limit applies."""
    status = rls.RateLimitResponse.FromString(world.raw(message(**parts))).statuses[0]
    return status.limit_remaining if status.HasField("current_limit") else -1


def values_are_bytes_and_each_has_its_own_count():
    w = World(FILES)
    values = [b"x", b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"a\0b", b"a\0c", b"a", b"\0\0", b"\0h", b"", b"\xff", b"\n"]
    for left in (4, 3):
        assert [left_after(w, value=v) for v in values] == [left] * len(values)
    assert left_after(w, domain=b"\xff\xfe") == left_after(w, domain=b"sh\0op") == left_after(w, key=b"us\0er") == -1
    w.close()


def calls_that_are_no_calls_are_errors_which_are_logged_and_counted():
    w = World(FILES)
    refused(INVALID, "domain", lambda: w.call("", "user=x"))
    refused(INVALID, "descriptors", lambda: w.call("shop", ""))
    refused(INVALID, "entries", lambda: w.call("shop", "user=x | "))
    refused(INVALID, "key", lambda: w.call("shop", "=x"))
    refused(INVALID, "unit", lambda: w.call("shop", "user=x @5/UNKNOWN"))
    refused(INVALID, "malformed", lambda: w.raw(b"\x0a\x7fcut off"))
    refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large", lambda: w.raw(message(value=b"v" * 300000)))
    refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "header fields", lambda: w.call("shop", "user=x", metadata=[("authorization", "y" * 9000)]))
    assert post(w, "/json", "{")[0] == 400
    assert (metric(w, BAD % "error"), metric(w, BAD % "deny")) == (9, 0)
    assert 1 <= w.server.count("rate limit service cannot be decided") <= 9, w.server.log()
    assert "failure_mode_deny" in w.server.log()
    for name in ("tracestate", "x-long"):  # Envoy copies some fields of its clients; weir reads none of them
        assert w.call("shop", "user=" + name, metadata=[(name, "y" * 7000)] * 6).statuses[0].limit_remaining == 4
    newer = message() + b"\xfa\x3f\x02hi\xc0\x3e\x07"  # fields of newer clients are ignored
    assert rls.RateLimitResponse.FromString(w.raw(newer)).statuses[0].limit_remaining == 4
    for method in ("shouldRateLimit", "ShouldRateLimits", ""):
        refused(grpc.StatusCode.UNIMPLEMENTED, "", lambda: w.channel.unary_unary(
            "/envoy.service.ratelimit.v3.RateLimitService/" + method)(b"", timeout=PATIENCE))
    w.close()


def with_on_bad_call_deny_such_calls_are_over_their_limit():
    w = World({"shop.yaml": FILES["shop.yaml"] + "envoy: {on_bad_call: deny}\n"})
    for ask in (lambda: w.call("", "user=x"), lambda: w.call("shop", "user=x | "), lambda: w.call("shop", "user=x @5/UNKNOWN"),
                lambda: rls.RateLimitResponse.FromString(w.raw(b"\x0a\x7fcut off")),
                lambda: rls.RateLimitResponse.FromString(w.raw(message(value=b"v" * 300000))),
                lambda: w.call("shop", "user=x", metadata=[("authorization", "y" * 9000)])):
        assert ask().overall_code == rls.RateLimitResponse.OVER_LIMIT
    assert post(w, "/json", "{") == (429, {"overallCode": "OVER_LIMIT", "statuses": []})
    assert (metric(w, BAD % "error"), metric(w, BAD % "deny")) == (0, 7)
    w.expect("shop", "user=x -> OK: OK 4 of 5/YEAR")
    w.close()


def more_descriptors_than_weir_decides_at_once_are_refused():
    w = World(FILES)
    most = " | ".join("user=m%d" % i for i in range(32))
    assert len(w.call("shop", most).statuses) == 32
    refused(INVALID, "32", lambda: w.call("shop", most + " | user=one-more"))
    w.expect("shop", "user=m0 -> OK: OK 3 of 5/YEAR", "user=one-more -> OK: OK 4 of 5/YEAR")
    w.close()


def hashed(value):
    """What stands for a long value in a key."""
    return b"\0" + hashlib.sha256(value).digest()


def long_values_are_counted_and_never_mixed_up():
    w = World({**FILES, "wild.yaml": """domain: wild
descriptors:
  - {key: path, value: /login*, rate_limit: {unit: year, requests_per_unit: 2}}
  - key: path
    value: /both*
    descriptors: [{key: user, rate_limit: {unit: year, requests_per_unit: 3}}]
"""})
    for size in (100, 3000, 4095, 4096, 5000, 60000):
        text = "v" * (size - 1)
        for left in (4, 3):
            w.expect("shop", "user=%sa -> OK: OK %d of 5/YEAR" % (text, left), "user=%sb -> OK: OK %d of 5/YEAR" % (text, left),
                     "one=%sa @9/YEAR -> OK: OK %d of 9/YEAR" % (text, left + 4))
    long = b"v" * 4999 + b"a"
    assert left_after(w, value=long) == 2 and left_after(w, value=hashed(long)) == 4 and left_after(w, value=long) == 1
    more = "q" * 5000  # wildcards see the value, not what stands for it
    w.expect("wild", "path=/login?%s -> OK: OK 1 of 2/YEAR" % more, "path=/login?%s -> OK: OK 0 of 2/YEAR" % more,
             "path=/login?%s -> OVER: OVER 0 of 2/YEAR" % more, "path=/logi%s -> OK: OK -" % more)
    for size in (3000, 5000):  # each fits alone, or does not, and both together do not
        p, u = "/both" + "p" * size, "u" * size
        w.expect("wild", "path=%s, user=%s -> OK: OK 2 of 3/YEAR" % (p, u), "path=%s, user=%s -> OK: OK 1 of 3/YEAR" % (p, u),
                 "path=%sx, user=%s -> OK: OK 2 of 3/YEAR" % (p, u), "path=%s, user=%sx -> OK: OK 2 of 3/YEAR" % (p, u))
    assert metric(w, BAD % "error") == 0
    w.close()


def what_cannot_be_read_is_decided_by_on_missing_and_the_other_limits_decide():
    rules = """attributes: {tokens: request, kind: request, payer: request}
limits:
  - {name: login, when: {path: '/login*'}, key: [ip], rate: 5/day, on_missing: deny}
  - {name: open, when: {path: /open, kind: b}, key: [ip], rate: 5/day}
  - {name: closed, when: {path: /closed, kind: a}, key: [], rate: 5/day, on_missing: deny, expose: true}
  - {name: nets, when: {ip: 10.0.0.0/8, kind: c}, key: [], rate: 5/day, on_missing: deny, expose: true}
  - {name: kinds, when: {kind: '*'}, key: [kind], rate: 5/day}
  - {name: paid, when: {payer: '*'}, key: [payer], cost: 'attribute:tokens', rate: 100/day}
"""
    w = World({}, rules=rules)
    w.expect("d", "path=/login, ip=192.0.2.1 -> OK: OK 4 of 5/DAY", "path=/login, ip=none -> OVER: OVER -",
             "path=/login%00, ip=192.0.2.1 -> OVER: OVER -", "path=/%s, ip=192.0.2.1 -> OVER: OVER -" % ("p" * 5000),
             "path=/%00, kind=b -> OVER: OVER -",  # `login` would apply to some path
             "path=/x, ip=none, kind=b -> OK: OK 4 of 5/DAY", "path=/open, ip=none, kind=b -> OK: OK 3 of 5/DAY",
             "path=/x, ip=none, kind=c -> OVER: OVER -", "path=/x, ip=192.0.2.1, kind=c -> OK: OK 4 of 5/DAY")
    said = w.call("d", "path=/x, ip=none, kind=d")
    assert dict(said.dynamic_metadata) == {"unread_value": True}, said
    assert not w.call("d", "path=/x, ip=192.0.2.1, kind=d").HasField("dynamic_metadata")
    for left, tokens in ((98, "2"), (97, "-5"), (96, "many"), (95, "0"), (94, "1e3"), (93, ""), (92, None), (89, "3")):
        said = w.call("d", "payer=x" + ("" if tokens is None else ", tokens=" + tokens))
        assert said.statuses[0].limit_remaining == left, (tokens, said)
        assert dict(said.dynamic_metadata) == ({} if tokens in ("2", "3") else {"unread_cost": True}), (tokens, said)
    ask = {"domain": "d", "descriptors": [{"entries": [{"key": "payer", "value": "x\0y"}, {"key": "ip", "value": "none"}]}]}
    status, got = post(w, "/json", json.dumps(ask))
    assert (status, got["dynamicMetadata"]) == (200, {"unread_value": True, "unread_cost": True}), got
    assert (metric(w, UNREAD % "cost"), metric(w, UNREAD % "value"), metric(w, BAD % "error")) == (7, 9, 0)
    w.close()


def an_address_that_cannot_be_read_gets_past_no_limit_of_the_shipped_rules():
    """Each question is of another user, as if clients made up their names: only limits by address stop them."""
    for shipped in ("examples/rules.yaml", "packaging/weir.yaml"):
        with open(os.path.join(os.environ["WEIR_SOURCE_DIR"], shipped)) as f:
            rules = re.sub(r"^server:\n( .*\n)*", "", f.read(), flags=re.M).replace("shadow: true", "shadow: false")
        w = World({}, rules=rules)
        paths = ["path=/login, method=POST", "path=/search/cats"] + (["path=/page"] if "/**" in rules.replace("/search/**", "") else [])
        for i, path in enumerate(paths):
            for address in ("", ", ip=none", ", ip="):
                w.expect("d", "%s, user=made-up-%d%s -> OVER: OVER -" % (path, i, address))
            assert w.call("d", path + ", user=made-up, ip=192.0.2.1").overall_code == rls.RateLimitResponse.OK, path
        w.close()


def a_call_needs_the_secret_that_clients_need():
    w = World(FILES, "--check-secrets", "secrets", prepare={"secrets": "the-secret-of-envoy-0123456789\n"})
    refused(grpc.StatusCode.UNAUTHENTICATED, "expected check", lambda: w.call("shop", "user=x"))
    shown = [("authorization", "Bearer the-secret-of-envoy-0123456789")]
    assert w.call("shop", "user=x", metadata=shown).statuses[0].limit_remaining == 4
    assert w.health("ratelimit") == health_pb2.HealthCheckResponse.SERVING  # a probe has no secret
    w.close()


# ---- units given back ----

WITHHELD = "is_negative_hits gave nothing back"


def negative_hits_of_a_client_give_nothing_back_and_are_no_error():
    w = World(FILES, rules="limits: [{name: own, when: {domain: shop}, key: [own], rate: 5/day}]\n")
    w.expect("shop", "user=n *4 -> OK: OK 1 of 5/YEAR", "user=n *-3 -> OK: OK 1 of 5/YEAR",
             "user=n *-3 | one=n -> OK: OK 1 of 5/YEAR | OK 0 of 1/YEAR",  # the other descriptor is decided
             "user=n *-3 | one=n -> OVER: OK 1 of 5/YEAR | OVER 0 of 1/YEAR", "user=n -> OK: OK 0 of 5/YEAR",
             "user=n *-1 -> OK: OK 0 of 5/YEAR", "user=n -> OVER: OVER 0 of 5/YEAR",
             "own=n *4 -> OK: OK 1 of 5/DAY", "own=n *-4 -> OK: OK 1 of 5/DAY", "dry=n *-1 -> OK: OK 1 of 1/YEAR")
    ask = {"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "n"}], "hitsAddend": 5,
                                              "isNegativeHits": True}]}
    status, got = post(w, "/json", json.dumps(ask))
    assert (status, got["overallCode"], got["statuses"][0]["limitRemaining"]) == (200, "OK", 0), got
    assert (metric(w, NEGATIVE % "withheld"), metric(w, NEGATIVE % "given")) == (7, 0)
    lines = [line for line in w.server.log().splitlines() if WITHHELD in line]
    for limit in ("shop.user", "own", "shop.dry"):  # a line for each limit, and few for many calls
        assert 1 <= sum(line.split(" limit=")[1].split()[0] == limit for line in lines) <= 7, lines
    assert "verb=" not in w.server.log()
    w.close()


def negative_hits_are_given_back_to_limits_of_envoy_files_if_that_is_switched_on():
    rules = "envoy: {negative_hits: %s}\nlimits: [{name: own, when: {domain: shop}, key: [own], rate: 5/day}]\n"
    w = World(FILES, rules=rules % "true")
    w.expect("shop", "user=n *4 -> OK: OK 1 of 5/YEAR", "user=n *-3 -> OK: OK 4 of 5/YEAR",
             "own=n *4 -> OK: OK 1 of 5/DAY", "own=n *-4 -> OK: OK 1 of 5/DAY")  # no limit of Envoy's files
    assert (metric(w, NEGATIVE % "withheld"), metric(w, NEGATIVE % "given")) == (1, 1)
    w.server.write(rules % "false")
    ctl(w, "reload")
    w.expect("shop", "user=n *-1 -> OK: OK 4 of 5/YEAR")
    w.close()
    alone = World({"shop.yaml": FILES["shop.yaml"] + "envoy: {negative_hits: true}\n"})
    alone.expect("shop", "user=n *4 -> OK: OK 1 of 5/YEAR", "user=n *-3 -> OK: OK 4 of 5/YEAR")
    alone.close()


def an_admin_gives_units_back_to_any_limit_and_leaves_a_line_in_the_audit_log():
    w = World(FILES, "--check-secrets", "clients", "--admin-secrets", "admins",
              prepare={"clients": "the-secret-of-envoy-0123456789\n", "admins": "the-secret-of-admins-0123456789\n"},
              rules="limits: [{name: own, when: {domain: shop}, key: [own], rate: 5/day}]\n")
    for who, question, left in (("envoy", "own=n *4", 1), ("envoy", "own=n *-3", 1), ("admins", "own=n *-3", 4)):
        shown = [("authorization", "Bearer the-secret-of-%s-0123456789" % who)]
        assert w.call("shop", question, metadata=shown).statuses[0].limit_remaining == left, (who, question)
    assert re.search(r' audit "?key changed"? verb="?negative hits"? address=127\.0\.0\.1 role=admin limit=own key=n units=3',
                     w.server.log()), w.server.log()
    assert w.server.log().count("key changed") == 1
    w.close()


def a_limit_of_the_rule_file_that_is_skipped_is_told_in_the_metadata():
    w = World(FILES, rules="limits: [{name: login, when: {path: /login}, key: [ip], rate: 5/day}]\n")
    assert dict(w.call("shop", "path=/login").dynamic_metadata) == {"missing": True}
    assert not w.call("shop", "path=/login, ip=192.0.2.1").HasField("dynamic_metadata")
    assert not w.call("shop", "user=x").HasField("dynamic_metadata")
    w.close()


# ---- other faces of the service ----

def health_is_told_by_the_names_that_envoy_users_know():
    w = World(FILES)
    for service in ("", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService", "weir.v1.Limiter"):
        assert w.health(service) == health_pb2.HealthCheckResponse.SERVING, service
    w.close()


def the_service_can_be_asked_in_json_over_http():
    w = World(FILES)
    ask = {"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": "json"}]}]}
    status, got = post(w, "/json", json.dumps(ask))
    first = got["statuses"][0]
    assert (status, got["overallCode"], first["code"], first["limitRemaining"]) == (200, "OK", "OK", 4), got
    assert first["currentLimit"] == {"requestsPerUnit": 5, "unit": "YEAR"}, got
    assert re.fullmatch(r"\d+s", first["durationUntilReset"]), got
    assert {h["key"].lower() for h in got["responseHeadersToAdd"]} == {"ratelimit-policy", "ratelimit"}, got
    ask["hits_addend"] = 5  # names of fields may be written in both ways
    status, got = post(w, "/json", json.dumps(ask))
    assert (status, got["overallCode"], got["statuses"][0]["code"]) == (429, "OVER_LIMIT", "OVER_LIMIT"), got
    assert got["statuses"][0].get("limitRemaining", 0) == 0, got  # a zero may be left out in proto3 JSON
    ask = {"domain": "shop", "hitsAddend": 2, "descriptors": [
        {"entries": [{"key": "user", "value": "json"}], "hitsAddend": "1"}, {"entries": [{"key": "x"}]},
        {"entries": [{"key": "many", "value": "j"}], "limit": {"requestsPerUnit": 3, "unit": "HOUR"}}]}
    status, got = post(w, "/json", json.dumps(ask))
    assert status == 200 and [s.get("limitRemaining") for s in got["statuses"]] == [3, None, 1], got
    assert got["statuses"][1] == {"code": "OK"} and got["statuses"][2]["currentLimit"]["unit"] == "HOUR", got
    for bad in ("", "[]", "{", '{"domain": ""}', '{"domain": "shop"}', '{"domain": 5, "descriptors": []}',
                '{"domain": "shop", "descriptors": [{"entries": [{"key": ""}]}]}', json.dumps({**ask, "nothing": 1})):
        assert post(w, "/json", bad)[0] == 400, bad
    ask["descriptors"][2]["limit"]["unit"] = "hour"
    status, got = post(w, "/json", json.dumps(ask))
    assert status == 400 and "unit: found 'hour', expected SECOND, MINUTE" in got["detail"], got
    w.expect("shop", "user=json *0 -> OK: OK 3 of 5/YEAR")
    w.close()


# ---- what weir adds ----

def a_limit_may_have_any_key_of_the_rule_file_under_weir():
    w = World({"a.yaml": """domain: a
descriptors:
  - {key: bucket, rate_limit: {unit: hour, requests_per_unit: 20, weir: {algorithm: token_bucket, burst: 40}}}
  - {key: odd, rate_limit: {unit: minute, requests_per_unit: 20, weir: {rate: 20/90s}}}
  - {key: sliding, rate_limit: {name: s, unit: day, requests_per_unit: 3, weir: {algorithm: sliding_log, max_keys: 10}}}
"""})
    left = [w.call("a", "bucket=x").statuses[0].limit_remaining for _ in range(40)]
    assert left == list(range(39, -1, -1)), left
    denied = w.call("a", "bucket=x")
    assert denied.overall_code == rls.RateLimitResponse.OVER_LIMIT
    assert 1 <= denied.statuses[0].duration_until_reset.seconds <= 2 * 3600, denied
    before = time.time()
    status = w.call("a", "odd=x").statuses[0]
    assert status.current_limit.requests_per_unit == 20 and status.limit_remaining == 19, status
    assert status.current_limit.unit == rls.RateLimitResponse.RateLimit.UNKNOWN, status  # 90 s are no unit of Envoy
    assert status.duration_until_reset.seconds in [90 - int(before + d) % 90 for d in (-1, 0, 1, 2)], status
    w.expect("a", "sliding=x *2 -> OK: OK 1 of 3/DAY s", "sliding=x *2 -> OVER: OVER 0 of 3/DAY s",
             "sliding=x -> OK: OK 0 of 3/DAY s")
    w.close()


def limits_of_the_rule_file_match_descriptors_by_their_entries():
    rules = """
block: [{domain: own, user: mallory}]
limits:
  - {name: tenant, when: {domain: own, tenant: acme}, key: [user], algorithm: fixed_window, rate: 2/365day}
  - {name: shop-users, when: {domain: shop, user: 'v*'}, key: [user], algorithm: fixed_window, rate: 3/365day}
"""
    w = World(FILES, rules=rules)
    for code in ("OK", "OK", "OVER"):  # a domain that only the rule file knows; the order of entries does not matter
        assert w.ask("own", "tenant=acme, user=ann").startswith(code + ": "), code
    assert w.ask("own", "user=ann, tenant=acme").startswith("OVER: ")
    assert w.ask("own", "tenant=acme, user=bob").startswith("OK: ")
    assert w.ask("own", "tenant=other, user=ann") == "OK: OK -"
    assert w.ask("own", "user=mallory").startswith("OVER: OVER")
    for code in ("OK", "OK", "OK", "OVER"):  # both apply, and the tighter one denies
        assert w.ask("shop", "user=vera").startswith(code + ": "), code
    w.expect("shop", "user=ann *5 -> OK: OK 0 of 5/YEAR", "user=ann -> OVER: OVER 0 of 5/YEAR")
    w.close()


def counts_outlive_a_restart_if_there_is_a_folder_for_them():
    w = World(FILES, "--state", "state", prepare={"state/.keep": ""})
    w.expect("shop", "user=kept *2 -> OK: OK 3 of 5/YEAR")
    w.restart()
    w.expect("shop", "user=kept -> OK: OK 2 of 5/YEAR", "user=new -> OK: OK 4 of 5/YEAR")
    w.close()


def nodes_with_one_store_share_the_limits():
    if shutil.which("redis-server") is None:
        print("redis-server is missing", file=sys.stderr)
        return
    redis, url = start_redis(World.scratch())
    rules = "envoy: {negative_hits: true}\nstore: {url: '%s', deadline: 10s}\n" % url
    nodes = [World(FILES, rules=rules) for _ in range(2)]
    until("the store is there", lambda: all("the store is there" in n.server.log() for n in nodes))
    futures = [n.service.ShouldRateLimit.future(request_of("shop", "many=x | user=%d" % i), timeout=PATIENCE)
               for i in range(400) for n in nodes]
    assert sum(f.result().overall_code == rls.RateLimitResponse.OK for f in futures) == 500
    nodes[0].expect("shop", "user=s -> OK: OK 4 of 5/YEAR", "one=s @2/YEAR -> OK: OK 1 of 2/YEAR")
    nodes[1].expect("shop", "user=s -> OK: OK 3 of 5/YEAR", "one=s @2/YEAR -> OK: OK 0 of 2/YEAR",
                    "user=s *-1 -> OK: OK 4 of 5/YEAR")
    nodes[0].expect("shop", "user=s *0 -> OK: OK 4 of 5/YEAR")
    for left, node in ((4, nodes[0]), (3, nodes[1])):  # long values have one key on every node
        node.expect("shop", "user=%s -> OK: OK %d of 5/YEAR" % ("v" * 9000, left),
                    "user=%s @9/YEAR -> OK: OK %d of 9/YEAR" % ("v" * 9000, left + 4))
    for n in nodes:
        n.close()
    redis.kill()


if __name__ == "__main__":
    tell(globals())
