// The live view: what the server decides now, and over the last 15 minutes. Counts need the role check, or none; keys, rules
// and messages need the admin secret.

import { deniedOf, deniedSeries, namedSeries, reasonsOf, topDenied } from "./denied.js";
import { feed, samplesOf } from "./feed.js";
import { ALL, limitsTable } from "./limits.js";
import { timeChart } from "./draw.js";
import { cutRules, valueOf } from "./rules.js";
import { badge, bar, code, empty, fill, h, linkCommand, panel, segmented, setText, table } from "./dom.js";
import { bytes, clock, count, exact, micros, percent, plural, when, words } from "./format.js";

export const title = "Live";

const ALLOW = { name: "allowed", colour: "--allow", fill: "fade" };
const DENY = { name: "denied", colour: "--deny", fill: "solid" };
const SHADOW = { name: "shadow", colour: "--shadow", fill: "stripes" };
const FAILED = { name: "errors", colour: "--shadow", fill: "stripes" };
const DECISIONS = [ALLOW, DENY, SHADOW];
const LATENCY = [
    { name: "p50", colour: "--p50" },
    { name: "p99", colour: "--p99" },
    { name: "p99.9", colour: "--p999" },
];

// What is allowed, what is denied by reason, and errors or what a limit in shadow mode would have denied: of all requests, or
// of a limit's decisions.
function shareOf(sample, limit, series) {
    const { allow, deny, error, overload } = sample.requests;
    const [allowed, denied, last] = limit === ALL ? [allow, deny, error + overload] : sample.limits[limit] ?? [0, 0, 0];
    return [allowed, ...deniedOf(denied, reasonsOf(sample, limit), series), last];
}

const latencyOf = ({ latency_us: l }) => (l ? [l.p50, l.p99, l.p999] : [null, null, null]);

// The samples of the last `seconds` as columns: one array of times, one of values for each of so many series.
function columns(seconds, pick, series = 3) {
    const { samples, ...times } = samplesOf(seconds);
    const rows = samples.map(pick);
    return { ...times, values: Array.from({ length: series }, (_, k) => rows.map((row) => row[k])) };
}

const sum = (values) => values.reduce((a, b) => a + (b ?? 0), 0);

// ---- the numbers at the top -----------------------------------------------

function tile(label) {
    const value = h("span", { class: "tile-value" }, "–");
    const unit = h("span", { class: "tile-unit" });
    const note = h("div", { class: "tile-note" });
    return {
        element: h("div", { class: "tile" }, h("div", { class: "tile-label" }, label), h("div", { class: "tile-line" }, value, unit), note),
        note,
        set(text, newUnit, ...notes) {
            setText(value, text);
            setText(unit, newUnit);
            if (notes.every((n) => typeof n === "string")) {
                setText(note, notes.join(" · "));
            }
        },
    };
}

function tiles() {
    const requests = tile("Requests");
    const denied = tile("Denied");
    const latency = tile("Latency, p99");
    const keys = tile("Keys");
    const machine = tile("Processor");
    const level = bar("Fullest table");
    const fullest = h("div", { class: "tile-note" });
    keys.element.append(level.element, fullest);
    keys.note.remove();

    function update() {
        const s = feed.samples.at(-1);
        if (!s) {
            return;
        }
        const all = sum(Object.values(s.requests));
        requests.set(count(all), "/s", `${count(s.requests.allow)} allowed`, s.requests.error + s.requests.overload > 0 ? `${count(s.requests.error)} errors, ${count(s.requests.overload)} overload` : "no errors");
        denied.set(count(s.requests.deny), "/s", all ? `${percent(s.requests.deny, all)} of the requests` : "no requests");
        const [value, unit] = s.latency_us ? micros(s.latency_us.p99).split(" ") : ["–", ""];
        latency.set(value, unit, s.latency_us ? `p50 ${micros(s.latency_us.p50)}` : "no requests", ...(s.latency_us ? [`p99.9 ${micros(s.latency_us.p999)}`] : []));
        // The keys of shared limits are in the store. A node knows those that it has leased or counted itself.
        const shared = s.store !== null && s.capacity === 0;
        keys.set(shared && s.keys === 0 ? "–" : count(s.keys), shared ? (s.keys > 0 ? "on this node" : "") : `of ${count(s.capacity)}`);
        const full = s.fullest?.percent ?? 0;
        level.set(full / 100, `${Math.round(full)} %`, full >= 90 ? "bad" : full >= 75 ? "warn" : "info");
        setText(fullest, s.fullest ? `fullest: ${s.fullest.limit}, ${percent(full, 100)}` : shared ? "in the store" : "no keys yet");
        level.element.hidden = shared;
        machine.set(s.cpu.toFixed(2), s.cpu === 1 ? "core" : "cores", `${bytes(s.memory_bytes)} memory`);
    }
    return { element: h("section", { class: "tiles panel", "aria-label": "Now" }, [requests, denied, latency, keys, machine].map((t) => t.element)), update };
}

// ---- charts ---------------------------------------------------------------

const marksOf = () => feed.events.filter((e) => e.kind !== "limit").map((e) => ({ at: e.at_ms, text: e.text ? `${e.kind}: ${e.text}` : e.kind, bad: e.kind === "reload failed" }));

function traffic(choice) {
    const chart = timeChart({ label: "Requests per second", series: [] });
    const all = h("button", { type: "button", class: "small", hidden: true, onclick: () => choice.choose(ALL) }, "All requests");
    const none = h("p", { class: "note" }, "No request has come yet. To send one, from a terminal: ", code("weir ask path=/search/cats user=alice ip=203.0.113.7"));
    const box = panel("Requests per second", { actions: [all] }, h("div", { class: "panel-body" }, chart.element, none));
    const heading = box.querySelector("h2");
    let shown = null; // what the series are of
    let reasons = [];

    function choose() {
        const of = choice.limit;
        reasons = deniedSeries(samplesOf(choice.seconds).samples.map((s) => reasonsOf(s, of)));
        const now = [of, ...reasons.map((series) => series.name)].join("\n");
        if (shown !== now) {
            shown = now;
            const label = of === ALL ? "Requests per second" : `${of}: decisions per second`;
            setText(heading, label);
            chart.setSeries([ALLOW, ...namedSeries(reasons), of === ALL ? FAILED : SHADOW], label);
            all.hidden = of === ALL;
        }
    }

    function update() {
        choose();
        none.hidden = none.hidden || feed.samples.some((s) => Object.values(s.requests).some((n) => n > 0));
        chart.set({ ...columns(choice.seconds, (s) => shareOf(s, choice.limit, reasons), reasons.length + 2), marks: marksOf() });
    }
    return { element: box, update, close: chart.close };
}

function latency(choice) {
    const chart = timeChart({ label: "Latency", series: LATENCY, format: micros, log: true });
    return {
        element: panel("Latency", { note: "time in the server" }, h("div", { class: "panel-body" }, chart.element)),
        update: () => chart.set({ ...columns(choice.seconds, latencyOf), marks: marksOf() }),
        close: chart.close,
    };
}

// ---- server and store -----------------------------------------------------

function facts(list) {
    const cells = new Map(list.map((name) => [name, h("dd", {}, "–")]));
    return {
        element: h("dl", { class: "facts" }, [...cells].map(([name, cell]) => h("div", {}, h("dt", {}, name), cell))),
        set(name, ...value) {
            const cell = cells.get(name);
            const key = value.map((v) => v.textContent ?? v).join();
            if (cell.dataset.key !== key) {
                cell.dataset.key = key;
                fill(cell, value);
            }
        },
    };
}

function server() {
    const here = facts(["Mode", "Rules", "Connections", "Reservations", "Held replies"]);
    const store = facts(["Store", "Nodes", "Connections", "Breakers"]);
    const alone = h("p", { class: "note" }, "No store: this node counts alone.");
    const box = panel("Server", {}, h("div", { class: "panel-body stack" }, here.element, h("h3", { class: "rule" }, "Fleet"), store.element, alone));

    function update() {
        const s = feed.samples.at(-1);
        if (!s) {
            return;
        }
        here.set("Mode", s.mode === "shadow" ? badge("warn", "shadow") : badge("ok", "enforce"));
        here.set("Rules", `generation ${exact(s.generation)}`);
        here.set("Connections", exact(s.connections));
        here.set("Reservations", exact(s.reservations));
        here.set("Held replies", exact(s.held));
        alone.hidden = s.store !== null;
        store.element.hidden = s.store === null;
        if (s.store) {
            store.set("Store", s.store.up ? badge("ok", "up") : badge("bad", "away"));
            store.set("Nodes", exact(s.store.nodes));
            store.set("Connections", exact(s.store.connections));
            store.set("Breakers", s.store.breakers_open ? badge("bad", `${s.store.breakers_open} open`) : badge("ok", "closed"));
        }
    }
    return { element: box, update };
}

// ---- what has happened ----------------------------------------------------

const KINDS = { reload: "ok", "reload failed": "bad", store: "warn", mode: "warn", limit: "info", start: "info" };

function eventItem(event) {
    const messages = event.messages?.filter((m) => !event.text?.includes(m)) ?? [];
    return h("li", {}, h("div", { class: "row" }, h("time", { datetime: new Date(event.at_ms).toISOString() }, when(event.at_ms)), badge(KINDS[event.kind] ?? "off", event.kind)),
        event.text && h("p", {}, event.text), messages.length > 0 && h("ul", { class: "messages mono" }, messages.map((m) => h("li", {}, m))));
}

function happened(admin) {
    const list = h("ol", { class: "events" });
    const body = h("div", { class: "tall", tabIndex: 0, role: "log", "aria-label": "What has happened" }, list);
    const box = panel("Events", { note: admin ? null : "messages need the admin secret" }, body);
    function update() {
        fill(list, feed.events.length === 0 ? h("li", { class: "muted" }, "Nothing has happened since the start.") : [...feed.events].reverse().map(eventItem));
    }
    return { element: box, updateEvents: update };
}

// ---- with the admin secret ------------------------------------------------

function rules(api) {
    const body = h("div", { class: "rules" });
    const box = panel("Rules in effect", {}, body);
    let generation = -1;
    let parts = new Map();

    async function load() {
        try {
            const [yaml, explained, status] = await Promise.all([api.text("v1/config"), api.post("v1/explain", { attributes: {} }).catch(() => ({ limits: [] })), api.get("v1/status")]);
            const lines = new Map(explained.limits.map((l) => [l.name, l.line]));
            const file = status.config?.split("/").at(-1) ?? "rules";
            setText(box.querySelector(".note"), status.config ?? "");
            parts = cutRules(yaml);
            const place = (name) => (lines.get(name) ? `${file}:${lines.get(name)}` : lines.has(name) ? "added by PUT" : "");
            fill(body, [...parts].map(([name, text]) => h("details", {}, h("summary", {}, h("b", {}, name), h("span", { class: "note mono" }, rateOf(text)), h("span", { class: "note mono place" }, place(name))), h("pre", { tabIndex: 0 }, text.join("\n")))),
                h("details", {}, h("summary", {}, h("span", { class: "muted" }, "The whole file, with its defaults")), h("pre", { tabIndex: 0 }, yaml)));
        } catch (e) {
            fill(body, empty("The rules could not be read", e.message));
        }
    }
    function update() {
        const now = feed.samples.at(-1)?.generation ?? 0;
        if (now !== generation) {
            generation = now;
            load();
        }
    }
    box.querySelector("h2").after(h("span", { class: "note" }));
    return { element: box, update, known: () => parts };
}

const rateOf = (lines) => `${words(valueOf(lines, "algorithm"))} ${valueOf(lines, "rate")}`;

// ---- the view -------------------------------------------------------------

const RANGES = [["60", "1 min"], ["300", "5 min"], ["900", "15 min"]];

export function open(main, api) {
    const admin = api.role === "admin";
    const recorded = feed.samples.length > 0 ? (feed.samples.at(-1).at_ms - feed.samples[0].at_ms) / 1000 : 0;
    const choice = {
        limit: ALL,
        seconds: Number(RANGES.find(([seconds]) => recorded < seconds)?.[0] ?? 900),
        choose(limit) {
            choice.limit = limit;
            update();
        },
    };
    const now = tiles();
    const charts = [traffic(choice), latency(choice)];
    const table = limitsTable(choice, api, admin, DECISIONS);
    const file = admin && rules(api);
    const secret = admin ? [topDenied(choice, file.known), file] : [];
    const side = [server(), happened(admin)];
    const parts = [now, ...charts, table, ...secret, ...side];
    const place = (name, list) => h("div", { class: name }, list.map((part) => part.element));
    const update = () => parts.forEach((part) => part.update?.());
    const range = segmented("Time shown", RANGES, String(choice.seconds), (value) => {
        choice.seconds = Number(value);
        update();
    });
    const past = h("span", { class: "note" });
    const waiting = empty("Waiting for the first sample", "The server takes one sample each second.");
    const grid = h("div", { class: "stack" }, now.element, place("charts", charts), h("div", { class: "charts" }, h("div", { class: "stack" }, table.element, admin && place("halves", secret)), place("side", side)));
    const showPast = () => {
        const n = feed.samples.length;
        waiting.hidden = n > 0;
        grid.hidden = n === 0;
        setText(past, n > 0 ? `${plural(Math.max(1, Math.round((feed.samples.at(-1).at_ms - feed.samples[0].at_ms) / 60000)), "minute")} recorded, until ${clock(feed.samples.at(-1).at_ms)}` : "");
    };
    main.append(h("div", { class: "view-head" }, past, !admin && h("span", { class: "note" }, "Counts only. To see keys and rules, sign in with the link of ", code(linkCommand())), range), waiting, grid);
    const all = () => {
        showPast();
        update();
    };
    const tops = () => parts.forEach((part) => part.updateTop?.());
    const events = () => parts.forEach((part) => part.updateEvents?.());
    const off = [feed.on("history", all), feed.on("sample", all), feed.on("event", events), feed.on("top", tops)];
    all();
    events();
    tops();
    return () => {
        off.forEach((stop) => stop());
        parts.forEach((part) => part.close?.());
    };
}
