"""The demo as somebody sees it who starts the server. Each function below is a story; its name says which."""
import http.client, json, os, pty, re, shutil, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from running import WEIR, Server, await_start, fails, tell, until

LISTEN = ("--resp", "off", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")


def ask(address, method, path, body=None, **fields):
    connection = http.client.HTTPConnection(address, timeout=60)
    headers = {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in fields.items()}}
    connection.request(method, path, body and json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


def plays(address):
    status, text = ask(address, "POST", "/v1/demo", {"scenario": "token_bucket"})
    assert status == 201, (status, text)
    asks = [{"at_ms": 0, "attributes": {"user": user}, "cost": cost} for user, cost in (("alice", 10), ("alice", 1), ("bob", 1))]
    status, text = ask(address, "POST", "/v1/demo/" + json.loads(text)["sandbox"], {"asks": asks})
    assert [a["verdict"] for a in json.loads(text)["answers"]] == ["allow", "deny", "allow"], text


def make_run_starts_the_demo():
    done = subprocess.run(["make", "-n", "run"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=os.environ["WEIR_SOURCE_DIR"])
    assert re.search(r"build/weir serve --demo\b", done.stdout), done.stdout


def without_a_terminal_it_prints_the_link_and_no_secret():
    s = Server("--demo", *LISTEN, rules=None)
    until("the commands", lambda: " ctl " in s.said() and s.said().endswith("\n"))
    address = re.search(r"^  demo    http://(\S+)/#/play$", s.said(), re.M).group(1)
    assert address == s.address("admin") and "secret" not in s.said(), s.said()
    status, page = ask(address, "GET", "/")
    assert status == 200 and b"<html" in page
    plays(address)
    assert ask(address, "POST", "/v1/sandbox", {"rules": "limits: []"})[0] == 401
    assert ask(address, "POST", "/v1/explain", {"attributes": {}})[0] == 401
    s.stop()


def on_a_terminal_it_prints_both_links():
    folder = tempfile.mkdtemp()
    terminal, other = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    process = subprocess.Popen([WEIR, "serve", "--demo", *LISTEN], stdin=subprocess.DEVNULL, stdout=other, stderr=subprocess.DEVNULL,
                               env={**clean, "XDG_RUNTIME_DIR": folder})
    os.close(other)
    os.set_blocking(terminal, False)
    said = bytearray()

    def has_printed():
        try:
            said.extend(os.read(terminal, 4096))
        except BlockingIOError:
            pass
        return b" ctl " in said and said.endswith(b"\n")

    await_start("the commands", process, has_printed)
    process.terminate()
    assert process.wait(60) == 0
    os.close(terminal)
    shutil.rmtree(folder)
    assert re.search(rb"  demo    http://\S+/#/play\r\n  link    http://\S+/#secret=", said), said


def other_servers_print_no_such_link_and_have_no_demo():
    s = Server(*LISTEN, rules=None)
    until("the commands", lambda: " ctl " in s.said())
    assert "/#/play" not in s.said() + s.log(), (s.said(), s.log())
    assert ask(s.address("admin"), "POST", "/v1/demo", {"scenario": "all"})[0] == 404
    s.stop()


def the_variable_turns_it_on_and_a_log_in_json_has_the_link():
    s = Server(*LISTEN, "--log", "json", env={"WEIR_DEMO": "1"})
    started = [json.loads(line) for line in s.log().splitlines() if '"started"' in line][0]
    assert started["demo"] == "http://%s/#/play" % started["admin"], started
    plays(started["admin"])
    s.stop()


def a_demo_without_a_page_is_refused():
    fails(2, "found --demo and no admin listener (--admin or server.admin), expected both", "--demo", *LISTEN[:4], "--admin", "off")
    fails(2, "found --demo and no page (--page or server.page), expected both", "--demo", *LISTEN, "--page", "off")


def where_other_machines_reach_it_the_demo_needs_what_counts_need():
    there = (*LISTEN[:2], "--http", "off", "--admin", "0.0.0.0:0")
    fails(2, "without admin secrets", "--demo", *there)
    secrets = {"WEIR_ADMIN_SECRETS": "a-secret-of-operators"}
    fails(2, "without check secrets", "--demo", *there, env=secrets)
    s = Server("--demo", *there, env={**secrets, "WEIR_CHECK_SECRETS": "a-secret-of-clients"})
    address = s.address("admin").replace("0.0.0.0", "127.0.0.1")
    assert ask(address, "POST", "/v1/demo", {"scenario": "all"})[0] == 401
    assert ask(address, "POST", "/v1/demo", {"scenario": "all"}, Authorization="Bearer a-secret-of-clients")[0] == 201
    s.stop()
    s = Server("--demo", *there, "--insecure", env=secrets)
    address = s.address("admin").replace("0.0.0.0", "127.0.0.1")
    plays(address)
    assert ask(address, "POST", "/v1/demo", {"scenario": "all"}, Origin="http://evil.example")[0] == 403
    assert ask(address, "POST", "/v1/sandbox", {"rules": "limits: []"})[0] == 401
    s.stop()


tell(globals())
