"""A real `weir serve` and a real Chromium that looks at its page. The files test_*.py next to this one use both.

Nothing here waits for a fixed time: until() waits for a condition. Each story ends with Browser.check(), which fails if the
console showed an error or if the page asked any other host for anything.
"""
import atexit, json, os, shutil, socket, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.environ["WEIR_SOURCE_DIR"], "tests", "scripts"))
from running import PATIENCE, WEIR, Server, await_start, free_port  # noqa: E402, F401

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chromium.remote_connection import ChromiumRemoteConnection
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

SECRET = "secret-of-the-operator"
CHECK_SECRET = "secret-of-a-client"
SCREENSHOTS = os.path.join(os.environ["WEIR_BUILD_DIR"], "screenshots")

# Text that a browser would run or load if a view ever took it for markup. It reports in the console, and by a request.
HOSTILE = '<img src=x onerror="console.error(\'markup\')"><script>console.error("markup")</script>\'"&amp;</textarea>'


def until(what, condition):
    """As in running.py, but asks less often: each question is work for the browser, which has to draw meanwhile."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "still not true: " + what
        time.sleep(0.05)


def serve(*options, rules=None, **more):
    """A server with a page, HTTP for clients and a secret that the tests know."""
    env = {"WEIR_ADMIN_SECRETS": SECRET, **more.pop("env", {})}
    given = {"--http", "--admin"} & set(options)
    words = [w for name in ("--http", "--admin") if name not in given for w in (name, "127.0.0.1:0")]
    rules = {} if rules is None else {"rules": rules}
    return Server("--resp", "off", *words, *options, env=env, **rules, **more)


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def link(server, secret=SECRET):
    """The address that `weir ctl link` prints."""
    return "http://%s/#secret=%s" % (server.address("admin"), secret) if secret else "http://%s/" % server.address("admin")


def start_redis(port, folder):
    process = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--dir", folder], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await_start("Redis listens", process, lambda: listens(port))
    return process


class Browser:
    def __init__(self, width=1280, height=900, dark=False, still=False, trusting=False, here=None):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        self.profile = tempfile.mkdtemp()
        words = ["--headless=new", "--user-data-dir=" + self.profile, "--window-size=%d,%d" % (width, height), "--disable-gpu",
                 "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-background-networking",
                 "--disable-component-update", "--hide-scrollbars", "--lang=en-GB", "about:blank"]
        if os.geteuid() == 0:
            words.append("--no-sandbox")  # Chromium refuses to run as root with it
        if still:
            words.append("--force-prefers-reduced-motion")
        if trusting:
            words.append("--ignore-certificate-errors")  # of a CA that the test has made
        if here:
            words.append("--host-resolver-rules=MAP %s 127.0.0.1" % here)  # a name of another site that points here
        for word in words:
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = None
        self.port = free_port()
        self.service = subprocess.Popen(["chromedriver", "--port=%d" % self.port], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.close)
        await_start("chromedriver listens", self.service, lambda: listens(self.port))
        await_start("Chromium has a window", self.service, lambda: self.has_window(options))
        self.driver.set_page_load_timeout(60)
        self.driver.set_script_timeout(60)
        self.resize(width, height)
        self.scheme(dark)
        self.urls = []
        self.errors = []

    def has_window(self, options):
        """False: Chromium was too slow for chromedriver, which has ended it after a minute."""
        remote = ChromiumRemoteConnection("http://127.0.0.1:%d" % self.port, browser_name="chrome", vendor_prefix="goog")
        try:
            self.driver = webdriver.Remote(remote, options=options)
        except WebDriverException as e:
            if "exited" in e.msg or "crashed" in e.msg:
                raise
        return self.driver is not None

    def close(self):
        if self.driver is not None:
            self.driver.quit()
            self.driver = None
        if self.service is not None:
            self.service.terminate()
            self.service.wait()
            self.service = None
            shutil.rmtree(self.profile, ignore_errors=True)

    def command(self, name, values):
        return self.driver.execute("executeCdpCommand", {"cmd": name, "params": values})["value"]

    # ---- how it is looked at ----

    def resize(self, width, height, scale=1):
        self.command("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": scale, "mobile": False})

    def scheme(self, dark, still=False):
        self.command("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}]})

    def picture(self, name):
        """Writes build/screenshots/NAME.png: the whole page, not only what fits."""
        os.makedirs(SCREENSHOTS, exist_ok=True)
        height = self.js("return Math.min(document.documentElement.scrollHeight, 6000)")
        size = self.js("return [innerWidth, innerHeight]")
        self.resize(size[0], max(height, size[1]))
        until("no colour is on its way to another", lambda: self.js("return !document.getAnimations().some((a) => a instanceof CSSTransition)"))
        self.driver.save_screenshot(os.path.join(SCREENSHOTS, name + ".png"))
        self.resize(*size)

    # ---- what a person does ----

    def open(self, url):
        self.driver.get(url)

    def view(self, name):
        """Goes to a view as a link does, and waits until it is there."""
        self.js("location.hash = arguments[0]", "#/" + name)
        until("view " + name, lambda: self.js("return document.querySelector('main').dataset.view") == name)

    def js(self, text, *values):
        return self.driver.execute_script(text, *values)

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css):
        until(css, lambda: self.all(css))
        return self.all(css)[0]

    def click(self, css):
        def clicked():
            try:
                element = self.one(css)
                self.js("arguments[0].scrollIntoView({block: 'center'})", element)
                element.click()
                return True
            except StaleElementReferenceException:  # the view has replaced it meanwhile
                return False
        until("a click on " + css, clicked)

    def hold(self, css):
        element = self.one(css)
        self.js("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.driver).click_and_hold(element).perform()

    def release(self):
        ActionChains(self.driver).release().perform()

    def keys(self, *keys):
        """Types into what has the focus."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, css, key):
        """Presses a key, such as TAB, until the element has the focus; the keyboard alone must get there."""
        for _ in range(200):
            if self.js("return document.activeElement.matches(arguments[0])", css):
                return
            self.keys(key)
        raise AssertionError("the keyboard does not reach " + css)

    def fill(self, css, text):
        """Puts text into a field as a paste does."""
        self.js("const e = arguments[0]; e.focus(); e.value = arguments[1];"
                "e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}))",
                self.one(css), text)

    # ---- what a person sees ----

    def text(self, css="main"):
        """What is shown there, or "" if nothing is."""
        return self.js("const e = document.querySelector(arguments[0]); return e ? e.innerText : ''", css)

    def value(self, css, name):
        """data-NAME of an element, as a number if it is one."""
        found = self.js("const e = document.querySelector(arguments[0]); return e ? e.dataset[arguments[1]] : null", css, name)
        try:
            return float(found)
        except (TypeError, ValueError):
            return found

    def sees(self, words, css="main"):
        def seen():
            try:
                return words in self.text(css)
            except StaleElementReferenceException:
                return False
        try:
            until("%r in %s" % (words, css), seen)
        except AssertionError as e:
            raise AssertionError("%s; it shows:\n%s" % (e, self.text(css))) from None

    # ---- what it did ----

    def collect(self):
        """Takes the logs of the browser: requests that it has sent, errors of its console."""
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.urls.append((message["params"]["request"]["method"], message["params"]["request"]["url"]))
        self.errors += [e for e in self.driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]

    def asked(self, words):
        """Number of requests so far whose address contains the words."""
        self.collect()
        return sum(words in url for _, url in self.urls)

    def check(self, server, network=False):
        """No error in the console and no request to another host. network: requests may have failed, a server was down."""
        self.collect()
        own = "http://%s/" % server.address("admin") if isinstance(server, Server) else server
        foreign = [url for _, url in self.urls if not url.startswith((own, "data:", "blob:", "about:", "chrome:", "chrome-untrusted:", "devtools:"))]
        assert foreign == [], foreign
        errors = [e["message"] for e in self.errors if not (network and e.get("source") == "network")]
        assert errors == [], errors
        self.urls, self.errors = [], []


def stories(module):
    """Runs the functions of a file whose names are sentences, in order; words of the command line choose some."""
    for story in [f for f in list(vars(module).values()) if callable(f) and getattr(f, "__module__", "") == "__main__" and
                  f.__name__.count("_") >= 3]:
        if len(sys.argv) > 1 and not any(word in story.__name__ for word in sys.argv[1:]):
            continue
        began = time.monotonic()
        story()
        print("ok %5.1f s  %s" % (time.monotonic() - began, story.__name__.replace("_", " ")), flush=True)
