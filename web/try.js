// Try rules: a rule file that the real checker reads while it is typed, and requests that the real engine decides by it, in a
// sandbox with a time of its own.

import { badge, empty, fill, h, panel, setText, table } from "./dom.js";
import { Editor } from "./editor.js";
import { duration, exact, plural } from "./format.js";
import { Clock } from "./play_setup.js";
import { Sandbox } from "./sandbox.js";

export const title = "Try rules";

const CHECK_MS = 300; // from the last key to the check
const RESULTS_MAX = 50;
const SKIPS = [["+ 1 s", 1000], ["+ 1 min", 60000], ["+ 1 h", 3600000]];
const EXAMPLE = `attributes: {user: request, tier: request}
limits:
  - name: login
    when: {method: POST, path: /login}
    key: [ip]
    rate: 5/min
    on_missing: deny
  - name: search
    when: {path: /search/**}
    key: [user|ip]
    rate: 3/min
    tiers: {by: tier, default: free, free: {}, pro: {rate: 1k/min}}
  - name: mail
    when: {path: /mail}
    key: [user]
    algorithm: leaky_bucket
    rate: 20/s
    queue: 4
`;
const REQUESTS = ["GET /search/cats user=alice", "GET /search/cats user=bob tier=pro", "POST /login ip=203.0.113.7", "/mail user=alice cost=2"];
const KINDS = { error: "bad", warning: "warn", note: "info" };
const VERDICTS = { allow: "ok", deny: "bad", never: "bad" };

// What the viewer has typed, for when the view is opened again. The rules outlive a reload of the tab, until it signs out. The
// request does not: its attributes may be somebody's. Nor do rules with a secret in them.
const STORED = "weir.rules";
const HAS_PASSWORD = /\/\/[^\s/@]*:[^\s/@]*@/; // a URL such as redis://user:password@host
const kept = { rules: sessionStorage.getItem(STORED) ?? EXAMPLE, request: REQUESTS[0] };
window.addEventListener("signout", () => Object.assign(kept, { rules: EXAMPLE, request: REQUESTS[0] }));

function keep(rules, secret) {
    kept.rules = rules;
    try {
        if (HAS_PASSWORD.test(rules) || (secret && rules.includes(secret))) {
            sessionStorage.removeItem(STORED);
        } else {
            sessionStorage.setItem(STORED, rules);
        }
    } catch {
        // The storage is full: the rules last as long as the page.
    }
}

// Reads "GET /search user=alice cost=2": a method, a path and cost are known, all else is name=value. "a b" may be quoted.
export function parseRequest(text) {
    const attributes = {};
    let cost;
    for (const [word] of text.matchAll(/(?:[^\s"]+|"(?:[^"\\]|\\.)*"?)+/g)) {
        const plain = word.replace(/"((?:[^"\\]|\\.)*)"?/g, (_, inside) => inside.replace(/\\(.)/g, "$1"));
        const found = /^([A-Za-z_][\w.-]*)=/.exec(word);
        if (found && found[1] === "cost") {
            cost = Number(plain.slice(5));
            if (!Number.isSafeInteger(cost) || cost < 1) {
                throw new Error(`cost: found '${plain.slice(5)}', expected a whole number of at least 1`);
            }
        } else if (found) {
            attributes[found[1]] = plain.slice(found[0].length);
        } else if (plain.startsWith("/")) {
            attributes.path = plain;
        } else if (/^[A-Z]+$/.test(plain)) {
            attributes.method = plain;
        } else {
            throw new Error(`found '${plain}', expected a method such as GET, a path such as /search, or name=value`);
        }
    }
    if (!Object.keys(attributes).length) {
        throw new Error("found no attribute, expected some such as path=/search user=alice");
    }
    return { attributes, cost };
}

class Trial {
    constructor(main, api) {
        this.api = api;
        this.sandbox = new Sandbox(api);
        this.clock = new Clock();
        this.rules = null; // those of the sandbox
        this.closing = new AbortController();
        document.addEventListener("visibilitychange", () => this.clock.stop("hidden", document.hidden), { signal: this.closing.signal });
        this.clock.stop("hidden", document.hidden);
        main.append(h("div", { class: "try" }, this.filePanel(), this.requestPanel()));
        this.check();
    }

    close() {
        this.closing.abort();
        clearTimeout(this.checking);
        clearInterval(this.ticking);
        this.checkAbort?.abort();
        this.sandbox.close();
    }

    // ---- the rule file ----

    filePanel() {
        this.editor = new Editor("Rule file", kept.rules, () => this.changed());
        this.verdict = h("span", { role: "status" });
        this.messages = h("ul", { class: "messages try-messages", "aria-label": "Problems" });
        this.changes = h("div", { class: "try-changes" });
        const actions = [this.verdict, h("button", { type: "button", class: "small", onclick: () => this.loadLive() }, "Load the rules in effect")];
        return panel("Rule file", { actions }, this.editor.element, this.messages, this.changes);
    }

    changed() {
        keep(this.editor.text, this.api.secret);
        clearTimeout(this.checking);
        this.checking = setTimeout(() => this.check(), CHECK_MS);
    }

    async loadLive() {
        try {
            this.editor.text = await this.api.text("v1/config", { signal: this.closing.signal });
            this.changed();
        } catch (problem) {
            this.showProblem(problem);
        }
    }

    async check() {
        this.checkAbort?.abort();
        const abort = (this.checkAbort = new AbortController());
        try {
            const found = await this.api.post("v1/config/check", this.editor.text, { type: "application/yaml", signal: abort.signal });
            this.showMessages(found.messages);
            this.showChanges(found);
        } catch (problem) {
            if (!abort.signal.aborted) {
                this.showProblem(problem);
            }
        }
    }

    showProblem(problem) {
        if (problem.messages?.length) {
            this.showMessages(problem.messages);
        } else if (!this.closing.signal.aborted) {
            fill(this.verdict, badge("bad", problem.message));
        }
    }

    showMessages(messages) {
        this.editor.show(messages);
        const errors = messages.filter((m) => m.severity === "error").length;
        const warnings = messages.filter((m) => m.severity === "warning").length;
        const words = [errors ? plural(errors, "error") : "", warnings ? plural(warnings, "warning") : ""].filter(Boolean).join(", ");
        fill(this.verdict, errors ? badge("bad", words) : warnings ? badge("warn", words) : badge("ok", "no problems"));
        fill(this.messages, messages.map((m) => h("li", { class: `try-message ${m.severity}`, "data-line": m.line },
            badge(KINDS[m.severity] ?? "info", m.severity),
            m.line ? h("button", { type: "button", class: "link", onclick: () => this.editor.go(m.line, m.column) }, `line ${m.line}, column ${m.column}`) : null,
            h("span", {}, m.text))));
    }

    // What the file would change in the rules in effect.
    showChanges({ ok, changes }) {
        const open = this.changes.querySelector("details")?.open ?? false;
        fill(this.changes, ok && changes?.length ? h("details", { open }, h("summary", {}, `${plural(changes.length, "change")} to the rules in effect`),
            h("ul", {}, changes.map((text) => h("li", {}, text)))) : null);
    }

    // ---- requests ----

    requestPanel() {
        this.request = h("input", { type: "text", name: "request", value: kept.request, spellcheck: "false", autocapitalize: "off", autocomplete: "off",
            "aria-label": "Request", "aria-describedby": "try-hint", class: "mono", list: "try-examples" });
        this.problem = h("p", { class: "problem", role: "alert" });
        this.time = h("span", { class: "play-time" }, "time 0.0 s");
        this.ticking = setInterval(() => this.rules !== null && this.showTime(), 1000); // it stands still until the first request
        this.results = h("div", { class: "try-results" }, empty("No request yet", "Press Enter to send one. Nothing reaches the live limits."));
        const form = h("form", { class: "try-form", onsubmit: (event) => {
            event.preventDefault();
            this.send(1);
        } }, this.request, h("button", { type: "submit", class: "primary" }, "Send"), h("button", { type: "button", onclick: () => this.send(10) }, "Send 10"));
        const skips = SKIPS.map(([text, ms]) => h("button", { type: "button", class: "small", title: "Lets time pass in the sandbox", onclick: () => this.skip(ms) }, text));
        return panel("Requests", { actions: [this.time, skips, h("button", { type: "button", class: "small", onclick: () => this.afresh() }, "Start afresh")] },
            h("div", { class: "panel-body stack" }, form, h("datalist", { id: "try-examples" }, REQUESTS.map((value) => h("option", { value }))),
                h("p", { class: "hint", id: "try-hint" }, "A method, a path, then name=value; for example ", h("code", {}, "GET /search/cats user=alice cost=2")),
                this.problem, this.results));
    }

    skip(ms) {
        this.clock.start(this.clock.now() + ms);
        this.showTime();
    }

    showTime() {
        setText(this.time, `time ${duration(this.clock.now())}`);
    }

    afresh() {
        this.rules = null;
        this.clock.start(0);
        this.showTime();
        fill(this.results, empty("No request yet", "All keys are fresh."));
    }

    // Makes the sandbox anew if the rules have changed since, then asks `count` times.
    async send(count) {
        kept.request = this.request.value;
        setText(this.problem, "");
        try {
            const { attributes, cost } = parseRequest(this.request.value);
            if (!(await this.prepare())) {
                return;
            }
            const at_ms = this.clock.now();
            const asks = Array.from({ length: count }, () => ({ at_ms, attributes, cost, explain: true, headers: true }));
            const answers = await this.sandbox.step(asks);
            this.showTime();
            answers?.forEach((answer) => this.add(answer, at_ms, count > 1));
        } catch (problem) {
            this.failed(problem);
        }
    }

    async prepare() {
        if (this.rules === this.editor.text) {
            return true;
        }
        const text = this.editor.text;
        const made = await this.sandbox.create({ rules: text });
        if (made) {
            this.rules = text;
            this.clock.start(0);
            fill(this.results);
        }
        return made !== null;
    }

    failed(problem) {
        if (problem.status === 404 || problem.status === 0) {
            this.rules = null; // the sandbox is gone: the next request makes a new one
        }
        if (problem.messages?.length) {
            this.showMessages(problem.messages);
        }
        setText(this.problem, problem.status === 404 ? "The sandbox had been idle for too long and has ended. Send again: all keys are fresh." : problem.message);
    }

    add(answer, at, brief) {
        this.results.querySelectorAll("details[open]").forEach((details) => (details.open = brief && details.open));
        this.results.prepend(this.result(answer, at));
        while (this.results.children.length > RESULTS_MAX) {
            this.results.lastChild.remove();
        }
        const entries = this.results.children;
        entries[0].open = true;
        for (let i = 1; i < entries.length; i++) {
            entries[i].open = false;
        }
    }

    result(answer, at) {
        const facts = [answer.limit && `by ${answer.limit}`, answer.remaining !== null && answer.remaining !== undefined && answer.quota ? `${exact(answer.remaining)} of ${exact(answer.quota)} left` : null,
            answer.verdict === "deny" ? `retry after ${duration(answer.retry_after_ms)}` : null, answer.delay_ms > 0 ? `acts after ${duration(answer.delay_ms)}` : null];
        const { explain } = answer;
        return h("details", { class: "try-result", "data-verdict": answer.verdict },
            h("summary", {}, badge(VERDICTS[answer.verdict] ?? "info", answer.verdict), h("span", { class: "mono try-asked" }, kept.request),
                h("span", { class: "note" }, [...facts.filter(Boolean), `at ${duration(at)}`].join(", "))),
            explain?.list ? h("p", { class: "note" }, `The request is in the list '${explain.list}' of the rules.`) : null,
            explain ? this.limits(explain) : null,
            h("h3", {}, "What /v1/auth answers"), h("pre", { class: "try-headers", tabIndex: 0, role: "region", "aria-label": "Header fields" },
                [`HTTP/1.1 ${answer.status}`, ...(answer.headers ?? []).map(([name, value]) => `${name}: ${value}`)].join("\n")));
    }

    // Which limits the request meets, and why it does not meet the others.
    limits({ limits }) {
        const rows = limits.map((limit) => h("tr", { class: limit.applies ? "" : "try-other", "data-limit": limit.name },
            h("td", {}, limit.line ? h("button", { type: "button", class: "link", title: `Line ${limit.line}`, onclick: () => this.editor.go(limit.line, 1) }, limit.name) : limit.name,
                limit.tier ? h("span", { class: "note" }, ` ${limit.tier}`) : null),
            h("td", {}, limit.applies ? badge(VERDICTS[limit.verdict] ?? "info", limit.mode === "shadow" ? `shadow ${limit.verdict}` : limit.verdict) : badge("off", "does not apply")),
            limit.applies ? [h("td", { class: "key" }, limit.key), h("td", { class: "num" }, `${exact(limit.remaining)} of ${exact(limit.quota)}`)] :
                h("td", { colspan: 2, class: "try-why" }, limit.why)));
        return table("Limits of this request", [["Limit"], ["Result"], ["Key, or why not"], ["Left before the request", "num"]], rows).element;
    }
}

export function open(main, api) {
    const trial = new Trial(main, api);
    return () => trial.close();
}
