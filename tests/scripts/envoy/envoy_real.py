"""A real Envoy, an HTTP server behind it, and weir, which Envoy's rate limit filter asks. Each function below is a story;
its name says which. Limits are for a year, so that no window ends meanwhile. The filter waits long for weir, except where
a story is about its timeout."""
import atexit, http.client, http.server, json, os, re, signal, socket, subprocess, sys, threading, time

import yaml

from envoy_world import PATIENCE, World, write_all
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gateways"))
import dodges
import dodges_h2
from running import await_start, free_port, tell, until

SOURCE = os.environ["WEIR_SOURCE_DIR"]
TYPE = "type.googleapis.com/envoy."
FILES = {"edge.yaml": """domain: edge
descriptors:
  - {key: user, rate_limit: {name: per-user, unit: year, requests_per_unit: 5}}
  - {key: told, rate_limit: {unit: year, requests_per_unit: 1, weir: {deny: {message: 'Come back next year.'}}}}
  - {key: tokens, rate_limit: {unit: year, requests_per_unit: 10}}
  - {key: load, rate_limit: {unit: year, requests_per_unit: 1000000}}
"""}


# ---- the three programs ----

class Upstream:
    """An HTTP server that answers every GET with 200, and says which header fields it got."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body = b"upstream\n"
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.port = self.server.server_address[1]


class Envoy:
    """An Envoy with the given bootstrap configuration, as text."""

    def __init__(self, config, folder, ports):
        write_all(folder, {"envoy.yaml": config})
        self.log = open(os.path.join(folder, "envoy.log"), "w+")
        self.process = subprocess.Popen([os.environ["WEIR_TEST_ENVOY"], "-c", os.path.join(folder, "envoy.yaml"), "--concurrency", "1",
                                         "--disable-hot-restart", "-l", "warning"], stdout=self.log, stderr=self.log)
        atexit.register(self.process.kill)  # a story that fails leaves nothing behind
        await_start("Envoy listens", self.process, lambda: all(map(self.listens, ports)), self.said)

    @staticmethod
    def listens(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    def said(self):
        with open(self.log.name) as f:
            return f.read()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def get(port, path="/", **fields):
    """Returns the status, the header fields and the body of a reply."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    c.request("GET", path, headers={k.replace("_", "-"): v for k, v in fields.items()})
    reply = c.getresponse()
    body = reply.read()
    c.close()
    return reply.status, {k.lower(): v for k, v in reply.getheaders()}, body


# ---- configuration ----

def address(port):
    return {"address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}}


def cluster(name, port, **more):
    return {"name": name, "type": "STATIC", "connect_timeout": "5s", "load_assignment": {
        "cluster_name": name, "endpoints": [{"lb_endpoints": [{"endpoint": address(port)}]}]}, **more}


def grpc_cluster(name, port, **more):
    options = {TYPE[len("type.googleapis.com/"):] + "extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": TYPE + "extensions.upstreams.http.v3.HttpProtocolOptions", "explicit_http_config": {"http2_protocol_options": {}}}}
    return cluster(name, port, typed_extension_protocol_options=options, **more)


def by_header(field, key):
    return {"request_headers": {"header_name": field, "descriptor_key": key}}


RATE_LIMITS = [
    {"actions": [by_header("x-user", "user")]},
    {"actions": [by_header("x-told", "told")]},
    {"actions": [by_header("x-load", "load")]},
    {"actions": [by_header("x-cost", "cost"), by_header("x-payer", "tokens")]},
    {"actions": [by_header("x-payer", "tokens")], "hits_addend": {"format": "%REQ(x-cost)%"}},
    {"actions": [by_header("x-refund", "tokens")], "hits_addend": {"number": 4, "is_negative_hits": True}},
    {"actions": [by_header("x-late", "tokens")], "hits_addend": {"number": 0}},
    {"actions": [by_header("x-late", "tokens")], "hits_addend": {"number": 4}, "apply_on_stream_done": True},
    {"actions": [by_header("x-own", "own")], "limit": {"rate_limit": {"requests_per_unit": 2, "unit": "YEAR"}}},
]


def listener(name, port, service="weir", tracing=None, **filter_options):
    limiter = {"@type": TYPE + "extensions.filters.http.ratelimit.v3.RateLimit", "domain": "edge", "timeout": "30s",
               "enable_x_ratelimit_headers": "DRAFT_VERSION_03", "rate_limits": RATE_LIMITS,
               "rate_limit_service": {"transport_api_version": "V3", "grpc_service": {"envoy_grpc": {"cluster_name": service}}},
               **filter_options}
    manager = {"@type": TYPE + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
               "stat_prefix": name, "route_config": {"virtual_hosts": [{
                   "name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "upstream"}}]}]},
               "http_filters": [
                   {"name": "envoy.filters.http.ratelimit", "typed_config": limiter},
                   {"name": "envoy.filters.http.router", "typed_config": {"@type": TYPE + "extensions.filters.http.router.v3.Router"}}]}
    if tracing:
        manager["tracing"] = {"provider": {"name": "tracer", "typed_config": {
            "@type": TYPE + "config.trace.v3.OpenTelemetryConfig", "service_name": "edge",
            "grpc_service": {"envoy_grpc": {"cluster_name": tracing}}}}}
    return {"name": name, **address(port), "filter_chains": [{"filters": [
        {"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}]}


class Edge:
    """All three. Envoy has three listeners, which differ in what they do without an answer of weir."""

    def __init__(self, *options, rules=None, prepare=None, tls=None, tracing=None):
        self.port = free_port()
        self.open, self.closed, self.hasty = free_port(), free_port(), free_port()
        self.world = World(FILES, *options, rules=rules, prepare=prepare, port=self.port)
        self.upstream = Upstream()
        short = {"timeout": "0.02s", "enable_x_ratelimit_headers": "OFF"}
        config = {"static_resources": {
            "listeners": [listener("open", self.open, tracing=tracing), listener("closed", self.closed, failure_mode_deny=True),
                          listener("hasty", self.hasty, **short)],
            "clusters": [cluster("upstream", self.upstream.port),
                         grpc_cluster("weir", self.port, **({"transport_socket": tls} if tls else {}))]}}
        self.envoy = Envoy(json.dumps(config), self.world.folder, [self.open, self.closed, self.hasty])

    def statuses(self, n, port=None, **fields):
        return [get(port or self.open, **fields)[0] for _ in range(n)]

    def close(self):
        self.envoy.close()
        if self.world.server.process.poll() is None:
            self.world.close()


# ---- stories ----

def requests_pass_until_the_limit_and_are_then_told_when_to_come_back():
    e = Edge()
    for left in (4, 3, 2, 1, 0):
        status, fields, body = get(e.open, x_user="ann")
        assert (status, body) == (200, b"upstream\n"), (status, fields)
        assert fields["x-ratelimit-limit"] == '5, 5;w=31536000;name="per-user"', fields
        assert fields["x-ratelimit-remaining"] == str(left) and 1 <= int(fields["x-ratelimit-reset"]) <= 31536000, fields
        assert fields["ratelimit-policy"].endswith(";q=5;w=31536000") and ";r=%d;" % left in fields["ratelimit"], fields
        assert "retry-after" not in fields and "x-envoy-ratelimited" not in fields, fields
    status, fields, body = get(e.open, x_user="ann")
    assert (status, fields["x-envoy-ratelimited"], fields["x-ratelimit-remaining"]) == (429, "true", "0"), (status, fields)
    assert 1 <= int(fields["retry-after"]) <= 31536000 and body == b"", (fields, body)
    assert e.statuses(1, x_user="bob") == [200] and e.statuses(7) == [200] * 7  # no descriptor, no limit
    assert e.statuses(2, x_told="x") == [200, 429]
    assert get(e.open, x_told="x")[2] == b"Come back next year."
    e.close()


def a_skipped_limit_is_told_in_the_dynamic_metadata_that_the_guide_names():
    with open(os.path.join(SOURCE, "docs/guide/envoy.md")) as f:
        named = re.search(r"%DYNAMIC_METADATA\([^)]*:missing\)%", f.read())[0]
    w, upstream, port = World(FILES, rules="limits: [{name: named, when: {user: ann}, key: [ip], rate: 5/day}]\n"), Upstream(), free_port()
    edge = listener("edge", port)
    hosts = edge["filter_chains"][0]["filters"][0]["typed_config"]["route_config"]["virtual_hosts"]
    hosts[0]["response_headers_to_add"] = [{"header": {"key": "x-missing", "value": named}}]
    config = {"static_resources": {"listeners": [edge], "clusters": [
        cluster("upstream", upstream.port), grpc_cluster("weir", int(w.server.address("grpc").rsplit(":", 1)[1]))]}}
    envoy = Envoy(json.dumps(config), w.folder, [port])
    assert get(port, x_user="ann")[1].get("x-missing") == "true"
    assert get(port, x_user="bob")[1].get("x-missing", "-") == "-"
    envoy.close()
    w.close()


def hits_of_a_descriptor_are_counted_and_given_back():
    e = Edge(rules="envoy: {negative_hits: true}\n")
    assert e.statuses(1, x_payer="p", x_cost="7") == [200]
    assert e.statuses(1, x_payer="p", x_cost="4") == [429]
    assert e.statuses(1, x_payer="p", x_cost="3") == [200]
    assert e.statuses(1, x_payer="p", x_cost="0") == [429]  # a look: nothing is left
    assert e.statuses(1, x_refund="p") == [200]
    assert e.statuses(2, x_payer="p", x_cost="4") == [200, 429]
    e.close()


def no_header_field_switches_off_the_limits_of_its_request():
    """On the listener that lets requests pass whose call fails."""
    e = Edge()
    odd = ["v" * 5000, "v" * 5001, "v" * 50000, "\xff\xfe", "\xc0\xaf", "\xed\xa0\x80", "a\xe9", "-1", "%00", "a,b", "*"]
    for value in odd:
        assert e.statuses(6, x_user=value) == [200] * 5 + [429], value[:20]
    for i, value in enumerate(odd):  # a descriptor beside it is limited as well
        assert e.statuses(6, x_user="beside-%d" % i, x_load=value) == [200] * 5 + [429], value[:20]
    for i, cost in enumerate(("many", "-5", "\xff", "1e9", "9" * 30, "v" * 5000)):
        statuses = e.statuses(11, x_user="payer-%d" % i, x_cost=cost, x_payer="p%d" % i)
        assert statuses[5:] == [429] * 6, (cost[:20], statuses)
    duplicate = http.client.HTTPConnection("127.0.0.1", e.open, timeout=PATIENCE)
    found = []
    for _ in range(6):
        duplicate.putrequest("GET", "/")
        for value in ("twice", "w" * 5000):
            duplicate.putheader("x-user", value)
        duplicate.endheaders()
        reply = duplicate.getresponse()
        reply.read()
        found.append(reply.status)
    assert found == [200] * 5 + [429], found
    assert e.world.server.count("cannot be decided") == 0, e.world.server.log()
    e.close()


def fields_for_tracing_do_not_switch_them_off_either():
    """Envoy copies `tracestate` of its client into the call: to weir, which serves no collector of traces."""
    e = Edge(tracing="weir")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for size in (10, 9000, 50000):
        for name in ("tracestate", "baggage", "x_request_id"):
            fields = {"traceparent": parent, "x_user": "%s-%d" % (name, size), name: "a=" + "b" * size}
            assert e.statuses(6, **fields) == [200] * 5 + [429], (name, size)
    e.close()


def what_is_known_only_at_the_end_of_a_response_is_charged_then():
    e = Edge(rules="envoy: {charge: each}\n")
    left = lambda: e.world.call("edge", "tokens=late *0").statuses[0].limit_remaining  # noqa: E731
    for after in (6, 2, 0):  # 4 each; the third is more than there is, and uses up the rest
        assert e.statuses(1, x_late="late") == [200]
        until("the response is charged", lambda: left() == after)
    assert e.statuses(1, x_late="late") == [429]
    e.close()


def a_limit_that_comes_with_the_route_is_enforced():
    e = Edge()
    assert e.statuses(3, x_own="o") == [200, 200, 429]
    e.close()


def without_weir_requests_pass_or_fail_as_the_filter_says():
    e = Edge()
    assert e.statuses(1, x_user="u") + e.statuses(1, e.closed, x_user="u") == [200, 200]
    e.world.close()
    assert e.statuses(9, x_user="u") == [200] * 9
    assert e.statuses(2, e.closed, x_user="u") == [500, 500]
    e.world.start()
    until("Envoy has found weir again", lambda: e.statuses(1, e.closed, x_user="back") == [200])
    e.close()


def a_weir_that_stands_still_delays_requests_by_the_timeout_of_the_filter_only():
    e = Edge()
    assert e.statuses(1, e.hasty, x_load="u") == [200]
    e.world.server.signal(signal.SIGSTOP)
    began = time.monotonic()
    assert e.statuses(20, e.hasty, x_load="u") == [200] * 20
    took = time.monotonic() - began
    e.world.server.signal(signal.SIGCONT)
    assert 20 * 0.02 <= took < PATIENCE / 2, took
    assert e.statuses(5, x_user="after") == [200] * 5 and e.statuses(1, x_user="after") == [429]
    e.close()


def counts_outlive_a_restart_of_weir():
    e = Edge("--state", "state", prepare={"state/.keep": ""})
    assert e.statuses(3, x_user="kept") == [200] * 3
    e.world.restart()
    until("Envoy has found weir again", lambda: e.statuses(1, e.closed, x_load="l") == [200])
    assert e.statuses(3, x_user="kept") == [200, 200, 429]
    e.close()


def reloads_under_load_fail_no_request():
    e = Edge()
    over, statuses = threading.Event(), []

    def load():
        while not over.is_set():
            statuses.append(get(e.closed, x_load="l")[0])

    threads = [threading.Thread(target=load) for _ in range(4)]
    for t in threads:
        t.start()
    for i in range(10):
        seen = e.world.server.count("reloading why=")
        write_all(e.world.config, {"more.yaml": "domain: more\ndescriptors: [{key: k%d, rate_limit: {unit: day, "
                                                "requests_per_unit: 1}}]\n" % i})
        until("it has reloaded", lambda: e.world.server.count("reloading why=") > seen)
    over.set()
    for t in threads:
        t.join()
    assert set(statuses) == {200} and len(statuses) > 20, {s: statuses.count(s) for s in set(statuses)}
    left = e.world.call("edge", "load=l *0").statuses[0].limit_remaining
    assert left == 1000000 - len(statuses), (left, len(statuses))  # and none was lost or counted twice
    e.close()


def envoy_verifies_the_certificate_of_weir():
    folder = World.scratch()
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=weir", "-addext", "subjectAltName=DNS:weir.example", "-keyout", key, "-out", cert],
                   check=True, stderr=subprocess.DEVNULL)
    for name, wanted in (("weir.example", [200] * 5 + [429]), ("other.example", [500] * 6)):
        matcher = {"san_type": "DNS", "matcher": {"exact": name}}
        tls = {"name": "envoy.transport_sockets.tls", "typed_config": {
            "@type": TYPE + "extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": "weir.example",
            "common_tls_context": {"validation_context": {"trusted_ca": {"filename": cert},
                                                          "match_typed_subject_alt_names": [matcher]}}}}
        e = Edge("--tls-cert", cert, "--tls-key", key, "--tls-listeners", "grpc", tls=tls)
        assert e.statuses(6, e.closed, x_user="s") == wanted, name
        e.close()


# ---- the guide ----

def guide_blocks():
    with open(os.path.join(SOURCE, "docs/guide/envoy.md")) as f:
        found = re.findall(r"^```yaml (\w+)\n(.*?)^```$", f.read(), re.S | re.M)
    return {kind: [text for k, text in found if k == kind] for kind, _ in found}


class Guide:
    """The configuration of the guide, as printed but for ports and for the patience of a busy machine. `change` gets the
    virtual host."""

    def __init__(self, service_port, change=None):
        blocks = guide_blocks()
        ports = {10000: free_port(), 8081: free_port(), 8000: service_port}
        self.world = World({"edge.yaml": blocks["ratelimit"][0]}, port=ports[8081])
        config = re.sub(r"port_value: (\d+)", lambda m: "port_value: %d" % ports[int(m[1])], blocks["envoy"][0])
        if change:
            tree = yaml.safe_load(config)
            change(manager_of(tree)["route_config"]["virtual_hosts"][0])
            config = json.dumps(tree)
        self.envoy = Envoy(re.sub(r"(timeout\"?: \"?)0\.\d+s", r"\g<1>30s", config), self.world.folder, [ports[10000]])
        self.port = ports[10000]

    def attack(self, origin, front=dodges.Front):
        minute = dict(window=60)
        return dodges.Attack(front(("127.0.0.1", self.port), origin), dodges.Quota(5, **minute),
                             address=dodges.Quota(60, **minute), ignore_case=True)

    def close(self):
        self.envoy.close()
        self.world.close()


def manager_of(config):
    return config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]


def the_configuration_of_the_guide_does_what_the_guide_says():
    guide = Guide(Upstream().port)
    early_minute()
    logins = [get(guide.port, "/login") for _ in range(6)]
    assert [status for status, _, _ in logins] == [200] * 5 + [429], logins
    assert logins[-1][1]["x-envoy-ratelimited"] == "true" and "retry-after" in logins[-1][1], logins[-1]
    assert logins[0][1]["x-ratelimit-limit"] == '5, 5;w=60;name="login", 60;w=60', logins[0]
    users = [get(guide.port, "/", x_api_key="key-of-alice") for _ in range(21)]
    assert [status for status, _, _ in users] == [200] * 20 + [429], users
    assert {get(guide.port, "/", x_api_key="key-of-batch")[0] for _ in range(25)} == {200}
    guide.close()


def no_spelling_of_a_request_gets_past_the_limits_of_the_guide():
    origin = dodges.Origin()
    guide = Guide(origin.port)
    guide.attack(origin).run()
    dodges_h2.attack(guide.attack(origin, dodges_h2.other_clients))
    guide.close()


def no_request_of_many_at_once_gets_past_the_limits_of_the_guide():
    origin = dodges.Origin()
    guide = Guide(origin.port)
    attack = guide.attack(origin)
    attack.many_at_once(guide.world.server.process.pid)
    attack.done()
    guide.close()


def no_spelling_of_a_request_gets_past_the_limits_for_istio():
    def change(host):
        host["routes"] = [{"match": {"prefix": "/"}, "route": {"cluster": "service"}}]
        host.update(istio_parts()["VIRTUAL_HOST"])
    origin = dodges.Origin()
    guide = Guide(origin.port, change)
    attack = guide.attack(origin)
    attack.logins()
    attack.done()
    guide.close()


def istio_parts():
    return {p["applyTo"]: p["patch"]["value"] for p in yaml.safe_load(guide_blocks()["istio"][0])["spec"]["configPatches"]}


def early_minute():
    """Waits for the next minute if this one ends soon: the limits of the guide are for minutes."""
    while time.time() % 60 > 40:
        time.sleep(0.1)


def envoy_reads_the_parts_of_the_configuration_for_istio():
    config, parts = yaml.safe_load(guide_blocks()["envoy"][0]), istio_parts()
    manager = manager_of(config)
    manager["http_filters"][1] = parts["HTTP_FILTER"]
    manager["route_config"]["virtual_hosts"][0].update(parts["VIRTUAL_HOST"])
    config["static_resources"]["clusters"][1] = parts["CLUSTER"]
    folder = World.scratch()
    write_all(folder, {"istio.json": json.dumps(config)})
    done = subprocess.run([os.environ["WEIR_TEST_ENVOY"], "--mode", "validate", "-c", os.path.join(folder, "istio.json")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout


def a_second_filter_that_enforces_nothing_compares_two_services():
    with open(os.path.join(SOURCE, "docs/migrate/envoy-ratelimit.md")) as f:
        second = yaml.safe_load(re.search(r"^```yaml envoy\n(.*?)^```$", f.read(), re.S | re.M)[1])
    second["typed_config"].update(domain="edge", timeout="30s", rate_limits=RATE_LIMITS)
    admin, port, new_port = free_port(), free_port(), free_port()
    old, upstream = World(FILES), Upstream()
    new = World({"edge.yaml": FILES["edge.yaml"].replace("requests_per_unit: 5}", "requests_per_unit: 3}")}, port=new_port)
    both = listener("both", port, "old")
    both["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"].insert(0, second)
    config = {"admin": address(admin), "static_resources": {"listeners": [both], "clusters": [
        cluster("upstream", upstream.port), grpc_cluster("weir", new_port),
        grpc_cluster("old", int(old.server.address("grpc").rsplit(":", 1)[1]))]}}
    envoy = Envoy(json.dumps(config), old.folder, [port, admin])
    assert [get(port, x_user="ann")[0] for _ in range(7)] == [200] * 5 + [429] * 2
    stats = get(admin, "/stats?filter=ratelimit")[2].decode()
    for line in ("weir.ok: 3", "weir.over_limit: 4", "ok: 5", "over_limit: 2"):
        assert "cluster.upstream.ratelimit." + line + "\n" in stats, stats
    envoy.close()
    old.close()
    new.close()


if __name__ == "__main__":
    tell(globals())
