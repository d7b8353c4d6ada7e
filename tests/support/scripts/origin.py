"""An application behind a proxy: tells back what it was asked, one line of a log for each request."""
import http.server
import sys

host, port, log = sys.argv[1], int(sys.argv[2]), open(sys.argv[3], "a", buffering=1)


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # head and body at once

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        text = b"origin %s %s %s\n" % (self.command.encode(), self.path.encode(), body)
        log.write("%s %s\n" % (self.command, self.path))
        self.send_response(403 if self.path == "/forbidden" else 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer((host, port), Origin).serve_forever()
