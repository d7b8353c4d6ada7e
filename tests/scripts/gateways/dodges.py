"""What a client writes to get past a limit, and whether it does. Every recipe of docs/guide is attacked with this list:
the gateway and weir run as the page prints them, an application of this module is behind them, and for each dodge the check
is the same: what reaches the application as the limited endpoint has been counted by the limit.

    python3 dodges.py FRONT ORIGIN [logins | strangers | hosts | many PID]

attacks the gateway at FRONT (HOST:PORT); the application listens at ORIGIN. `logins`: only its limit for /login. `strangers`:
the gateway knows no users. `hosts`: the limit is one for /login of shop.example alone, and only the host is spelled anew.
`many`: many requests at once, while the weir with this process ID stands still.

The rule files of the pages have the same three limits: 5 a minute for each address at /login, for each user, and for each
address at all paths. A dodge for /login is sent more often than the quota, then the plain request: together no more may
arrive than the quota. `{n}` is another number in each request.
"""
import itertools, os, re, resource, signal, socket, socketserver, sys, threading, time, urllib.parse

PATIENCE = 60
MANY = 2000  # more than a gateway asks at once by default, or weir takes from one client
FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))  # also for what is started from here
FREE = b"/free"


class Quota:
    """A bucket: `units` at once, and one more each `refill` seconds. With `window`, units for each window instead."""

    def __init__(self, units, refill=None, window=None):
        self.units, self.refill, self.window = units, refill, window

    def most(self, began):
        """Returns how many requests may have been allowed since then: this machine may be slow."""
        now = time.time()
        if self.window:
            return self.units * (int(now // self.window) - int(began // self.window) + 1)
        return self.units + int((now - began) / self.refill) + 1 if now - began >= self.refill else self.units


LOGIN, USER, ADDRESS = Quota(5, 12), Quota(20, 3.6), Quota(60, 1.2)  # as in the pages


# ---- the application ----

def endpoint(target):
    """Returns the path that the most lenient application makes of the target of a request: it cuts the query, decodes once,
    cuts parameters, resolves dots and double slashes."""
    target = re.sub(rb"^https?://[^/?#]*", b"", target)
    path = urllib.parse.unquote_to_bytes(re.split(rb"[?#]", target)[0].replace(b"%3B", b"\0").replace(b"%3b", b"\0"))
    parts = []
    for part in (p.split(b";")[0].replace(b"\0", b";") for p in path.split(b"/")):
        if part == b"..":
            parts = parts[:-1]
        elif part not in (b"", b"."):
            parts.append(part)
    return b"/" + b"/".join(parts)


class Origin:
    """An application that notes what arrives: a list of targets with their X-User-Id."""

    def __init__(self, host="127.0.0.1", port=0):
        arrived = self.arrived = []

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                while self.one():
                    pass

            def one(self):
                line = self.rfile.readline(1 << 20)
                fields = {}
                while (field := self.rfile.readline(1 << 20)) not in (b"\r\n", b""):
                    name, _, value = field.partition(b":")
                    fields.setdefault(name.strip().lower(), []).append(value.strip())
                if line.count(b" ") < 2:
                    return False
                if b"transfer-encoding" in fields:
                    while (size := int(self.rfile.readline().split(b";")[0], 16)) > 0:
                        self.rfile.read(size + 2)
                    self.rfile.readline()
                else:
                    self.rfile.read(int(fields.get(b"content-length", [b"0"])[0]))
                method, target = line.rsplit(b" ", 1)[0].split(b" ", 1)
                arrived.append((target, fields.get(b"x-user-id", [])))
                body = b"" if method == b"HEAD" else b"application\n"
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n" + body)
                return b"close" not in fields.get(b"connection", [b""])[0].lower()

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass  # a gateway that closes its connection

        self.server = Server((host, port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


# ---- the client ----

class Front:
    """A gateway, and clients with addresses of their own."""

    def __init__(self, address, origin, host=b"shop.example"):
        self.address, self.origin, self.host, self.clients = address, origin, host, itertools.count(1)
        self.serial = itertools.count(1)

    def client(self):
        """Returns an address that has asked nothing yet."""
        n = next(self.clients)
        return "127.%d.%d.%d" % (101 + n // 62500, 1 + n // 250 % 250, 1 + n % 250)

    def send(self, client, request, whole):
        """Sends bytes; returns the status of the final reply, 0 if the connection was closed without one. `whole` waits until
        the gateway closes the connection."""
        with socket.create_connection(self.address, timeout=PATIENCE, source_address=(client, 0)) as s:
            try:
                s.sendall(request)
            except OSError:
                pass  # refused before it was read
            status = self.status(s)
            while whole and receive(s):
                pass
            return status

    @staticmethod
    def status(s):
        got = b""
        while True:
            head, end, rest = got.partition(b"\r\n\r\n")
            code = int(head.split(b" ", 2)[1]) if end and head.startswith(b"HTTP/") else 0  # HTTP/0.9 has no head
            if 100 <= code < 200:
                got = rest
                continue
            if end:
                length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
                if length and len(rest) >= int(length[1]) or code == 204:
                    return code
            more = receive(s)
            if not more:
                return code
            got += more

    def ask(self, client, dodge):
        """Sends a dodge; returns the status."""
        n = b"%d" % next(self.serial)
        return self.send(client, dodge.request(self.host).replace(b"{n}", n), dodge.whole)


def receive(s):
    try:
        return s.recv(65536)
    except (ConnectionResetError, BrokenPipeError):
        return b""


class Dodge:
    """A request. Fields are lines; `host` and `version` may be replaced. After a `whole` one the gateway closes."""

    def __init__(self, name, target=b"/login", *fields, method=b"GET", host=None, version=b"HTTP/1.1", body=b"",
                 connection=b"close", whole=False):
        self.name, self.target, self.fields, self.method, self.body = name, target, list(fields), method, body
        self.host, self.version, self.connection, self.whole = host, version, connection, whole

    def request(self, host):
        hosts = [b"Host: " + host] if self.host is None else self.host
        lines = [b" ".join((self.method, self.target, self.version)), *hosts, *self.fields]
        if self.connection:
            lines.append(b"Connection: " + self.connection)
        return b"\r\n".join(lines) + b"\r\n\r\n" + self.body


def paths():
    """Yields the spellings of /login."""
    spelled = {
        "plain": b"/login", "query": b"/login?x=1", "empty query": b"/login?", "query with slashes": b"/login?/../free",
        "query with another path": b"/login?path=/free", "two questions": b"/login??x=1", "new query": b"/login?x={n}",
        "double slash": b"//login", "three slashes": b"///login", "slash behind": b"/login/", "slashes behind": b"/login//",
        "double slash and query": b"//login?x={n}", "case": b"/LOGIN", "case of one": b"/Login",
        "dot": b"/./login", "dot behind": b"/login/.", "dots": b"/free/../login", "dots above": b"/../login",
        "dots behind": b"/login/x/..", "encoded dots": b"/free/%2e%2e/login", "encoded dot": b"/%2E/login",
        "half encoded dots": b"/free/.%2e/login", "new dots": b"/{n}/../login",
        "encoded letter": b"/%6Cogin", "encoded letter in lower case": b"/%6cogin", "encoded letters": b"/%6c%6F%67%69%6e",
        "encoded slash before": b"/%2Flogin", "encoded slash in lower case": b"/%2flogin", "encoded slash behind": b"/login%2F",
        "encoded slash alone": b"%2Flogin", "encoded slash and dots": b"/free%2F..%2Flogin",
        "dots beside an encoded slash": b"/a%2Fb/../../login", "parameter": b"/login;x=1", "new parameter": b"/login;x={n}",
        "parameter before": b"/;x/login", "dots with a parameter": b"/free/..;/login", "encoded parameter": b"/login%3Bx",
        "fragment": b"/login#free", "encoded question": b"/login%3Fx", "encoded twice": b"/%256Cogin",
        "encoded slash twice": b"/%252Flogin", "backslash": b"/\\login", "backslash for dots": b"/free\\..\\login",
        "encoded backslash": b"/%5Clogin", "NUL": b"/login%00", "NUL in the query": b"/login?x=%00",
        "NUL before": b"/%00/../login",
        "not UTF-8": b"/\xff/../login", "not UTF-8, encoded": b"/%ff/../login", "not UTF-8 in the query": b"/login?x=\xff{n}",
        "not UTF-8, encoded in the query": b"/login?x=%ff", "not UTF-8 parameter": b"/login;\xff",
        "overlong slash": b"/%c0%aflogin", "line end": b"/login%0d%0a", "tab": b"/login\t", "no slash": b"login",
        "percent alone": b"/login?%", "percent alone in the path": b"/%/../login", "absolute": b"http://shop.example/login",
        "absolute without a path": b"http://shop.example?/login", "absolute, another host": b"http://free.example/login",
        "absolute https": b"https://shop.example/login", "other scheme": b"ftp://shop.example/login",
        "absolute, scheme in upper case": b"HTTP://shop.example/login", "absolute without a host": b"http:///login",
        "absolute, double slash": b"http://shop.example//login", "absolute with a user": b"http://u@shop.example/login",
        "absolute, question for a host": b"http://?/login", "no authority": b"http:/login", "rootless": b"http:login",
        "rootless with an authority": b"a:free://shop.example/login", "scheme in the query": b"/login?://free.example/free",
        "scheme behind a query": b"login?://free.example/free", "rootless with a URL in the query": b"http:login?u=http://a/free",
        "query alone": b"?/login", "asterisk": b"*/login",
        "host as the path": b"//shop.example/../login", "two hosts": b"http://free.example/free://shop.example/../../login",
    }
    for name, target in spelled.items():
        yield Dodge(name, target)
    for size in (2000, 4000, 5000, 8000, 12000, *range(14900, 15500, 50), 16000, 16300, 17000, 30000, 70000):
        yield Dodge("long query of %d" % size, b"/login?x=" + b"a" * size)
        yield Dodge("long path of %d" % size, b"/" + b"a" * size + b"/../login")
        yield Dodge("long parameter of %d" % size, b"/login;" + b"a" * size)
    yield Dodge("many dots", b"/a/.." * 700 + b"/login")
    yield Dodge("many slashes", b"/" * 4000 + b"login")
    yield Dodge("many parameters", b"/login?" + b"&".join(b"a%d=b" % i for i in range(300)))


def forged():
    """Yields /login with fields that gateways write, that clients write, and that are missing."""
    for name in (b"X-Forwarded-For", b"X-Real-IP", b"X-Client-IP", b"CF-Connecting-IP", b"True-Client-IP", b"X-Forwarded",
                 b"X_Forwarded_For", b"X-Original-Forwarded-For", b"X-Envoy-External-Address"):
        for value in (b"192.0.2.{n}", b"unknown", b"", b"\xff", b"127.0.0.1", b"192.0.2.{n}, 127.0.0.1", b"::{n}",
                      b"192.0.2.1, 192.0.2.{n}, unknown", b"a" * 5000):
            yield Dodge("forged %s: %s" % (name.decode(), ascii(value[:40])), b"/login", name + b": " + value)
        yield Dodge("%s twice" % name.decode(), b"/login", name + b": 192.0.2.{n}", name + b": 192.0.2.1{n}")
        yield Dodge("%s by Connection" % name.decode(), b"/login", connection=b"close, " + name)
    for value in (b"for=192.0.2.{n}", b'for="[::{n}]"', b"for=unknown", b'for="', b"by=x;for=192.0.2.{n};host=free.example"):
        yield Dodge("Forwarded: " + value.decode(), b"/login", b"Forwarded: " + value)
    for name in (b"X-Original-URI", b"X-Original-URL", b"X-Forwarded-Uri", b"X-Forwarded-Url", b"X-Rewrite-URL",
                 b"X-Envoy-Original-Path", b"X-Forwarded-Prefix", b"X-Original-Path"):
        for value in (FREE, b"http://shop.example" + FREE, b"", b"\xff", b"%00", b"/x?{n}"):
            yield Dodge("forged %s: %s" % (name.decode(), ascii(value)), b"/login", name + b": " + value)
        yield Dodge("%s by Connection" % name.decode(), b"/login", connection=b"close, " + name)
    for name in (b"X-Forwarded-Method", b"X-Original-Method", b"X-HTTP-Method-Override"):
        for value in (b"OPTIONS", b"GET", b"x{n}", b""):
            yield Dodge("forged %s: %s" % (name.decode(), value.decode()), b"/login", name + b": " + value)
    for value in (b"free.example", b"{n}.example", b"", b"[::1", b"\xff", b"shop.example:8080", b"a b"):
        yield Dodge("forged X-Forwarded-Host: " + ascii(value), b"/login", b"X-Forwarded-Host: " + value)
        yield Dodge("Host: " + ascii(value), b"/login", host=[b"Host: " + value])
    for value in (b"?", b"?{n}", b"shop.example?", b"shop.example?{n}", b"shop.example:80?", b"shop.example#", b"#", b"\\", b"@",
                  b"shop.example\\free", b"free@shop.example", b"shop.example/free?", b"shop.example%2ffree%3f", b"shop.example,x"):
        for target in (b"/login", b"http://shop.example/login"):
            yield Dodge("Host: %s with %s" % (ascii(value), target.decode()), target, host=[b"Host: " + value])
        yield Dodge("HTTP/1.0, Host: " + ascii(value), b"/login", version=b"HTTP/1.0", host=[b"Host: " + value])
    yield Dodge("X-Forwarded-Proto", b"/login", b"X-Forwarded-Proto: x{n}", b"X-Forwarded-Port: x", b"X-Forwarded-Server: x")
    yield Dodge("Host twice", b"/login", host=[b"Host: shop.example", b"Host: free.example"])
    yield Dodge("Host missing", b"/login", host=[])
    yield Dodge("HTTP/1.0", b"/login", version=b"HTTP/1.0", host=[])
    for size in (7600, 8000, 8160):
        yield Dodge("path and Host of %d" % size, b"/login?" + b"a" * size, host=[b"Host: " + b"a" * size])
    yield Dodge("every field by Connection", b"/login", connection=b"close, X-Forwarded-For, X-Real-IP, X-User-Id, "
                b"X-Forwarded-Uri, X-Forwarded-Method, X-Forwarded-Host, X-Original-URI, X-Original-Method, Host")
    yield Dodge("Origin of a page", b"/login", b"Origin: https://evil.example", b"Sec-Fetch-Site: cross-site")
    yield Dodge("Origin null", b"/login", b"Origin: null")
    yield Dodge("Weir-Secret", b"/login", b"Weir-Secret: {n}", b"Authorization: Bearer {n}")
    yield Dodge("user not UTF-8", b"/login", b"X-User-Id: \xff{n}", b"X-Api-Key: \xff{n}")
    yield Dodge("user is long", b"/login", b"X-User-Id: " + b"u" * 6000, b"X-Api-Key: " + b"k" * 6000)
    yield Dodge("key twice", b"/login", b"X-Api-Key: key-of-nobody{n}", b"X-Api-Key: {n}")
    for count in (50, 70, 99, 120, 300):
        yield Dodge("%d fields" % count, b"/login", *(b"A%d: b" % i for i in range(count)))
    for size in (6000, 15000, 17000, 70000):
        cookies = range(-(-size // 7000))
        yield Dodge("cookie of %d" % size, b"/login", *(b"Cookie: c%d=" % i + b"a" * min(size, 7000) for i in cookies))


def methods():
    """Yields /login with other methods and bodies."""
    for method in (b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"PROPFIND", b"get", b"FOO", b"TRACE"):
        yield Dodge("method " + method.decode(), method=method)
    yield Dodge("body", b"/login", b"Content-Length: 7", method=b"POST", body=b"a=b&c=d")
    yield Dodge("long body", b"/login", b"Content-Length: 100000", method=b"POST", body=b"a" * 100000)
    yield Dodge("body in chunks", b"/login", b"Transfer-Encoding: chunked", method=b"POST", body=b"3\r\na=b\r\n0\r\n\r\n")
    yield Dodge("body of a GET", b"/login", b"Content-Length: 3", body=b"a=b")
    yield Dodge("two lengths", b"/login", b"Content-Length: 3", b"Content-Length: 4", method=b"POST", body=b"a=b")
    yield Dodge("length and chunks", b"/login", b"Content-Length: 3", b"Transfer-Encoding: chunked", method=b"POST",
                body=b"3\r\na=b\r\n0\r\n\r\n")
    yield Dodge("coding of Transfer-Encoding", b"/login", b"Transfer-Encoding: xchunked", method=b"POST", body=b"0\r\n\r\n")
    yield Dodge("Expect", b"/login", b"Expect: 100-continue", b"Content-Length: 3", method=b"POST", body=b"a=b")
    yield Dodge("Upgrade", b"/login", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13",
                b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", connection=b"Upgrade, close")
    yield Dodge("Upgrade to HTTP/2", b"/login", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__",
                connection=b"Upgrade, HTTP2-Settings")
    more = b"GET /login HTTP/1.1\r\nHost: shop.example\r\n"
    yield Dodge("several in one write", connection=None, whole=True,
                body=(more + b"\r\n") * 3 + more + b"Connection: close\r\n\r\n")
    for_weir = b"GET /v1/auth/free HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.77\r\n\r\n"
    for method in (b"POST", b"GET", b"HEAD", b"OPTIONS"):
        yield Dodge("request in the body of a " + method.decode(), b"/login", b"Content-Length: 200", method=method,
                    body=for_weir.ljust(200, b"\n"))
        yield Dodge("request in a chunk of a " + method.decode(), b"/login", b"Transfer-Encoding: chunked", method=method,
                    body=b"c8\r\n" + for_weir.ljust(200, b"\n") + b"\r\n0\r\n\r\n")
    yield Dodge("preflight", b"/login", b"Origin: https://a.example", b"Access-Control-Request-Method: POST", method=b"OPTIONS")
    for version in (b"", b"HTTP/0.9", b"HTTP/1.2", b"HTTP/1.1 x", b"HTTP/1.1 ", b"http/1.1", b"HTTP/01.1", b"HTTP/2.0"):
        yield Dodge("version " + repr(version), version=version, connection=b"close")
        yield Dodge("nothing but the version " + repr(version), version=version, connection=None, host=[])
    for method in (b"GET ", b"GET\t", b"\r\nGET", b"\n\nGET", b" GET", b"GET /free"):
        yield Dodge("request line that begins with " + repr(method), method=method)
    yield Dodge("line ends without CR", b"/login HTTP/1.1\nHost: shop.example\nX-Forwarded-For: 192.0.2.{n}\n\nGET /login")
    yield Dodge("folded field", b"/login", b"X-A: b\r\n c: d")
    yield Dodge("space before the colon", b"/login", b"X-Forwarded-For : 192.0.2.{n}")


def hosts():
    """Yields /login of shop.example with other spellings of the host, all of which servers take for it."""
    for value in (b"shop.example", b"SHOP.Example", b"shop.example.", b"shop.example:80", b"shop.example:", b"shop.example:{n}",
                  b"shop.example:x", b"shop.example:80:x", b"shop.example.:x", b"shop.example:80?", b"shop.example:\xff"):
        yield Dodge("plain" if value == b"shop.example" else "Host: " + ascii(value), host=[b"Host: " + value])
        yield Dodge("Host in the target: " + ascii(value), b"http://" + value + b"/login", host=[b"Host: " + value])
    for value in ([b"Host: free.example"], [b"Host: {n}.example"], [b"Host:"], [], [b"Host: free.example?"]):
        yield Dodge("absolute with %s" % value, b"http://shop.example/login", host=value)
        yield Dodge("absolute in HTTP/1.0 with %s" % value, b"http://shop.example/login", host=value, version=b"HTTP/1.0")
    for name in (b"X-Forwarded-Host", b"X-Original-Host", b"X-Host", b"X-Original-URL: http://free.example/login\r\nX-A"):
        yield Dodge("forged " + name.decode(), b"/login", name + b": free.example")
    yield Dodge("two hosts", host=[b"Host: shop.example", b"Host: free.example"])
    yield Dodge("two hosts in one field", host=[b"Host: shop.example, free.example"])
    yield Dodge("Host by Connection", connection=b"close, Host, X-Forwarded-Host")


# ---- the checks ----

class Attack:
    """The checks, and what they have found."""

    def __init__(self, front, login=LOGIN, user=USER, address=ADDRESS, ignore_case=False):
        self.front, self.login, self.user, self.address, self.ignore_case = front, login, user, address, ignore_case
        self.failures, self.tried = [], 0

    def reached(self, wanted, client, dodge, times):
        """Sends a dodge some times, and returns how often it arrived as that endpoint (None: as any), and the statuses."""
        arrived = self.front.origin.arrived
        before = len(arrived)
        statuses = [self.front.ask(client, dodge) for _ in range(times)]
        found = [endpoint(target) for target, _ in arrived[before:]]
        if self.ignore_case:
            found = [path.lower() for path in found]
        return sum(wanted in (None, path) for path in found), statuses

    def note(self, name, failed, *said):
        self.tried += 1
        if failed:
            self.failures.append("%s: %s" % (name, " ".join(map(str, said))))

    def past_the_login_limit(self, dodge, plain=Dodge("plain")):
        client, began = self.front.client(), time.time()
        times = self.login.units + 1
        first, statuses = self.reached(b"/login", client, dodge, times)
        then, after = self.reached(b"/login", client, plain, times)
        self.note(dodge.name, first + then > self.login.most(began), first, "+", then, "of", self.login.units, "reached /login,",
                  statuses, after)
        self.note(dodge.name, dodge.name == "plain" and first < self.login.units, "only", first, "reached /login", statuses)

    def users_behind_one_address(self):
        arrived = self.front.origin.arrived
        stranger = self.front.client()
        forgeries = [Dodge("forged " + str(lines), b"/search", *lines) for lines in (
            [b"X-User-Id: alice"], [b"x-user-id: alice"], [b"X-USER-ID: alice"], [b"X-User-Id: {n}", b"X-User-Id: alice"],
            [b"X-User-Id: alice", b"X-Api-Key: made-up"], [b"X_User_Id: alice"], [b"X-User-Id:alice", b"X-User-Id:"],
            [b"X-User-Id: alice", b"X-Api-Key: "], [b"X-User-Id: bob", b"X-Api-Key:"], [b"X-User-Id : alice"])]
        forgeries.append(Dodge("forged, by Connection", b"/search", b"X-User-Id: alice", connection=b"close, X-User-Id"))
        for forgery in forgeries:
            before = len(arrived)
            self.reached(b"/search", stranger, forgery, 2)
            told = [value for _, values in arrived[before:] for value in values if value]
            self.note(forgery.name, told, "the application was told the user", told)
        began, office = time.time(), self.front.client()
        first = len(arrived)
        for name in (b"alice", b"bob"):  # each has the whole quota, from one address, whatever strangers wrote
            key = Dodge("key", b"/search?x={n}", b"X-Api-Key: key-of-" + name, b"X-User-Id: {n}")
            before = len(arrived)
            n, statuses = self.reached(b"/search", office, key, self.user.units + 2)
            self.note("two users behind one address", not self.user.units <= n <= self.user.most(began),
                      name, n, "of", self.user.units, statuses)
            told = {v for _, values in arrived[before:] for v in values}
            self.note("two users behind one address", told != {name}, "the application was told", told)
        for dodge in self.evasions(b"key-of-alice"):
            _, statuses = self.reached(None, self.front.client(), dodge, 2)
            n = sum(b"alice" in values for _, values in arrived[first:])
            self.note("alice again: " + dodge.name, n > self.user.most(began), n, "of", self.user.units, statuses)

    @staticmethod
    def evasions(secret):
        """Yields requests of a user whose quota is used up. What arrives without the name of the user is not the user's."""
        key = b"X-Api-Key: " + secret
        for lines in ([], [b"X-User-Id: {n}"], [b"X-User-Id: "], [b"X-User-Id: \xff"], [b"X-User-Id: {n}", b"X-User-Id: {n}0"],
                      [b"X-User-Id: " + b"a" * 5000], [b"X-Forwarded-For: 192.0.2.{n}"], [b"x-api-key: " + secret],
                      [b"X-Api-Key: key-of-nobody"]):
            yield Dodge(str(lines), b"/search", key, *lines)
        for name in (b"X-User-Id", b"X-Api-Key", b"X-User-Id, X-Api-Key, X-Forwarded-For"):
            yield Dodge("by Connection: " + name.decode(), b"/search", key, connection=b"close, " + name)
        for spelled in (b"X-API-KEY: ", b"x-api-key:"):
            yield Dodge(spelled.decode(), b"/search", spelled + secret)
        for size in (4000, 7000, 15000, 17000, 60000):
            yield Dodge("long query of %d" % size, b"/search?" + b"a" * size, key)
        for count in (60, 64, 100):
            yield Dodge("%d fields" % count, b"/search", key, *(b"A%d: b" % i for i in range(count)))
        for target in (b"/%00", b"/a%2fb/../c", b"/..;/search", b"/search?\xff", b"/" + b"a" * 5000):
            yield Dodge(str(target[:20]), target, key)

    def invented_users_share_an_address(self):
        client, began = self.front.client(), time.time()
        n, statuses = self.reached(None, client, Dodge("", b"/p{n}", b"X-User-Id: u{n}", b"X-Forwarded-For: 192.0.2.{n}"),
                                   self.address.units + 5)
        self.note("invented users", n > self.address.most(began) or n < self.address.units, n, "of", self.address.units, statuses)

    def names_that_strangers_write_are_no_users(self):
        forgery = Dodge("stranger as alice", b"/search?x={n}", b"X-User-Id: alice")
        n, statuses = self.reached(b"/search", self.front.client(), forgery, self.user.units + 2)
        self.note(forgery.name, n < self.user.units + 2, "the quota of alice was spent:", n, statuses)

    def many_at_once(self, pid):
        """What a gateway cannot ask about, because it asks about so many others, must not pass."""
        if FILES < 4 * MANY:
            return print("many at once: left out, %d open files are too few" % FILES)
        client, began, plain = self.front.client(), time.time(), Dodge("many at once")
        before = len(self.front.origin.arrived)
        os.kill(pid, signal.SIGSTOP)
        try:
            sockets = [socket.create_connection(self.front.address, PATIENCE, (client, 0)) for _ in range(MANY)]
            for s in sockets:
                s.sendall(plain.request(self.front.host))
        finally:
            os.kill(pid, signal.SIGCONT)
        statuses = [self.front.status(s) for s in sockets]
        for s in sockets:
            s.close()
        n = len(self.front.origin.arrived) - before
        self.note(plain.name, n > self.login.most(began), n, "of", self.login.units, "arrived,",
                  {status: statuses.count(status) for status in statuses})

    def logins(self):
        for dodge in itertools.chain(paths(), forged(), methods()):
            self.past_the_login_limit(dodge)

    def names_of_the_host(self):
        for dodge in hosts():
            self.past_the_login_limit(dodge)

    def done(self):
        print("%d checks of dodges, %d failed" % (self.tried, len(self.failures)), flush=True)
        assert not self.failures, "\n" + "\n".join(self.failures)

    def run(self):
        self.logins()
        self.users_behind_one_address()
        self.invented_users_share_an_address()
        self.done()


def address_of(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


if __name__ == "__main__":
    ATTACK = Attack(Front(address_of(sys.argv[1]), Origin(*address_of(sys.argv[2]))))
    if sys.argv[3:] == ["hosts"]:
        ATTACK.front.clients = itertools.count(100000)  # other clients than those of the whole attack
        ATTACK.names_of_the_host()
        ATTACK.done()
    elif sys.argv[3:4] == ["many"]:
        ATTACK.front.clients = itertools.count(110000)
        ATTACK.many_at_once(int(sys.argv[4]))
        ATTACK.done()
    elif sys.argv[3:]:
        ATTACK.logins()
        if sys.argv[3] == "strangers":
            ATTACK.names_that_strangers_write_are_no_users()
            ATTACK.invented_users_share_an_address()
        ATTACK.done()
    else:
        ATTACK.run()
