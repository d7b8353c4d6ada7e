"""What the scripts of this folder share: servers of our own on free ports or unix sockets, pinned to a processor, their CPU
time and memory, the load (`weir bench load`) on another processor, and the description of the machine."""

import glob
import json
import os
import platform
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KEYS = 1_000_000

RULES = """\
attributes: {user: ['header:X-User-Id']}
limits:
  - {name: api, when: {path: /search/**}, key: [user], rate: 100k/min, max_keys: 1M}
"""

REDIS = """\
bind 127.0.0.1
port %(port)d
save ""
appendonly no
daemonize no
dir %(dir)s
"""

# `return` alone answers before limit_req is asked (it is of an earlier phase), hence the named location. Measured too is
# `return` without any limit, which is what the first line of many comparisons really measures.
NGINX = """\
worker_processes 1; daemon off; pid %(dir)s/pid; error_log %(dir)s/error.log;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path %(dir)s/a; proxy_temp_path %(dir)s/b; fastcgi_temp_path %(dir)s/c;
  uwsgi_temp_path %(dir)s/d; scgi_temp_path %(dir)s/e;
  limit_req_zone $http_x_user_id zone=keys:256m rate=100000r/m; limit_req_status 429;
  server {
    listen 127.0.0.1:%(port)d%(tls)s;
    location /limited { limit_req zone=keys burst=1000 nodelay; try_files "" @ok; }
    location @ok { return 200 "ok"; }
    location /gif { limit_req zone=keys burst=1000 nodelay; empty_gif; }
    location /unlimited { return 200 "ok"; }
  }
}
"""

ALLOW = ["99", "1000", "86400"]  # each key is in debt for longer than the run: all of them stay live
DENY = ["0", "1", "86400"]  # one a day: the second is denied
GATEWAY = ["X-Original-Method: GET", "X-Original-URI: /search/cats", "X-Forwarded-For: 192.0.2.7", "X-User-Id: {key}"]
CHECK = '{"limit":"api","key":"{key}"}'


def die(text):
    sys.exit(f"bench/{os.path.basename(sys.argv[0])}: {text}")


def free_port():
    """Below those that the kernel gives to connections, which would be in the way a moment later."""
    while True:
        port = random.randrange(12000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


# ---- servers ----


def connect(place):
    """`place`: a port of this machine, or the path of a unix socket."""
    if isinstance(place, int):
        return socket.create_connection(("127.0.0.1", place), 60)
    s = socket.socket(socket.AF_UNIX)
    s.connect(place)
    return s


class Server:
    """A process of ours and its children, pinned to the processor of the place if that has one. `places`: for each protocol
    a port, or the path of a unix socket."""

    def __init__(self, world, name, command, places, env=None):
        self.places = places
        self.address = {wire: f"127.0.0.1:{at}" if isinstance(at, int) else f"unix:{at}" for wire, at in places.items()}
        self.log = os.path.join(world.dir, name + ".log")
        pinned = [] if world.server_cpu is None else ["taskset", "-c", str(world.server_cpu)]
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([*pinned, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, **(env or {})}, start_new_session=True)
        world.servers.append(self)
        for place in places.values():
            self.wait_for(place)

    def wait_for(self, place):
        for _ in range(600):
            if self.process.poll() is not None:
                break
            try:
                connect(place).close()
                return
            except OSError:
                time.sleep(0.05)
        with open(self.log, encoding="utf-8") as log:
            die(f"{self.process.args} does not start: {log.read()}")

    def pids(self):
        found = [self.process.pid]
        for pid in found:
            for path in glob.glob(f"/proc/{pid}/task/*/children"):
                with open(path, encoding="ascii") as f:
                    found += [int(p) for p in f.read().split()]
        return found

    def thread_ns(self):
        """The CPU time of each thread of all its processes."""
        ns = {}
        for pid in self.pids():
            for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
                with open(path, encoding="ascii") as f:
                    ns[path] = int(f.read().split()[0])
        return ns

    def cpu_ns(self):
        return sum(self.thread_ns().values())

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) * 1024

    def memory_bytes(self):
        """Of all its processes; what they share counts once."""
        total = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                total += int(re.search(r"Pss:\s+(\d+)", f.read()).group(1)) * 1024
        return total

    def stop(self):
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGTERM)
                self.process.wait(10)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


class Redis(Server):
    def ask(self, *words):
        place = self.places["resp"]
        where = ["-p", str(place)] if isinstance(place, int) else ["-s", place]
        return subprocess.run(["redis-cli", *where, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=True, timeout=30).stdout

    def info(self, section):
        return dict(line.strip().split(":", 1) for line in self.ask("info", section).splitlines() if ":" in line)

    def cpu_seconds(self):
        """As Redis itself counts."""
        info = self.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


class Place:
    """A folder and the servers that have their files there, all on one processor or on any. Its end stops and removes them."""

    def __init__(self, server_cpu=None):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        self.server_cpu = server_cpu
        self.dir = tempfile.mkdtemp(prefix="weir-bench-")
        self.servers = []
        self.cert = self.key = None  # of the servers that speak TLS

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for server in reversed(self.servers):
            server.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def make_certificate(self):
        self.cert, self.key = os.path.join(self.dir, "tls.crt"), os.path.join(self.dir, "tls.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.key, "-out", self.cert],
                       check=True, capture_output=True)

    def redis(self, name, tls=False, more=""):
        port = free_port()
        text = more + REDIS % {"port": 0 if tls else port, "dir": self.dir}
        if tls:
            text += f"tls-port {port}\ntls-cert-file {self.cert}\ntls-key-file {self.key}\ntls-ca-cert-file {self.cert}\ntls-auth-clients no\n"
        return Redis(self, name, ["redis-server", self.write(name + ".conf", text)], {"resp": port})

    def local_redis(self, name, under=()):
        """A Redis on a unix socket alone; `under`: the command that runs it, such as valgrind."""
        path = os.path.join(self.dir, name)
        text = REDIS % {"port": 0, "dir": self.dir} + f"unixsocket {path}\n"
        return Redis(self, name, [*under, "redis-server", self.write(name + ".conf", text)], {"resp": path})


class World(Place):
    """A place for servers on one processor, and the load on another."""

    def __init__(self, options):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            die("expected two processors, one for the server and one for the load")
        super().__init__(cpus[0])
        self.options = options
        self.keys = getattr(options, "keys", KEYS) // options.ease
        self.load_cpu = cpus[1]
        self.cgroup = None

    def close(self):
        super().close()
        if self.cgroup is not None:
            self.cgroup.remove()

    def weir(self, name, *options, admin=False, rules=RULES):
        ports = {wire: free_port() for wire in ("resp", "http", "grpc", *(["admin"] if admin else []))}
        listen = [word for wire, port in ports.items() for word in (f"--{wire}", f"127.0.0.1:{port}")]
        if not admin:
            listen += ["--admin", "off"]
        config = self.write(name + ".yaml", rules)
        return Server(self, name, [self.options.weir, "serve", "--config", config, "--threads", "1", *listen, *options], ports)

    def nginx(self, name, tls=False, text=NGINX):
        port = free_port()
        ssl = f" ssl; ssl_certificate {self.cert}; ssl_certificate_key {self.key}; ssl_protocols TLSv1.2 TLSv1.3" if tls else ""
        path = self.write(name + ".conf", text % {"port": port, "dir": self.dir, "tls": ssl})
        return Server(self, name, ["nginx", "-c", path, "-e", os.path.join(self.dir, "error.log")], {"http": port})

    def load(self, server, wire, words, body=None, **more):
        """`weir bench load` with these options; its object."""
        command = ["taskset", "-c", str(self.load_cpu), self.options.weir, "bench", "load", "--json", "--spin", f"--{wire}",
                   server.address[wire], "--keys", str(self.keys)]
        if "://" in server.address[wire]:
            command += ["--tls-ca", self.cert]
        for name, value in more.items():
            command += [f"--{name}", str(value)]
        if body is not None:
            command += ["--body", body]
        done = subprocess.run([*command, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            die(done.stderr.strip())
        return json.loads(done.stdout)

    def fill(self, server, wire, words, body=None, **more):
        """Every key once; again if the server was too busy with others to take some of them."""
        for _ in range(20):
            got = self.load(server, wire, words, body, rate="max", order="sequential", requests=self.keys,
                            **{"depth": 16, **more})
            if got["refused"] + got["lost"] == 0:
                return
        die(f"{words}: the server refuses: {got}")


# ---- the report ----


def median(values):
    values = sorted(values)
    return (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2


def first_line(command, pattern):
    if shutil.which(command[0]) is None:
        return "unknown"
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(1) if found else "unknown"


def machine(program):
    """Describes the machine, the compiler of `program` and the installed Redis."""
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        cpu = re.search(r"model name\s*: (.*)", f.read())
    system = platform.uname()
    return {
        "cpu": cpu.group(1) if cpu else "unknown", "cpus": len(os.sched_getaffinity(0)),
        "kernel": f"{system.system} {system.release}", "arch": system.machine,
        "compiler": first_line(["readelf", "-p", ".comment", program], r"GCC: \(.*\) (\S+)").join(("gcc ", "")),
        "redis": first_line(["redis-server", "--version"], r"v=(\S+)"),
    }


def add_options(parser):
    """The options that all scripts have."""
    parser.add_argument("--weir", default=os.path.join(HERE, "..", "build", "weir"), help="the program; else build/weir")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", dest="ease", action="store_const", const=20, default=1, help="a smoke test, not a measurement")


def need(*tools):
    for tool in tools:
        if shutil.which(tool) is None:
            die(f"{tool} is missing (scripts/setup bench)")
