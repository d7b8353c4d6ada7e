"""docs/guide/gateways/envoy-ext-authz.md in a real Envoy, with the rule file of the page. Each function is a story."""
import os, re, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gateways"))
import dodges
import dodges_h2
from envoy_real import Envoy, SOURCE, free_port, get
from envoy_world import World
from running import tell


class Page:
    """The configuration and the rules as printed but for ports and for the patience of a busy machine. `login` replaces the
    condition of the login limit."""

    def __init__(self, login="{path: /login}"):
        with open(os.path.join(SOURCE, "docs/guide/gateways/envoy-ext-authz.md")) as f:
            blocks = dict(re.findall(r"^```(yaml.*?)\n(.*?)^```$", f.read(), re.S | re.M))
        self.world = World({}, rules=blocks["yaml"].replace("{path: /login}", login))
        self.origin, self.port = dodges.Origin(), free_port()
        self.weir_port = int(self.world.server.address("http").rsplit(":", 1)[1])
        ports = {"10000": self.port, "8080": self.weir_port, "9000": self.origin.port}
        config = re.sub(r"port_value: (\d+)", lambda m: "port_value: %d" % ports[m[1]], blocks["yaml envoy"])
        self.envoy = Envoy(re.sub(r"(timeout: )0\.\d+s", r"\g<1>30s", config), self.world.folder, [self.port])

    def close(self):
        self.envoy.close()
        if self.world.server.process.poll() is None:
            self.world.close()


def a_denied_client_gets_the_answer_of_weir():
    p = Page()
    replies = [get(p.port, "/login?x=1", x_forwarded_for="203.0.113.%d" % i) for i in range(6)]
    assert [status for status, _, _ in replies] == [200] * 5 + [429], replies
    assert ";r=4;" in replies[0][1]["ratelimit"] and int(replies[5][1]["retry-after"]) > 0, replies
    assert replies[5][1]["content-type"] == "application/problem+json" and b'"login"' in replies[5][2], replies[5]
    p.world.close()
    assert get(p.port, "/login")[0] == 200  # failure_mode_allow
    p.close()


def no_request_gets_past_the_limits_of_the_page():
    p = Page()
    dodges.Attack(dodges.Front(("127.0.0.1", p.port), p.origin)).run()
    dodges_h2.attack(dodges.Attack(dodges_h2.other_clients(("127.0.0.1", p.port), p.origin)))
    p.close()


def no_request_of_many_at_once_gets_past_them():
    p = Page()
    attack = dodges.Attack(dodges.Front(("127.0.0.1", p.port), p.origin))
    attack.many_at_once(p.world.server.process.pid)
    attack.done()
    p.close()


def no_spelling_of_the_host_gets_past_a_limit_for_it():
    p = Page(login="{path: /login, host: shop.example}")
    attack = dodges.Attack(dodges.Front(("127.0.0.1", p.port), p.origin))
    attack.names_of_the_host()
    attack.done()
    p.close()


def names_of_server_hosts_pass_on_the_port_of_weir():
    p = Page()
    for host, status in (("shop.example:%d", 200), ("evil.example:%d", 403), ("127.0.0.1:%d", 200), ("evil.example:1%d", 200)):
        assert get(p.port, "/", Host=host % p.weir_port)[0] == status, host
    p.close()


if __name__ == "__main__":
    tell(globals())
