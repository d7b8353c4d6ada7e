"""weir over gRPC as its clients see it. Each function below is a story; its name says which."""
import atexit, os, re, shutil, socket, struct, subprocess, sys, tempfile, threading, time

import grpc
from grpc_tools import protoc

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from running import PATIENCE, Server, await_start, fails, tell, until

SOURCE = os.environ["WEIR_SOURCE_DIR"]
MADE = tempfile.mkdtemp()
atexit.register(shutil.rmtree, MADE, True)
PROTO = os.path.join(SOURCE, "proto")
assert protoc.main(["protoc", "-I" + PROTO, "--python_out=" + MADE, "--grpc_python_out=" + MADE,
                    os.path.join(PROTO, "weir/v1/limiter.proto")]) == 0
# The health service is called by path: a module grpc.health would hide the one of the client.
assert protoc.main(["protoc", "-I" + os.path.join(PROTO, "grpc"), "--python_out=" + MADE,
                    os.path.join(PROTO, "grpc/health/v1/health.proto")]) == 0
sys.path.insert(0, MADE)
from health.v1 import health_pb2
from weir.v1 import limiter_pb2 as v1
from weir.v1 import limiter_pb2_grpc

RULES = """
limits:
  - {name: api, when: {path: /api/**}, key: [user], rate: 100/day}
  - {name: few, key: [who], rate: 3/day, when: {path: /few}}
  - {name: llm, key: [user], rate: 1000/day, when: {path: /chat}, cost: 'attribute:tokens'}
"""
LISTEN = ("--resp", "off", "--http", "off", "--admin", "off", "--grpc", "127.0.0.1:0")


class World:
    def __init__(self, *options, rules=RULES, env=None):
        self.server = Server(*LISTEN, *options, rules=rules, env=env)
        self.channel = self.open()
        self.limiter = limiter_pb2_grpc.LimiterStub(self.channel)

    def open(self):
        return grpc.insecure_channel(self.server.address("grpc"), options=[("grpc.use_local_subchannel_pool", 1)])

    def health(self, kind, service=""):
        path = "/grpc.health.v1.Health/" + kind
        make = self.channel.unary_stream if kind == "Watch" else self.channel.unary_unary
        return make(path, health_pb2.HealthCheckRequest.SerializeToString,
                    health_pb2.HealthCheckResponse.FromString)(health_pb2.HealthCheckRequest(service=service),
                                                               timeout=PATIENCE)

    def raw(self, path, message, **more):
        return self.channel.unary_unary(path)(message, timeout=PATIENCE, **more)

    def close(self):
        self.channel.close()
        return self.server.stop()


def refused(code, words, call):
    try:
        call()
    except grpc.RpcError as e:
        assert e.code() == code and words in e.details(), (e.code(), e.details())
        return
    raise AssertionError("expected " + str(code))


# ---- answers ----

def a_limit_that_is_skipped_for_want_of_a_key_is_flagged():
    w = World()
    for name, skipped in (("user", False), ("usr", True)):
        said = w.limiter.Check(v1.CheckRequest(attributes={"path": "/api/x", name: "u"}), timeout=PATIENCE)
        assert (said.verdict, said.missing, said.full) == (v1.VERDICT_ALLOW, skipped, False), said
    w.close()


def a_check_takes_units_until_there_are_none_and_a_denial_is_an_answer():
    w = World()
    for left in (2, 1, 0):
        a = w.limiter.Check(v1.CheckRequest(limit="few", key=["ann"]), timeout=PATIENCE)
        assert (a.verdict, a.limit, a.quota, a.remaining) == (v1.VERDICT_ALLOW, "few", 3, left), a
    a = w.limiter.Check(v1.CheckRequest(limit="few", key=["ann"]), timeout=PATIENCE)
    assert a.verdict == v1.VERDICT_DENY and a.reason == v1.REASON_LIMIT and a.retry_after_ms > 0, a
    a = w.limiter.Check(v1.CheckRequest(limit="few", key=["bob"], cost=4), timeout=PATIENCE)
    assert a.verdict == v1.VERDICT_NEVER and a.retry_after_ms == -1, a
    a = w.limiter.Peek(v1.PeekRequest(limit="few", key=["bob"]), timeout=PATIENCE)
    assert a.remaining == 3, a
    w.close()


def a_request_is_asked_about_by_its_attributes():
    w = World()
    a = w.limiter.Ask(v1.AskRequest(attributes={"path": "/api/x", "user": "zoë"}, cost=30), timeout=PATIENCE)
    assert (a.verdict, a.limit, a.remaining) == (v1.VERDICT_ALLOW, "api", 70), a
    a = w.limiter.Check(v1.CheckRequest(attributes={"path": "/elsewhere"}), timeout=PATIENCE)
    assert (a.verdict, a.limit, a.remaining, a.reason) == (v1.VERDICT_ALLOW, "", -1, v1.REASON_UNMATCHED), a
    a = w.limiter.Throttle(v1.ThrottleRequest(key=["k"], burst=1, count=1, period_ms=60000), timeout=PATIENCE)
    assert (a.verdict, a.remaining) == (v1.VERDICT_ALLOW, 1), a
    w.close()


def a_batch_answers_each_request_by_itself_and_in_order():
    w = World()
    requests = [v1.CheckRequest(limit="few", key=["ann"], cost=2), v1.CheckRequest(limit="none", key=["ann"]),
                v1.CheckRequest(limit="few", key=["ann"], cost=2), v1.CheckRequest(limit="few", key=["ann"])]
    results = w.limiter.Batch(v1.BatchRequest(requests=requests), timeout=PATIENCE).results
    kinds = [r.WhichOneof("result") for r in results]
    assert kinds == ["answer", "error", "answer", "answer"], results
    assert [results[i].answer.verdict for i in (0, 2, 3)] == [v1.VERDICT_ALLOW, v1.VERDICT_DENY, v1.VERDICT_ALLOW]
    many = v1.BatchRequest(requests=[v1.CheckRequest(limit="api", key=["x"])] * 1000)
    verdicts = [r.answer.verdict for r in w.limiter.Batch(many, timeout=PATIENCE).results]
    assert verdicts == [v1.VERDICT_ALLOW] * 100 + [v1.VERDICT_DENY] * 900
    many.requests.add(limit="api", key=["x"])
    refused(grpc.StatusCode.INVALID_ARGUMENT, "found 1001, expected at most 1000",
            lambda: w.limiter.Batch(many, timeout=PATIENCE))
    assert len(w.limiter.Batch(v1.BatchRequest(), timeout=PATIENCE).results) == 0
    w.close()


def reserve_over_resp(server, limit, times):
    """Makes reservations as fast as RESP takes them; those beyond what a client may have are refused."""
    host, port = server.address("resp").rsplit(":", 1)
    words = b"*2\r\n$12\r\nWEIR.RESERVE\r\n$%d\r\n%s\r\n" % (len(limit), limit.encode())
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as s, s.makefile("rb") as replies:
        for _ in range(times // 100):
            s.sendall(words * 100 + b"*1\r\n$4\r\nPING\r\n")
            while replies.readline() != b"+PONG\r\n":
                pass


def a_reservation_without_room_is_unavailable_until_others_end():
    w = World("--resp", "127.0.0.1:0", rules="limits: [{name: all, key: [], rate: 1M/day}]\n")
    reserve_over_resp(w.server, "all", 66000)
    refused(grpc.StatusCode.UNAVAILABLE, "reservations", lambda: w.limiter.Reserve(v1.ReserveRequest(limit="all"), timeout=PATIENCE))
    assert w.limiter.Check(v1.CheckRequest(limit="all"), timeout=PATIENCE).verdict == v1.VERDICT_ALLOW
    w.close()


def a_reservation_is_settled_or_cancelled_once():
    w = World()
    a = w.limiter.Reserve(v1.ReserveRequest(limit="api", key=["ann"], cost=60), timeout=PATIENCE)
    assert a.verdict == v1.VERDICT_ALLOW and len(a.reservation) == 32, a
    b = w.limiter.Settle(v1.SettleRequest(reservation=a.reservation, actual=10), timeout=PATIENCE)
    assert b.remaining == 90, b
    refused(grpc.StatusCode.NOT_FOUND, "", lambda: w.limiter.Settle(
        v1.SettleRequest(reservation=a.reservation, actual=10), timeout=PATIENCE))
    a = w.limiter.Reserve(v1.ReserveRequest(limit="api", key=["ann"], cost=50), timeout=PATIENCE)
    b = w.limiter.Settle(v1.SettleRequest(reservation=a.reservation, actual=0), timeout=PATIENCE)
    assert b.remaining == 90, b
    a = w.limiter.Reserve(v1.ReserveRequest(limit="api", key=["ann"], cost=50), timeout=PATIENCE)
    b = w.limiter.Cancel(v1.CancelRequest(reservation=a.reservation), timeout=PATIENCE)
    assert b.remaining == 90, b
    w.close()


# ---- bad input ----

def bad_requests_get_the_status_and_the_reason():
    w = World()
    bad = grpc.StatusCode.INVALID_ARGUMENT
    refused(bad, "found neither limit nor attributes, expected one of them", lambda: w.limiter.Check(v1.CheckRequest(), timeout=PATIENCE))
    refused(bad, "attributes: expected a value", lambda: w.limiter.Ask(v1.AskRequest(), timeout=PATIENCE))
    refused(grpc.StatusCode.NOT_FOUND, "none",
            lambda: w.limiter.Check(v1.CheckRequest(limit="none", key=["a"]), timeout=PATIENCE))
    refused(bad, "at most 8 parts",
            lambda: w.limiter.Check(v1.CheckRequest(limit="few", key=["a"] * 9), timeout=PATIENCE))
    refused(bad, "UTF-8 without NUL",
            lambda: w.limiter.Check(v1.CheckRequest(limit="few", key=["a\0b"]), timeout=PATIENCE))
    for call, request in ((w.limiter.Check, v1.CheckRequest), (w.limiter.Peek, v1.PeekRequest),
                          (w.limiter.Reserve, v1.ReserveRequest)):
        refused(bad, "limit 'llm' takes its cost from the attribute 'tokens'",
                lambda: call(request(limit="llm", key=["ann"]), timeout=PATIENCE))
        assert call(request(limit="llm", key=["ann"], cost=5), timeout=PATIENCE).verdict == v1.VERDICT_ALLOW
    check = "/weir.v1.Limiter/Check"
    refused(bad, "limit: expected UTF-8 without NUL", lambda: w.raw(check, b"\x0a\x02\xff\xfe"))
    refused(bad, "cost: expected a number", lambda: w.raw(check, b"\x22\x01a"))
    refused(bad, "malformed", lambda: w.raw(check, b"\x0a\x7fcut off"))
    refused(bad, "malformed", lambda: w.raw(check, b"\x0b"))
    for path in ("/weir.v1.Limiter/Chekc", "/weir.v2.Limiter/Check", "/", "/x", "//"):
        refused(grpc.StatusCode.UNIMPLEMENTED, "", lambda: w.raw(path, b""))
    refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "too large", lambda: w.raw(check, b"\x0a" + b"x" * 400000))
    refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "header fields",
            lambda: w.raw(check, b"", metadata=[("x-long", "y" * 9000)]))
    refused(grpc.StatusCode.UNIMPLEMENTED, "grpc-encoding",
            lambda: w.raw(check, b"\x0a\x03few", compression=grpc.Compression.Gzip))
    a = w.limiter.Check(v1.CheckRequest(limit="few", key=["ann"]), timeout=PATIENCE)
    assert a.remaining == 2, a  # nothing of the above was charged
    w.close()


def fields_of_newer_clients_are_ignored():
    w = World()
    message = v1.CheckRequest(limit="few", key=["ann"]).SerializeToString() + b"\xfa\x3f\x02hi\xc0\x3e\x07"
    a = v1.Answer.FromString(w.raw("/weir.v1.Limiter/Check", message))
    assert a.remaining == 2, a
    w.close()


def a_client_of_http_1_is_told_what_this_port_speaks():
    w = World()
    with w.server.connect("grpc") as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        s.settimeout(PATIENCE)
        got = b""
        while True:
            more = s.recv(4096)
            if not more:
                break
            got += more
    assert got.startswith(b"HTTP/1.1 400 ") and b"expected gRPC" in got, got
    w.close()


# ---- raw frames ----

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


CHECK = b"/weir.v1.Limiter/Check"
CHECK_HEAD = b"\x83\x86\x41\x01x\x44" + bytes([len(CHECK)]) + CHECK + b"\x5f\x10application/grpc"  # POST of http://x/CHECK


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def goaway_of(s):
    """The error code of the GOAWAY that ends the connection; None if it ends without one."""
    got = b""
    code = None
    s.settimeout(PATIENCE)
    try:
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
    except ConnectionResetError:
        pass
    while len(got) >= 9:
        n = int.from_bytes(got[:3], "big")
        if got[3] == 7:
            code = struct.unpack(">I", got[13:17])[0]
        got = got[9 + n:]
    return code


def send_all(s, data):
    try:
        s.sendall(data)
    except OSError:  # it was cut off
        pass


def frames_that_break_the_rules_end_the_connection():
    w = World()
    hostile = {
        "DATA on no stream": frame(0, 0, 0, b"x"),
        "HEADERS of an even stream": frame(1, 5, 2, b"\x82"),
        "CONTINUATION without HEADERS": frame(9, 4, 1, b"\x82"),
        "a SETTINGS of 5 bytes": frame(4, 0, 0, b"\0" * 5),
        "a PING of 7 bytes": frame(6, 0, 0, b"\0" * 7),
        "a frame above the agreed size": frame(0, 0, 1, b"\0" * 20000),
        "a WINDOW_UPDATE of 0": frame(8, 0, 0, b"\0" * 4),
        "bad HPACK": frame(1, 5, 1, b"\xff\xff\xff\xff\xff\xff"),
    }
    for what, bytes_ in hostile.items():
        with w.server.connect("grpc") as s:
            s.sendall(PREFACE + frame(4, 0, 0) + bytes_)
            assert goaway_of(s) not in (None, 0), what
    a = w.limiter.Check(v1.CheckRequest(limit="few", key=["ann"]), timeout=PATIENCE)
    assert a.remaining == 2, a
    w.close()


def floods_of_frames_are_cut_off_and_others_are_served():
    w = World()
    head = CHECK_HEAD
    floods = {
        "PING": [frame(6, 0, 0, b"\0" * 8)] * 200000,
        "SETTINGS": [frame(4, 0, 0)] * 200000,
        "rapid reset": [frame(1, 4, i, head) + frame(3, 0, i, b"\0\0\0\x08") for i in range(1, 200001, 2)],
        "empty DATA": [frame(1, 4, 1, head)] + [frame(0, 0, 1)] * 200000,
        "CONTINUATION": [frame(1, 0, 1, head)] + [frame(9, 0, 1, b"\x40\x01a\x01b" * 100)] * 20000,
        "frames of no known type": [frame(200, 0, 0)] * 200000,
    }
    for what, frames in floods.items():
        with w.server.connect("grpc") as s:
            sender = threading.Thread(target=send_all, args=(s, PREFACE + frame(4, 0, 0) + b"".join(frames)))
            sender.start()
            code = goaway_of(s)
            sender.join()
            assert code in ((1, 9, 11) if what == "CONTINUATION" else (11,)), (what, code)  # 11: ENHANCE_YOUR_CALM
        a = w.limiter.Peek(v1.PeekRequest(limit="few", key=["ann"]), timeout=PATIENCE)
        assert a.remaining == 3, what
    log = w.close()
    told = log.count("it sent too many frames") + sum(map(int, re.findall(r"like_this_left_out=(\d+)", log)))
    assert told <= len(floods), "a connection that is cut off is told once"


# ---- secrets ----

def a_call_needs_the_secret_of_its_role():
    env = {"WEIR_CHECK_SECRETS_TEXT": ""}
    folder = tempfile.mkdtemp()
    for role in ("check", "admin"):
        with open(os.path.join(folder, role), "w") as f:
            f.write("the-secret-of-%s-0123456789\n" % role)
    w = World("--check-secrets", os.path.join(folder, "check"), "--admin-secrets", os.path.join(folder, "admin"), env=env)
    request = v1.CheckRequest(limit="few", key=["ann"])
    block = v1.BlockRequest(limit="few", key=["ann"])

    def shown(secret, field="authorization", scheme="Bearer "):
        return [(field, scheme + secret)]

    refused(grpc.StatusCode.UNAUTHENTICATED, "found the role none, expected check",
            lambda: w.limiter.Check(request, timeout=PATIENCE))
    refused(grpc.StatusCode.UNAUTHENTICATED, "not valid",
            lambda: w.limiter.Check(request, timeout=PATIENCE, metadata=shown("wrong-secret-0123456789")))
    check = shown("the-secret-of-check-0123456789")
    assert w.limiter.Check(request, timeout=PATIENCE, metadata=check).remaining == 2
    refused(grpc.StatusCode.PERMISSION_DENIED, "found the role check, expected admin",
            lambda: w.limiter.Block(block, timeout=PATIENCE, metadata=check))
    own = shown("the-secret-of-admin-0123456789", "weir-secret", "")
    assert w.limiter.Block(block, timeout=PATIENCE, metadata=own + shown("of-another-server")).blocked_ms == -1
    assert w.limiter.Check(request, timeout=PATIENCE, metadata=check).reason == v1.REASON_BLOCKED
    block.by = "ip"  # the key has no alternatives
    refused(grpc.StatusCode.INVALID_ARGUMENT, "by: found 'ip', expected at most one attribute of each part",
            lambda: w.limiter.Block(block, timeout=PATIENCE, metadata=own))
    assert w.health("Check").status == health_pb2.HealthCheckResponse.SERVING  # a probe has no secret
    w.close()
    shutil.rmtree(folder)


def a_listener_that_others_can_reach_needs_secrets():
    fails(2, "grpc would listen on 0.0.0.0:", "--resp", "off", "--http", "off", "--admin", "off", "--grpc", "0.0.0.0:0",
          rules=RULES)


# ---- health, and the end ----

def health_says_whether_the_server_takes_calls():
    w = World()
    states = health_pb2.HealthCheckResponse
    for service in ("", "weir.v1.Limiter"):
        assert w.health("Check", service).status == states.SERVING
    refused(grpc.StatusCode.NOT_FOUND, "unknown service", lambda: w.health("Check", "nothing"))
    assert next(w.health("Watch", "nothing")).status == states.SERVICE_UNKNOWN
    watch = w.health("Watch")
    assert next(watch).status == states.SERVING
    w.server.signal(15)
    assert next(watch).status == states.NOT_SERVING
    assert list(watch) == [] and watch.code() == grpc.StatusCode.OK
    assert w.server.ended() == 0
    w.channel.close()


def calls_in_flight_at_the_end_are_answered_or_safe_to_retry():
    """Every call that the server took units for is answered, so the units that are gone are those that were allowed."""
    w = World("--threads", "2", rules="limits: [{name: all, key: [], rate: 1M/day}]\n")
    counts = {"allow": 0, "retry": 0, "other": []}
    lock = threading.Lock()
    going = threading.Event()

    def ask():
        with w.open() as channel:
            limiter = limiter_pb2_grpc.LimiterStub(channel)
            while True:
                try:
                    a = limiter.Check(v1.CheckRequest(limit="all"), timeout=PATIENCE)
                    with lock:
                        counts["allow"] += a.verdict == v1.VERDICT_ALLOW
                        if counts["allow"] > 200:
                            going.set()
                except grpc.RpcError as e:
                    with lock:
                        if e.code() == grpc.StatusCode.UNAVAILABLE:
                            counts["retry"] += 1
                        else:
                            counts["other"].append(e.code())
                    return

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads:
        t.start()
    assert going.wait(PATIENCE)
    w.server.signal(15)
    for t in threads:
        t.join(PATIENCE)
    assert counts["retry"] == 4 and counts["other"] == [], counts
    assert w.server.ended() == 0
    w.channel.close()


# ---- many at once ----

def many_streams_of_one_connection_take_exactly_what_there_is():
    w = World(rules="limits: [{name: all, key: [who], rate: 500/day}]\n")
    futures = [w.limiter.Check.future(v1.CheckRequest(limit="all", key=["k"]), timeout=PATIENCE) for _ in range(2000)]
    allowed = sum(f.result().verdict == v1.VERDICT_ALLOW for f in futures)
    assert allowed == 500, allowed
    w.close()


def cancelled_calls_and_deadlines_leave_the_connection_usable():
    w = World(rules="limits: [{name: all, key: [who], rate: 1M/day}]\n")
    for i in range(300):
        f = w.limiter.Check.future(v1.CheckRequest(limit="all", key=["k%d" % i]), timeout=0.0001 if i % 2 else PATIENCE)
        if i % 3 == 0:
            f.cancel()
    a = w.limiter.Check(v1.CheckRequest(limit="all", key=["last"]), timeout=PATIENCE)
    assert a.verdict == v1.VERDICT_ALLOW
    w.close()


def a_call_whose_deadline_has_passed_is_refused_and_takes_nothing():
    w = World()
    message = v1.CheckRequest(limit="few", key=["ann"]).SerializeToString()
    body = frame(0, 1, 1, b"\0" + struct.pack(">I", len(message)) + message)
    # The longest times are more nanoseconds than 64 bits hold, or only with the time since the start.
    for timeout, left in ((b"0S", 3), (b"1n", 3), (b"99999999H", 2), (b"5124095H", 1), (b"5124096H", 0)):
        with w.server.connect("grpc") as s:
            head = CHECK_HEAD + b"\x40\x0cgrpc-timeout" + bytes([len(timeout)]) + timeout
            s.sendall(PREFACE + frame(4, 0, 0) + frame(1, 4, 1, head))
            s.sendall(body + frame(7, 0, 0, b"\0" * 8))
            assert goaway_of(s) == 0, timeout
        a = w.limiter.Peek(v1.PeekRequest(limit="few", key=["ann"]), timeout=PATIENCE)
        assert a.remaining == left, (timeout, a.remaining)
    w.close()


def start_redis(folder):
    path = os.path.join(folder, "redis")
    process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder],
                               stdout=subprocess.DEVNULL)
    atexit.register(process.kill)
    await_start("redis listens", process, lambda: os.path.exists(path))
    return process, "redis://" + path


def a_fleet_that_decides_by_its_store_admits_exactly_its_limit():
    if shutil.which("redis-server") is None:
        print("redis-server is missing", file=sys.stderr)
        return
    folder = tempfile.mkdtemp()
    redis, url = start_redis(folder)
    rules = """store: {url: '%s', deadline: 10s}
limits:
  - {name: all, key: [who], rate: 500/day, when: {path: /all}}
  - {name: here, key: [who], rate: 1M/day, consistency: local, when: {path: /here}}
""" % url
    nodes = [World("--threads", "2", rules=rules) for _ in range(2)]
    until("the store is there", lambda: all("the store is there" in n.server.log() for n in nodes))
    shared = [n.limiter.Check.future(v1.CheckRequest(limit="all", key=["k"]), timeout=PATIENCE)
              for _ in range(600) for n in nodes]
    local = [n.limiter.Check.future(v1.CheckRequest(limit="here", key=["k"]), timeout=PATIENCE)
             for _ in range(100) for n in nodes]
    answers = [f.result() for f in shared]
    assert not any(a.degraded for a in answers), "the store was slow"
    assert sum(a.verdict == v1.VERDICT_ALLOW for a in answers) == 500
    assert all(f.result().verdict == v1.VERDICT_ALLOW for f in local)
    batch = v1.BatchRequest(requests=[v1.CheckRequest(limit="all", key=["b"], cost=200), v1.CheckRequest(limit="here", key=["b"]),
                                      v1.CheckRequest(limit="no"), v1.CheckRequest(limit="all", key=["b"], cost=301)])
    results = nodes[0].limiter.Batch(batch, timeout=PATIENCE).results
    assert [r.WhichOneof("result") for r in results] == ["answer", "answer", "error", "answer"], results
    assert [r.answer.verdict for r in results] == [v1.VERDICT_ALLOW, v1.VERDICT_ALLOW, 0, v1.VERDICT_DENY], results
    # While the store stands still, local limits of the same connection are answered at once.
    redis.send_signal(19)
    waiting = nodes[0].limiter.Check.future(v1.CheckRequest(limit="all", key=["w"]), timeout=PATIENCE)
    a = nodes[0].limiter.Check(v1.CheckRequest(limit="here", key=["k"]), timeout=5)
    assert a.verdict == v1.VERDICT_ALLOW and not waiting.done()
    # A client that has announced its end is left when its last call has been answered.
    message = v1.CheckRequest(limit="all", key=["g"]).SerializeToString()
    leaving = nodes[0].server.connect("grpc")
    leaving.sendall(PREFACE + frame(4, 0, 0) + frame(1, 4, 1, CHECK_HEAD) +
                    frame(0, 1, 1, b"\0" + struct.pack(">I", len(message)) + message) + frame(7, 0, 0, b"\0" * 8))
    assert nodes[0].limiter.Check(v1.CheckRequest(limit="here", key=["k"]), timeout=5).verdict == v1.VERDICT_ALLOW
    redis.send_signal(18)
    assert waiting.result().remaining == 499
    assert goaway_of(leaving) == 0
    leaving.close()
    for n in nodes:
        n.close()
    redis.kill()
    shutil.rmtree(folder, ignore_errors=True)


# ---- TLS ----

def a_secure_channel_is_verified_and_answered():
    folder = tempfile.mkdtemp()
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=weir", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                   check=True, stderr=subprocess.DEVNULL)
    w = World("--tls-cert", cert, "--tls-key", key)
    with open(cert, "rb") as f:
        trust = grpc.ssl_channel_credentials(f.read())
    with grpc.secure_channel(w.server.address("grpc"), trust) as channel:
        limiter = limiter_pb2_grpc.LimiterStub(channel)
        futures = [limiter.Check.future(v1.CheckRequest(limit="api", key=["k"]), timeout=PATIENCE) for _ in range(300)]
        assert sum(f.result().verdict == v1.VERDICT_ALLOW for f in futures) == 100
    with grpc.secure_channel(w.server.address("grpc"), grpc.ssl_channel_credentials()) as channel:
        refused(grpc.StatusCode.UNAVAILABLE, "", lambda: limiter_pb2_grpc.LimiterStub(channel).Check(
            v1.CheckRequest(limit="api", key=["k"]), timeout=PATIENCE))
    w.close()
    shutil.rmtree(folder)


# ---- the description ----

def the_proto_file_is_the_one_that_the_rows_make():
    made = subprocess.run([os.path.join(os.environ["WEIR_BUILD_DIR"], "make_manual"), "--proto"],
                          stdout=subprocess.PIPE, check=True).stdout
    with open(os.path.join(PROTO, "weir/v1/limiter.proto"), "rb") as f:
        assert f.read() == made, "run make proto"
    options = v1.DESCRIPTOR.GetOptions()
    assert options.go_package == "weir/v1;weirv1" and options.java_multiple_files, options


if __name__ == "__main__":
    tell(globals())
