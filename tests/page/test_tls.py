"""The page over TLS: an https link signs in, events stream, a certificate is renewed under the open page."""
# test-labels: nosan
# test-timeout: 300
import atexit, os, shutil, subprocess, sys, tempfile
from browser import SECRET, WEIR, Browser, serve, stories, until

DIR = tempfile.mkdtemp()
atexit.register(shutil.rmtree, DIR, ignore_errors=True)
CERT, KEY = os.path.join(DIR, "weir.crt"), os.path.join(DIR, "weir.key")


def make_certificate():
    """One that signs itself, as in docs/guide/tls.md."""
    for path in (CERT, KEY):
        if os.path.exists(path):
            os.unlink(path)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=weir", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", KEY, "-out", CERT],
                   check=True, stderr=subprocess.DEVNULL)


make_certificate()
RULES = "limits: [{name: api, when: {path: /api/**}, key: [user], rate: 6/min}]\n"
S = serve("--tls-cert", CERT, "--tls-key", KEY, rules=RULES)
B = Browser(trusting=True)
HOME = "https://%s/" % S.address("admin")


def ask(user):
    return subprocess.run([WEIR, "ask", "--http", "https://" + S.address("http"), "--tls-ca", CERT, "path=/api/x", "user=" + user],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def an_https_link_of_ctl_signs_in():
    done = subprocess.run([WEIR, "ctl", "--admin", HOME, "--tls-ca", CERT, "link"], env={"WEIR_ADMIN_SECRET": SECRET},
                          stdout=subprocess.PIPE, check=True, text=True)
    assert done.stdout == HOME + "#secret=" + SECRET + "\n", done.stdout
    B.open(done.stdout.strip())
    B.driver.refresh()  # only the fragment had changed
    B.sees("Sign out", "header")
    B.sees("Rules in effect")
    B.check(HOME)


def the_live_view_shows_events_over_tls():
    B.view("live")
    B.sees("live", "#connection")
    for _ in range(9):
        ask("alice")
    B.sees("alice")
    B.check(HOME)


def the_stream_goes_on_when_the_certificate_is_renewed():
    make_certificate()
    until("it is renewed", lambda: "certificate renewed" in S.log())
    for _ in range(9):
        assert "verdict" in ask("bob")
    B.sees("bob")
    B.sees("live", "#connection")
    B.check(HOME)


stories(sys.modules[__name__])
S.stop()
