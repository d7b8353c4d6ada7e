"""What packaging/Dockerfile, packaging/compose.yaml and packaging/weir.yaml say, and what comes of it. The second half runs in
a network of its own (unshare): "outside" is the machine, and "inside" a container with the address 10.77.0.2."""
import atexit, json, os, re, shlex, shutil, signal, socket, subprocess, sys, tempfile, urllib.error, urllib.request

import yaml

SOURCE = os.environ["WEIR_SOURCE_DIR"]
sys.path.insert(0, os.path.join(SOURCE, "tests", "support", "scripts"))
from starting import await_start  # noqa: E402

WEIR = os.path.join(os.environ["WEIR_BUILD_DIR"], "weir")
PACKAGING = os.path.join(SOURCE, "packaging")
INSTALLED = "/run/image/weir"  # in the container: its user may not reach the folder of the build
OUTSIDE, INSIDE = "10.77.0.1", "10.77.0.2"
SECRET = "a-secret-of-the-operators-0123456789"


def read(name):
    with open(os.path.join(PACKAGING, name), encoding="utf-8") as file:
        return file.read()


class Image:
    """What the container file says of the image."""

    def __init__(self):
        lines = [line for line in read("Dockerfile").split("\nFROM ")[-1].replace("\\\n", " ").splitlines()]
        said = {line.split(" ", 1)[0]: line.split(" ", 1)[1] for line in lines if " " in line}
        self.environment = dict(word.split("=", 1) for word in shlex.split(said["ENV"]))
        self.exposed = {int(port) for port in said["EXPOSE"].split()}
        self.entrypoint, self.command = json.loads(said["ENTRYPOINT"]), json.loads(said["CMD"])
        self.health = json.loads(re.search(r"CMD (\[.*\])", said["HEALTHCHECK"]).group(1))
        self.uid = int(re.search(r"useradd .*--uid (\d+)", said["RUN"]).group(1))


def variables():
    """The variables that serve knows."""
    said = subprocess.run([WEIR, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    return {"WEIR_" + option.upper().replace("-", "_") for option in re.findall(r"^  --([a-z-]+)", said, re.M)}


def the_compose_file_names_what_there_is():
    compose, image = yaml.safe_load(read("compose.yaml")), Image()
    weir = compose["services"]["weir"]
    folder = os.path.normpath(os.path.join(PACKAGING, weir["build"]["context"]))
    assert os.path.isfile(os.path.join(folder, weir["build"]["dockerfile"]))
    assert set(weir["environment"]) <= variables() and set(image.environment) <= variables()
    for word in [word for word in weir["command"] if word.startswith("--")]:
        assert "WEIR_" + word[2:].upper().replace("-", "_") in variables(), word
    admin = int(weir["environment"]["WEIR_ADMIN"].rsplit(":", 1)[1])
    for port in weir["ports"]:  # nothing is published to other machines
        address, outside, inside = port.split(":")
        assert address == "127.0.0.1" and outside == inside and int(inside) in image.exposed | {admin}, port
    for volume in weir["volumes"]:
        name = volume.split(":")[0]
        assert name in compose["volumes"] or os.path.isfile(os.path.join(PACKAGING, name)), volume
    assert weir["secrets"] == list(compose["secrets"])
    for name, how in weir["depends_on"].items():
        assert how == {"condition": "service_healthy"} and "healthcheck" in compose["services"][name]
    with open(os.path.join(SOURCE, ".dockerignore"), encoding="utf-8") as file:  # no secret comes into an image
        assert "/packaging/" + os.path.basename(compose["secrets"]["weir-admin"]["file"]) in file.read().split()


def the_guide_and_the_container_file_have_the_same_ports_and_user():
    with open(os.path.join(SOURCE, "docs", "guide", "container.md"), encoding="utf-8") as file:
        guide = file.read()
    image = Image()
    ports = {int(port) for port in re.findall(r"^\| (\d+) \|", guide, re.M)}
    assert ports == image.exposed | {int(image.environment["WEIR_ADMIN"].rsplit(":", 1)[1])}, ports
    assert "chown %d packaging/admin.secret" % image.uid in guide
    assert " ".join(image.command) in guide, "the guide starts the server otherwise than the image"


def the_rules_of_the_image_deny_nothing_and_say_so():
    text = read("weir.yaml")
    first, rules = text.splitlines()[0], yaml.safe_load(text)
    assert "denies nothing" in first and "`shadow: true`" in first, first
    assert all(limit["shadow"] is True for limit in rules["limits"]), rules
    assert all(rules["server"][name] != "off" for name in ("resp", "http", "grpc"))
    requests = "".join(json.dumps({"time": i / 1000, "path": path, "method": "POST", "ip": "192.0.2.7"}) + "\n"
                       for i in range(20000) for path in (("/login", "/search/a", "/x")[i % 3],))
    rules_file = os.path.join(PACKAGING, "weir.yaml")
    replay = [WEIR, "replay", "--quiet", "--explain", "--rules"]
    said = subprocess.run(replay + [rules_file], input=requests, capture_output=True, text=True, check=True).stdout
    assert len(said.splitlines()) == 20000 and "deny" not in said
    assert {limit for limit in ("login", "search", "api") if "shadow=%s" % limit in said} == {"login", "search", "api"}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as enforced:  # without the shadow they limit, without a warning
        enforced.write(re.sub(r"^ *shadow: true\n", "", text, flags=re.M))
        enforced.flush()
        check = subprocess.run([WEIR, "config", "check", enforced.name], capture_output=True, text=True, check=True)
        assert check.stderr == "", check.stderr
        said = subprocess.run(replay + [enforced.name], input=requests, capture_output=True, text=True, check=True).stdout
        assert all("deny " + limit in said for limit in ("login", "search", "api"))


# ---- the processes, in namespaces ----


def script(text):
    subprocess.run(["sh", "-eu", "-c", text], check=True)


class Container:
    """A network and files of its own, in which the image's processes run."""

    def __init__(self, secret):
        self.image = Image()
        self.server = None
        self.folder = tempfile.mkdtemp()
        atexit.register(shutil.rmtree, self.folder, True)
        hold = "mount -t tmpfs none /etc; mount -t tmpfs none /run; mount -t tmpfs none /var/lib; echo ready; exec sleep 600"
        self.holder = subprocess.Popen(["unshare", "--net", "--mount", "sh", "-eu", "-c", hold], stdout=subprocess.PIPE, text=True)
        atexit.register(self.end)
        assert self.holder.stdout.readline() == "ready\n", "no mounts in a namespace"
        script("""
            ip link add host0 type veth peer name eth0 netns %d
            ip addr add %s/24 dev host0; ip link set host0 up""" % (self.holder.pid, OUTSIDE))
        self.script("""
            ip link set lo up; ip addr add %s/24 dev eth0; ip link set eth0 up
            mkdir -p /etc/weir /run/secrets /var/lib/weir /run/image
            install -m 0755 '%s' %s
            printf '127.0.0.1 localhost\\n%s valkey\\n' >/etc/hosts
            echo 'hosts: files' >/etc/nsswitch.conf
            cp '%s/weir.yaml' /etc/weir/
            printf '%s\\n' >/run/secrets/weir-admin
            chmod 0700 /var/lib/weir; chmod 0400 /run/secrets/weir-admin
            chown %d /var/lib/weir /run/secrets/weir-admin 2>/dev/null || true"""
                    % (INSIDE, WEIR, INSTALLED, OUTSIDE, PACKAGING, secret, self.image.uid))
        user = ["setpriv", "--reuid", str(self.image.uid), "--regid", str(self.image.uid), "--clear-groups"]
        allowed = subprocess.run(self.enter(user + [INSTALLED, "version"]), capture_output=True).returncode == 0
        self.user = user if allowed else []  # not where this namespace has one user only

    def enter(self, words):
        return ["nsenter", "-t", str(self.holder.pid), "--net", "--mount"] + words

    def script(self, text):
        subprocess.run(self.enter(["sh", "-eu", "-c", text]), check=True)

    def words(self, command, environment):
        """A command of the image, with its variables and its user."""
        known = ["PATH=/usr/bin:/bin", "HOME=/var/lib/weir"] + ["%s=%s" % one for one in environment.items()]
        assert command[0] == "weir"
        return self.enter(self.user + ["env", "-i"] + known + [INSTALLED] + command[1:])

    def run(self, command, environment):
        return subprocess.run(self.words(command, environment), capture_output=True, text=True, timeout=60)

    def start(self, command, environment):
        self.log = open(os.path.join(self.folder, "log"), "w+", encoding="utf-8")
        self.server = subprocess.Popen(self.words(command, environment), stdout=self.log, stderr=self.log)
        await_start("the server has started", self.server, lambda: '"message":"started"' in self.said(), self.said)

    def said(self):
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()

    def stop(self):
        self.server.send_signal(signal.SIGTERM)
        assert self.server.wait(60) == 0, self.said()

    def end(self):
        for process in (self.server, self.holder):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def ask(port, path, body=None, secret=None):
    """The status and the body of an answer, as the machine gets it."""
    request = urllib.request.Request("http://%s:%d%s" % (INSIDE, port, path), data=body and json.dumps(body).encode())
    if secret is not None:
        request.add_header("Authorization", "Bearer " + secret)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def is_reached(port):
    try:
        socket.create_connection((INSIDE, port), timeout=60).close()
        return True
    except ConnectionRefusedError:
        return False


def logins_are_allowed(port):
    for _ in range(30):
        status, said = ask(port, "/v1/check", {"attributes": {"path": "/login", "method": "POST", "ip": "192.0.2.7"}})
        assert (status, json.loads(said)["verdict"]) == (200, "allow"), said


def an_image_that_is_started_as_it_is_answers_clients_and_keeps_operators_inside(container):
    image = container.image
    refused = container.run(image.entrypoint + image.command, image.environment)
    assert refused.returncode == 2 and "--insecure" in refused.stderr, refused
    environment = dict(image.environment, WEIR_INSECURE="on")
    container.start(image.entrypoint + image.command, environment)
    assert {port for port in image.exposed | {8082} if is_reached(port)} == image.exposed
    logins_are_allowed(8080)
    assert container.run(image.health, image.environment).returncode == 0
    asked = container.run(["weir", "ask", "path=/search/cats", "user=alice"], environment)
    assert asked.returncode == 0 and "allow" in asked.stdout, asked
    limits = container.run(["weir", "ctl", "limits"], environment)
    assert limits.returncode == 0 and re.search(r"login .* shadow ", limits.stdout), limits
    container.stop()


def a_store(command, folder):
    """The second service of the compose file, on the machine's side of the network."""
    program = shutil.which(command[0]) or shutil.which("redis-server")
    store = subprocess.Popen([program, *command[1:], "--bind", OUTSIDE, "--protected-mode", "no", "--dir", folder],
                             stdout=subprocess.DEVNULL)
    atexit.register(store.kill)

    def answers():
        try:
            with socket.create_connection((OUTSIDE, 6379), timeout=60) as s:
                s.sendall(b"PING\r\n")
                return s.recv(100) == b"+PONG\r\n"
        except ConnectionRefusedError:
            return False
    await_start("the store answers", store, answers)
    return store


def the_services_of_the_compose_file_work_together_and_show_the_page(container):
    services = yaml.safe_load(read("compose.yaml"))["services"]
    weir, image = services["weir"], container.image
    store = a_store(services["valkey"]["command"], container.folder)
    environment = dict(image.environment, **weir["environment"])
    container.start(image.entrypoint + weir["command"], environment)
    assert all(is_reached(int(port.split(":")[2])) for port in weir["ports"])
    logins_are_allowed(8080)
    status, page = ask(8082, "/")
    assert status == 200 and b"<html" in page.lower(), page[:100]
    assert ask(8082, "/v1/limits")[0] == 401
    assert ask(8082, "/v1/limits", secret="wrong" + SECRET)[0] == 401
    status, said = ask(8082, "/v1/limits", secret=SECRET)
    limits = json.loads(said)["limits"]
    login = next(limit for limit in limits if limit["name"] == "login")
    assert status == 200 and login["consistency"] == "exact" and login["shadow_denied"] > 0, login
    status, said = ask(8082, "/v1/status", secret=SECRET)
    assert status == 200 and json.loads(said)["store"]["up"] is True, said
    link = container.run(["weir", "ctl", "--secret-file", "/run/secrets/weir-admin", "link"], environment)
    assert link.stdout == "http://127.0.0.1:8082/#secret=%s\n" % SECRET, link
    assert container.run(image.health, environment).returncode == 0
    container.stop()
    store.kill()
    store.wait()


def tell(story, *arguments):
    story(*arguments)
    print("ok   " + story.__name__.replace("_", " "), flush=True)


def inside():
    script("ip link set lo up")
    container = Container(SECRET)
    tell(an_image_that_is_started_as_it_is_answers_clients_and_keeps_operators_inside, container)
    tell(the_services_of_the_compose_file_work_together_and_show_the_page, container)


def main():
    tell(the_compose_file_names_what_there_is)
    tell(the_guide_and_the_container_file_have_the_same_ports_and_user)
    tell(the_rules_of_the_image_deny_nothing_and_say_so)
    alone = ["unshare", "--net", "--mount"] + ([] if os.getuid() == 0 else ["--map-root-user"])
    tools = all(shutil.which(tool) for tool in ("ip", "unshare", "nsenter", "redis-server"))
    probe = "mount -t tmpfs none /run && ip link set lo up"
    if not tools or subprocess.run(alone + ["sh", "-c", probe], capture_output=True).returncode != 0:
        print("no namespaces here: what the files say was not run", file=sys.stderr)
        sys.exit(77)
    sys.exit(subprocess.run(alone + [sys.executable, __file__, "inside"]).returncode)


if __name__ == "__main__":
    inside() if sys.argv[1:] == ["inside"] else main()
