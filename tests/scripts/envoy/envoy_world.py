"""A weir that serves Envoy's rate limit service, and a short notation for questions and answers.

A question is a domain and descriptors, such as `hits=2; user=ann, path=/a | user=bob *3 @5/DAY`:
    ,        between the entries of a descriptor, each KEY=VALUE
    |        between descriptors
    *N       hits of the descriptor, *0 looks, *-N gives back, *- gives back the hits of the request
    @N/UNIT  a limit that comes with the descriptor
    hits=N;  hits of the request
An answer is the overall code and a status for each descriptor, such as `OVER: OVER 0 of 5/DAY | OK - | OK unlimited`:
    OK 4 of 5/DAY login   the limit that applies is 5 a day, its name is login, and 4 are left
    OK -                  no limit applies
    OK unlimited          no limit, and 4294967295 are left
    INVALID               the call ended with INVALID_ARGUMENT
"""
import atexit, os, re, shutil, sys, tempfile

import grpc, grpc_tools
from grpc_tools import protoc

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from grpc_stories import MADE, PROTO, health_pb2, refused, start_redis  # noqa: F401
from running import PATIENCE, Server

SOURCES = [os.path.join(PROTO, "envoy", name) for name in (
    "service/ratelimit/v3/rls.proto", "extensions/common/ratelimit/v3/ratelimit.proto", "type/v3/ratelimit_unit.proto",
    "config/core/v3/base.proto")]
WELL_KNOWN = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")  # google/protobuf, also without libprotobuf-dev
assert protoc.main(["protoc", "-I" + PROTO, "-I" + WELL_KNOWN, "--python_out=" + MADE, "--grpc_python_out=" + MADE,
                    *SOURCES]) == 0
from envoy.service.ratelimit.v3 import rls_pb2 as rls, rls_pb2_grpc
from envoy.type.v3 import ratelimit_unit_pb2

LISTEN = ("--resp", "off", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--grpc", "127.0.0.1:%d")
METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
CODES = {rls.RateLimitResponse.OK: "OK", rls.RateLimitResponse.OVER_LIMIT: "OVER"}
SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 7 * 86400, "MONTH": 30 * 86400,
           "YEAR": 365 * 86400}
UNITS = rls.RateLimitResponse.RateLimit.Unit


def listen_at(port):
    return LISTEN[:-1] + (LISTEN[-1] % port,)


def write_all(folder, files):
    """Writes the texts of files, by their names."""
    os.makedirs(folder, exist_ok=True)
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)


class World:
    """A `weir serve` with the files of Envoy's rate limit service in a folder of its own, and a client."""

    def __init__(self, files, *options, rules=None, prepare=None, links=None, port=0):
        self.folder = self.scratch()
        self.config = os.path.join(self.folder, "envoy")
        write_all(self.config, files)
        write_all(self.folder, prepare or {})
        for name, target in (links or {}).items():
            os.symlink(target, os.path.join(self.config, name))
        self.options = listen_at(port) + (("--envoy-config", self.config) if files else ()) + options
        self.start(rules)

    @staticmethod
    def scratch():
        folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, folder, True)
        return folder

    def start(self, rules=None):
        self.server = Server(*self.options, rules=rules, folder=self.folder)
        self.channel = grpc.insecure_channel(self.server.address("grpc"),
                                             options=[("grpc.use_local_subchannel_pool", 1)])
        self.service = rls_pb2_grpc.RateLimitServiceStub(self.channel)

    def restart(self):
        self.close()
        self.start()

    def call(self, domain, question, **more):
        return self.service.ShouldRateLimit(request_of(domain, question), timeout=PATIENCE, **more)

    def ask(self, domain, question):
        """Returns the answer in the notation above."""
        try:
            return shown(self.call(domain, question))
        except grpc.RpcError as e:
            if e.code() == grpc.StatusCode.INVALID_ARGUMENT:
                return "INVALID"
            raise AssertionError("asked %s: %s; found the status %s: %s" % (domain, question, e.code(), e.details()))

    def expect(self, domain, *steps):
        """Asks what each step has before its arrow, and expects what it has after it."""
        for step in steps:
            question, wanted = step.split(" -> ")
            got = self.ask(domain, question)
            assert got == wanted, "asked %s: %s\n   found    %s\n   expected %s" % (domain, question, got, wanted)

    def raw(self, message):
        return self.channel.unary_unary(METHOD)(message, timeout=PATIENCE)

    def health(self, service):
        return self.channel.unary_unary("/grpc.health.v1.Health/Check", health_pb2.HealthCheckRequest.SerializeToString,
                                        health_pb2.HealthCheckResponse.FromString)(
            health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE).status

    def close(self):
        self.channel.close()
        return self.server.stop()


def request_of(domain, question):
    hits, descriptors = re.fullmatch(r"(?:hits=(\d+); )?(.*)", question, re.S).groups()
    request = rls.RateLimitRequest(domain=domain, hits_addend=int(hits or 0))
    for text in descriptors.split(" | ") if descriptors else []:
        entries, back, own, limit, unit = re.fullmatch(
            r"(.*?)(?: \*(-?)(\d*))?(?: @(\d+)/([A-Z]+|\d+))?", text, re.S).groups()
        d = request.descriptors.add(is_negative_hits=back == "-")
        for entry in entries.split(", ") if entries else []:
            key, _, value = entry.partition("=")
            d.entries.add(key=key, value=value)
        if own:
            d.hits_addend.value = int(own)
        if limit is not None:
            d.limit.requests_per_unit = int(limit)
            d.limit.unit = int(unit) if unit.isdigit() else ratelimit_unit_pb2.RateLimitUnit.Value(unit)
    return request


def shown(response):
    return "%s: %s" % (CODES[response.overall_code], " | ".join(map(status_shown, response.statuses)))


def status_shown(s):
    code = CODES[s.code]
    if not s.HasField("current_limit"):
        assert not s.HasField("duration_until_reset"), s
        return code + (" unlimited" if s.limit_remaining == 2 ** 32 - 1 else " -" if s.limit_remaining == 0 else " ?")
    limit, wait = s.current_limit, s.duration_until_reset
    unit = UNITS.Name(limit.unit)
    assert wait.nanos == 0 and 1 <= wait.seconds <= SECONDS.get(unit, wait.seconds), s
    return ("%s %d of %d/%s %s" % (code, s.limit_remaining, limit.requests_per_unit, unit, limit.name)).rstrip()
