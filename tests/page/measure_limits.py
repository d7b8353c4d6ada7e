"""What the live view costs a browser with thousands of limits: run.sh tests/page/measure_limits.py LIMITS ITEMS [SECONDS].

LIMITS limits, with tiers so that /v1/limits has ITEMS items; 200 of them are in use for SECONDS (900: the history is full)
before the page is opened. It prints the times to the first table and of a sample, the memory, and bytes per second.
"""
import http.client, json, sys, threading, time, urllib.request
from browser import SECRET, Browser, link, serve, until

LIMITS, ITEMS = int(sys.argv[1]), int(sys.argv[2])
FILL = int(sys.argv[3]) if len(sys.argv) > 3 else 900
LOOK = 30  # seconds for which the page is watched


def rule(i):
    tiers = ", tiers: {by: tier, default: free, free: {}, pro: {rate: 1k/min}}" if i < ITEMS - LIMITS else ""
    return "  - {name: limit-%04d, when: {path: /p%d/**}, key: [user], rate: %s, max_keys: 100%s}\n" % (i, i, "30/min" if i == LIMITS - 1 else "1M/s", tiers)


S = serve("--no-watch", rules="limits:\n" + "".join(rule(i) for i in range(LIMITS)))
stop = threading.Event()


def ask():
    busy = ["limit-%04d" % (i * (LIMITS - 1) // min(199, LIMITS - 1)) for i in range(min(200, LIMITS))]
    body = json.dumps({"requests": [{"limit": name, "key": "alice"} for name in busy] + [{"limit": "limit-%04d" % (LIMITS - 1), "key": "mallory"}] * 20})
    host, port = S.address("http").rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    while not stop.wait(0.25):
        connection.request("POST", "/v1/check/batch", body, {"Content-Type": "application/json"})
        assert connection.getresponse().read()


def get(path):
    return urllib.request.urlopen(urllib.request.Request("http://%s/v1/%s" % (S.address("admin"), path), headers={"Authorization": "Bearer " + SECRET}), timeout=60)


def streamed(seconds):
    """Bytes per second of the event stream."""
    stream, count, began = get("events"), 0, time.monotonic()
    while time.monotonic() - began < seconds:
        count += len(stream.readline())
    return count / (time.monotonic() - began)


def metrics(b):
    return {m["name"]: m["value"] for m in b.command("Performance.getMetrics", {})["metrics"]}


threading.Thread(target=ask, daemon=True).start()
time.sleep(FILL)
print("%d limits, %d items, %d in use, %d samples" % (LIMITS, ITEMS, min(200, LIMITS), len(json.load(get("history"))["samples"])))
print("%-52s %10.0f" % ("bytes of /v1/history", len(get("history").read())))
print("%-52s %10.0f" % ("bytes of /v1/limits", len(get("limits").read())))
print("%-52s %10.0f" % ("bytes per second of the event stream", streamed(20)))
B = Browser(width=1440, height=900)
B.command("Performance.enable", {"timeDomain": "threadTicks"})  # processor time: other programs may use the machine
B.command("Page.addScriptToEvaluateOnNewDocument", {"source": """
    window.long = [];
    new PerformanceObserver((list) => list.getEntries().forEach((e) => long.push(e.duration))).observe({entryTypes: ['longtask']});
    new MutationObserver((list, self) => {
        if (/ of [0-9,]+ limits shown/.test(document.querySelector('.limits-foot')?.textContent ?? '') && document.querySelector('.limits .rate')?.textContent) {
            window.drawn = performance.now();
            self.disconnect();
        }
    }).observe(document, {subtree: true, childList: true, characterData: true});"""})
B.open(link(S))
until("the table", lambda: B.js("return window.drawn"))
print("%-52s %10.0f" % ("ms of the clock from the address to the table", B.js("return window.drawn")))
time.sleep(3)
for name, prepare in (("the last minute", ""), ("15 minutes", "document.querySelector('.segmented input[value=\"900\"]').click()"),
                      ("15 minutes, 125 rows", "document.querySelector('.limits-foot button').click()")):
    B.js(prepare)
    time.sleep(3)
    B.js("window.long = []")
    before = metrics(B)
    time.sleep(LOOK)
    after = metrics(B)
    for label, metric in (("script", "ScriptDuration"), ("layout", "LayoutDuration"), ("style", "RecalcStyleDuration"), ("all", "TaskDuration")):
        print("%-52s %10.1f" % ("CPU ms per sample, %s, %s" % (label, name), 1000 * (after[metric] - before[metric]) / LOOK))
    print("%-52s %10.0f" % ("longest task in ms of the clock, %s" % name, max([0] + B.js("return window.long"))))
B.command("HeapProfiler.collectGarbage", {})
print("%-52s %10.1f" % ("MB of JavaScript after garbage collection", metrics(B)["JSHeapUsedSize"] / 1e6))
print("%-52s %10.0f" % ("nodes of the document", B.js("return document.querySelectorAll('*').length")))
print("%-52s %10.0f" % ("rows of the table", B.js("return document.querySelectorAll('.limits tbody tr').length")))
began = metrics(B)["TaskDuration"]
B.fill(".filter input", "limit-00")
until("what was found", lambda: "limit-0001" in B.text(".limits"))
print("%-52s %10.0f" % ("CPU ms to filter", 1000 * (metrics(B)["TaskDuration"] - began)))
B.js("location.hash = '#/keys?path=/p7/x&user=alice'")
B.sees("left", "article.limit-card")
time.sleep(3)
B.js("window.long = []")
before = metrics(B)
time.sleep(LOOK)
print("%-52s %10.1f" % ("CPU ms per second, all, the key inspector", 1000 * (metrics(B)["TaskDuration"] - before["TaskDuration"]) / LOOK))
print("%-52s %10.0f" % ("longest task in ms of the clock, the key inspector", max([0] + B.js("return window.long"))))
stop.set()
S.stop()
