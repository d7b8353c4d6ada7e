// The key inspector: which limits a request would meet, and what its keys have left. Also what an operator changes: blocks,
// charges, the kill switch, and the rules, whose changes are shown before a reload.

import { feed } from "./feed.js";
import { attributesIn, cutRules, exampleFor, namingFor, namingOf } from "./rules.js";
import { ask, badge, code, empty, field, fill, filterBox, h, panel, setText, table, toast } from "./dom.js";
import { clock, duration, plural, when } from "./format.js";
import { loadPause } from "./limits.js";
import { requestForm, results } from "./inspect.js";

export const title = "Keys";

const POLL_MS = 1000;
const SWITCHES = 12; // kill switches of limits that are shown at once

// ---- what operators change ------------------------------------------------

const UNITS = { s: 1000, min: 60000, h: 3600000, day: 86400000 };

export function readDuration(text) {
    const found = /^(\d+(?:\.\d+)?)\s*(s|min|h|day)$/.exec(text.trim());
    if (!found) {
        throw new Error(`Found '${text}', expected a duration such as 30s, 10min, 2h or 7day, or nothing for a block without end.`);
    }
    return Math.round(Number(found[1]) * UNITS[found[2]]);
}

const DIALOGS = {
    block(limit, send) {
        const time = h("input", { value: "10min", class: "mono", spellcheck: "false" });
        const why = h("input", { maxlength: "200", placeholder: "for the list of blocks" });
        return ask({
            title: `Block ${limit.key}`, text: `Limit ${limit.name} then denies this key, whatever it has left.`, action: "Block", danger: true,
            fields: [field("For how long", time, "30s, 10min, 2h, 7day; empty: until it is unblocked"), field("Why", why)],
            submit: () => send({ ...(time.value.trim() ? { for_ms: readDuration(time.value) } : {}), ...(why.value ? { why: why.value } : {}) }),
        });
    },
    penalize(limit, send) {
        const units = h("input", { type: "number", min: "1", step: "1", value: "1" });
        return ask({ title: `Penalize ${limit.key}`, text: `Takes units from the key, into debt if it has fewer left.`, action: "Penalize", danger: true, fields: [field("Units", units)], submit: () => send({ units: Number(units.value) }) });
    },
};
const DONE = { block: "Blocked", unblock: "Unblocked", reset: "Reset", penalize: "Penalized" };

// Returns a function that changes a key after its dialog, if it has one, and then calls `after`.
function changer(api, after) {
    return async (verb, limit) => {
        const send = async (more = {}) => {
            await api.post(`v1/keys/${verb}`, { limit: limit.name, ...limit.naming, ...(limit.tier ? { tier: limit.tier } : {}), ...more });
            toast(`${DONE[verb]}: ${limit.key || "*"} of ${limit.name}`, "ok");
            after();
        };
        try {
            await (DIALOGS[verb] ? DIALOGS[verb](limit, send) : send());
        } catch (e) {
            toast(e.message, "bad");
        }
    };
}

function blocks(api, rules, act) {
    const view = table("Blocked keys", [["Key"], ["Limit", "wide"], ["Until"], ["Why", "wide"], [""]]);
    view.element.classList.add("blocks"); // a phone shows "wide" columns in a line under the key
    const none = empty("No key is blocked");
    const more = h("p", { class: "note panel-body", hidden: true });
    const box = panel("Blocked keys", {}, none, view.element, more);
    const row = (block) => {
        const naming = namingOf(rules().get(block.limit), block.key);
        const end = block.until_ms === null ? "unblocked" : when(block.until_ms);
        const brief = [block.limit, block.tier, block.why].filter(Boolean).join(" · ");
        return h("tr", {}, h("td", { class: "key" }, block.key, h("div", { class: "brief note" }, brief)), h("td", { class: "wide" }, block.limit, block.tier && h("div", { class: "note" }, block.tier)), h("td", {}, end, block.banned && h("div", {}, badge("warn", "ban"))),
            h("td", { class: "wide" }, block.why || "–", h("div", { class: "note" }, block.by)), h("td", { class: "num" }, naming && h("button", { type: "button", class: "small", onclick: () => act("unblock", { name: block.limit, tier: block.tier, key: block.key, naming }) }, "Unblock")));
    };
    async function load() {
        const list = await api.get("v1/blocks");
        none.hidden = list.blocks.length > 0;
        view.element.hidden = list.blocks.length === 0;
        const text = JSON.stringify(list.blocks.map((b) => [b.limit, b.key, b.until_ms]));
        if (view.body.dataset.text !== text) {
            view.body.dataset.text = text;
            fill(view.body, list.blocks.map(row));
        }
        const unseen = list.left_out + list.unnamed;
        more.hidden = unseen === 0;
        setText(more, `Up to ${plural(unseen, "more key is", "more keys are")} blocked; their names are not known.`);
    }
    return { element: box, load };
}

// ---- the kill switch ------------------------------------------------------

function killSwitch(api, after) {
    const list = h("div", { class: "stack" });
    const filter = filterBox("Filter the limits of the kill switch", () => show());
    const more = h("p", { class: "note" });
    const box = panel("Kill switch", { note: "shadow counts and denies nothing" }, h("div", { class: "panel-body stack" }, filter.element, list, more));
    let shown = "";
    let all = false;
    let names = new Map();
    let mode = null;

    async function change(to, limit) {
        const what = limit ? `limit ${limit}` : "all limits";
        const put = async () => {
            await api.put("v1/mode", { mode: to, ...(limit ? { limit } : {}) });
            toast(to === "shadow" ? `Shadow: ${what} denies nothing now`.replace("limits denies", "limits deny") : `${what} again as the rules say`, "ok");
            await load();
            after();
        };
        if (to === "shadow") {
            await ask({ title: `Switch ${what} to shadow?`, text: "Requests are counted as before, and none is denied, until the switch is set back or the server starts again.", action: "Switch to shadow", danger: true, submit: put });
        } else {
            await put().catch((e) => toast(e.message, "bad"));
        }
    }
    const row = (label, shadow, byRules, limit) => h("div", { class: "switch" }, h("span", {}, label), shadow ? badge("warn", "shadow") : badge("ok", "enforce"),
        byRules ? h("span", { class: "note" }, "by the rules") : h("button", { type: "button", class: shadow ? "small" : "small danger", "aria-label": `${shadow ? "Enforce" : "Switch to shadow"}: ${label}`, onclick: () => change(shadow ? "enforce" : "shadow", limit) }, shadow ? "Enforce" : "Shadow …"));

    // Of thousands of limits, those are shown first that are switched to shadow.
    function show() {
        const words = filter.input.value.trim().toLowerCase();
        const switched = (name) => mode?.limits[name] === "shadow";
        const found = all ? [] : [...names.keys()].filter((name) => name.toLowerCase().includes(words));
        const rows = [...found.filter(switched), ...found.filter((name) => !switched(name))].slice(0, SWITCHES);
        const text = JSON.stringify([mode, rows.map((name) => [name, names.get(name)])]);
        filter.element.hidden = all || names.size <= SWITCHES;
        more.hidden = found.length === rows.length;
        setText(more, `${plural(found.length - rows.length, "more limit")}: filter to see them`);
        if (text !== shown) {
            shown = text;
            fill(list, row("All limits", all, false, null), rows.map((name) => row(name, names.get(name) || switched(name), names.get(name), name)));
        }
    }

    async function load() {
        const [now, { limits }] = await Promise.all([api.get("v1/mode"), api.get("v1/limits")]);
        mode = now;
        all = mode.mode === "shadow";
        names = new Map(limits.filter((l) => l.name !== "adhoc").map((l) => [l.name, l.shadow]));
        show();
        return limits;
    }
    return { element: box, load };
}

// ---- reload ---------------------------------------------------------------

const SEVERITY = { error: "bad", warning: "warn", note: "info" };

function messageItem(message) {
    const place = message.line ? `line ${message.line}${message.column ? `, column ${message.column}` : ""}` : "";
    return typeof message === "string" ? h("li", { class: "mono" }, message) : h("li", {}, badge(SEVERITY[message.severity] ?? "off", message.severity), " ", place && h("span", { class: "muted" }, `${place}: `), message.text);
}

function reload(api, after) {
    const result = h("div", { class: "stack", "aria-live": "polite" });
    const go = h("button", { type: "button", class: "primary", hidden: true, onclick: () => run() }, "Reload now");
    const look = h("button", { type: "button", onclick: () => compare() }, "Show what would change");
    const box = panel("Reload", {}, h("div", { class: "panel-body stack" }, h("p", { class: "muted" }, "Reads rules and secrets again. The file on disk is first compared with the rules in effect."), result, h("div", { class: "row" }, look, go)));
    const list = (messages) => messages.length > 0 && h("ul", { class: "messages" }, messages.map(messageItem));

    // The problem has the first of the messages in it.
    const tell = (e) => fill(result, h("p", { class: "problem" }, e.message), list((e.messages ?? []).filter((text) => !e.message.includes(text))));

    async function compare() {
        look.disabled = true;
        try {
            const found = await api.post("v1/config/check?source=file", "", { type: "application/yaml" });
            go.hidden = !found.ok;
            const changes = found.changes ?? [];
            fill(result, list(found.messages), !found.ok && h("p", { class: "problem" }, "The file has errors: a reload would keep the old rules."),
                found.ok && (changes.length > 0 ? h("ul", { class: "changes mono" }, changes.map((line) => h("li", {}, line))) : h("p", {}, "The file has the rules that are in effect: a reload changes no limit.")));
        } catch (e) {
            tell(e);
        }
        look.disabled = false;
    }
    async function run() {
        go.disabled = true;
        try {
            const done = await api.post("v1/reload");
            fill(result, h("p", {}, badge("ok", `generation ${done.generation}`), ` reloaded at ${clock(Date.now())}`), list(done.messages));
            go.hidden = true;
            after();
        } catch (e) {
            tell(e);
        }
        go.disabled = false;
    }
    return { element: box };
}

// ---- the view -------------------------------------------------------------

const FIRST = ["path", "method", "ip", "user"];

export function open(main, api) {
    let rules = new Map();
    let timer = 0;
    let wait = 0;
    let closed = false;
    const act = changer(api, () => {
        result.forget();
        turn();
    });
    const result = results(act);
    const blocked = blocks(api, () => rules, act);
    const mode = killSwitch(api, () => turn());
    const again = reload(api, () => loadRules());
    const form = requestForm((delay = 250) => {
        clearTimeout(wait);
        wait = setTimeout(() => inspect(), delay);
    });
    const given = new URLSearchParams(location.hash.split("?")[1] ?? "");
    [...new Map([...FIRST.map((name) => [name, ""]), ...given])].forEach(([name, value]) => form.add(name, value));

    // What is shown while there is no request: one for each of the first limits, to begin with.
    let described = "";
    function describe() {
        const examples = [...rules].map(([name, lines]) => [name, exampleFor(lines)]).filter(([, query]) => query).slice(0, 5);
        const text = JSON.stringify(examples);
        if (described === text) {
            return;
        }
        described = text;
        result.clear(h("p", { class: "empty-title" }, "Describe a request"), h("p", {}, "Type attributes, for example path and user. The answer charges nothing."),
            h("p", {}, "In a terminal: ", code("weir ctl explain path=/search/cats user=alice ip=203.0.113.7")),
            examples.length > 0 && h("p", { class: "row examples" }, "Or begin with a request that meets ", examples.map(([name, query]) => h("a", { href: `#/keys?${query}` }, name))));
    }

    let refused = ""; // the request that the server has refused: it is not sent again until it changes
    async function inspect(again = false) {
        if (closed) { // a reload ended after the operator had left: the address is another view's
            return;
        }
        const attributes = form.attributes();
        const query = new URLSearchParams(attributes).toString();
        const question = `${query} ${form.cost()}`;
        if (again && question === refused) {
            return;
        }
        refused = "";
        history.replaceState(null, "", query ? `#/keys?${query}` : "#/keys");
        if (Object.keys(attributes).length === 0) {
            describe();
            return;
        }
        described = "";
        try {
            const sent = performance.now();
            const answer = await api.post("v1/explain", { attributes, ...(form.cost() === undefined ? {} : { cost: form.cost() }) });
            if (answer.limits.some((l) => !rules.has(l.name))) { // it was added since
                rules = cutRules(await api.text("v1/config"));
            }
            answer.limits.filter((l) => l.applies).forEach((l) => {
                l.naming = namingFor(rules.get(l.name), answer.attributes);
            });
            if (!closed) {
                result.set(answer, sent);
            }
        } catch (e) {
            if (e.status !== 0 && !closed) {
                refused = question;
                result.clear(h("p", { class: "empty-title" }, "The server refuses this request"), h("p", { class: "problem" }, e.message));
            }
        }
    }
    async function loadRules() {
        rules = cutRules(await api.text("v1/config"));
        form.suggest(attributesIn(rules));
        await turn();
    }
    // One turn of all that is shown, and of the slower parts each fourth time, or more rarely with thousands of limits;
    // failures are the banner's to tell.
    let turns = 0;
    async function turn(all = true) {
        clearTimeout(timer);
        if (feed.state === "live") {
            await Promise.allSettled([inspect(true), ...(all || ++turns % Math.round(loadPause(result.items()) / POLL_MS) === 0 ? [blocked.load(), mode.load().then(result.setItems)] : [])]);
        }
        if (!closed) {
            clearTimeout(timer);
            timer = setTimeout(turn, POLL_MS, false);
        }
    }
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const ticker = setInterval(result.tick, calm ? 1000 : 50);
    main.append(h("div", { class: "inspect" }, h("div", { class: "stack" }, panel("A request", {}, h("div", { class: "panel-body" }, form.form))), h("div", { class: "stack" }, result.element)),
        h("div", { class: "operate" }, blocked.element, mode.element, again.element));
    describe();
    loadRules().catch(() => turn());
    return () => {
        closed = true;
        clearTimeout(timer);
        clearTimeout(wait);
        clearInterval(ticker);
    };
}
