// The key inspector: a request, and which limits it would meet, with what its keys have left.

import { badge, bar, empty, field, fill, h, panel, setText, table } from "./dom.js";
import { duration, plural, when, words } from "./format.js";
import { POLLS_KEPT, evenOf, stateAt, useOf } from "./key_state.js";

const OTHERS_OPEN = 12; // limits that do not apply, up to which they are shown at once
const VERDICTS = { allow: "ok", deny: "bad", never: "bad" };
const verdictBadge = (verdict) => badge(VERDICTS[verdict] ?? "off", verdict ?? "not known");

// ---- the request ----------------------------------------------------------

export function requestForm(onchange) {
    const suggestions = h("datalist", { id: "attribute-names" });
    const rows = h("div", { class: "pairs" });
    const cost = h("input", { type: "number", min: "1", step: "1", inputmode: "numeric", placeholder: "1" });
    const form = h("form", {
        oninput: () => onchange(),
        onsubmit: (event) => {
            event.preventDefault();
            onchange(0);
        },
    }, h("div", { class: "pairs-head", "aria-hidden": "true" }, h("span", {}, "Attribute"), h("span", {}, "Value")), rows,
    h("div", { class: "row" }, h("button", { type: "button", class: "small", onclick: () => add("", "").querySelector("input").focus() }, "Add an attribute")),
    field("Cost", cost, "Units that the request takes; empty: as the rules say."),
    h("button", { type: "submit", class: "primary" }, "Inspect"), suggestions);

    function add(name, value) {
        const row = h("div", { class: "pair" },
            h("input", { class: "mono", value: name, "aria-label": "Name of the attribute", list: suggestions.id, spellcheck: "false", autocomplete: "off" }),
            h("input", { class: "mono", value, "aria-label": name ? `Value of ${name}` : "Value", spellcheck: "false", autocomplete: "off", placeholder: "not in the request" }),
            h("button", {
                type: "button", class: "icon-button", "aria-label": "Remove the attribute",
                onclick: () => {
                    row.remove();
                    onchange();
                },
            }, "×"));
        rows.append(row);
        return row;
    }
    return {
        form,
        add,
        suggest(names) {
            fill(suggestions, names.map((name) => h("option", { value: name })));
            const present = [...rows.querySelectorAll(".pair input:first-child")].map((input) => input.value);
            names.filter((name) => !present.includes(name)).slice(0, 8).forEach((name) => add(name, ""));
        },
        attributes() {
            const pairs = [...rows.children].map((row) => [...row.querySelectorAll("input")].map((input) => input.value));
            return Object.fromEntries(pairs.filter(([name, value]) => name && value));
        },
        cost: () => (cost.value ? Number(cost.value) : undefined),
    };
}

// ---- one limit ------------------------------------------------------------

function limitCard(limit, act) {
    const level = bar(`What remains of ${limit.name}`);
    level.element.classList.add("tall-bar");
    const verdict = h("span");
    const left = h("span", { class: "left" });
    const retry = h("dd");
    const reset = h("dd");
    const use = h("dd", { title: "Units that were taken from the key between the last polls. While there are some, the numbers are those of the last poll." });
    const blocked = h("p", { class: "blocked", hidden: true });
    const unblock = h("button", { type: "button", class: "small", onclick: () => act("unblock", limit) }, "Unblock");
    const nameable = Boolean(limit.naming);
    const actions = [["reset", "Reset"], ["penalize", "Penalize …"], ["block", "Block …"]].map(([verb, text]) => h("button", { type: "button", class: verb === "block" ? "small danger" : "small", disabled: !nameable, onclick: () => act(verb, limit) }, text));
    const facts = [limit.tier && `tier ${limit.tier}`, `${words(limit.algorithm)} ${limit.rate ?? ""}`, limit.consistency !== "local" && limit.consistency].filter(Boolean).join(" · ");
    const element = h("article", { class: "limit-card", "aria-label": `Limit ${limit.name}` },
        h("div", { class: "row" }, h("h3", {}, limit.name), limit.mode === "shadow" && badge("warn", "shadow"), h("span", { class: "note" }, facts), h("span", { class: "note mono push" }, limit.line ? `line ${limit.line}` : "added by PUT"), verdict),
        h("div", { class: "row" }, h("span", { class: "muted" }, "key"), h("code", {}, limit.key), limit.naming?.key.length === 0 && h("span", { class: "note" }, "one for all requests")),
        h("div", { class: "remaining" }, level.element, left), blocked,
        h("div", { class: "row" }, h("dl", { class: "inline" }, h("div", {}, h("dt", {}, "Retry"), retry), h("div", {}, h("dt", {}, "Reset"), reset), h("div", {}, h("dt", {}, "Use"), use)), h("div", { class: "row push" }, unblock, actions)));

    function update(state) {
        const { isBlocked, part, words: told } = state;
        if (verdict.dataset.verdict !== state.verdict) {
            verdict.dataset.verdict = state.verdict;
            fill(verdict, verdictBadge(state.verdict));
        }
        setText(left, told.left);
        level.set(part, told.left, isBlocked || part < 0.1 ? "bad" : part < 0.34 ? "warn" : "info");
        level.element.classList.add("tall-bar");
        setText(retry, told.retry);
        setText(reset, told.reset);
        setText(use, told.use);
        use.className = state.use ? "in-use" : "";
        blocked.hidden = !isBlocked;
        unblock.hidden = !isBlocked || !nameable;
        if (isBlocked) {
            setText(blocked, state.blocked_ms < 0 ? "■ Blocked until it is unblocked" : `■ Blocked for ${duration(state.blocked_ms)}, until ${when(Date.now() + state.blocked_ms)}`);
        }
    }
    return { element, update };
}

// ---- the result -----------------------------------------------------------

// The last polls of one limit's key.
function keyPolls() {
    let polls = [];
    let changed = false;
    return {
        add(poll) {
            polls = (changed ? [poll] : [...polls, poll]).slice(-POLLS_KEPT);
            changed = false;
        },
        // What an operator has taken from the key, or given to it, is no use.
        forget: () => {
            changed = true;
        },
        // Returns the state at a time of performance.now().
        at(time, item) {
            const last = polls.at(-1);
            const even = evenOf(last.answer.algorithm, item);
            return stateAt(last.answer, Math.max(0, time - last.came), even, useOf(polls, even));
        },
    };
}

// The verdict of all limits at one instant. What a limit denied is allowed when it has refilled, if no other denies it.
function overall(answer, states) {
    const met = answer.limits.filter((l) => l.applies);
    const denies = (i) => met[i].mode === "enforce" && states[i].verdict !== "allow" && states[i].verdict !== null;
    const own = met.findIndex((l) => l.name === answer.limit);
    if (answer.verdict === "allow" || answer.reason !== "limit" || own < 0 || denies(own)) {
        return answer;
    }
    const other = met.findIndex((l, i) => denies(i));
    return other < 0 ? { ...answer, verdict: "allow" } : { ...answer, verdict: states[other].verdict, limit: met[other].name };
}

export function results(act) {
    const top = h("div", { class: "verdict" });
    const cards = h("div", { class: "cards" });
    const others = table("Limits that do not apply", [["Limit"], ["Line", "num"], ["Why it does not apply"]]);
    const summary = h("summary", {});
    const rest = h("details", { class: "rest" }, summary, others.element);
    const start = empty("");
    const box = panel("What the request meets", {}, h("div", {}, start, top, cards, rest));
    let shape = "";
    let drawn = [];
    let answer = null;
    let items = new Map();
    const itemName = (name, tier) => `${name}\n${tier ?? ""}`;

    function build() {
        const met = answer.limits.filter((l) => l.applies);
        const missed = answer.limits.filter((l) => !l.applies);
        drawn = met.map((limit) => ({ card: limitCard(limit, act), polls: keyPolls(), item: itemName(limit.name, limit.tier) }));
        fill(cards, drawn.map((d) => d.card.element));
        rest.hidden = missed.length === 0;
        rest.open = missed.length <= OTHERS_OPEN;
        setText(summary, missed.length === 1 ? "1 limit does not apply" : `${plural(missed.length, "limit")} do not apply`);
        showOthers();
    }
    // A rule file may have thousands of limits: their rows are made when somebody looks.
    function showOthers() {
        fill(others.body, rest.open && answer ? answer.limits.filter((l) => !l.applies).map((l) => h("tr", {}, h("td", {}, l.name), h("td", { class: "num" }, l.line ?? "–"), h("td", {}, l.why))) : []);
    }
    rest.addEventListener("toggle", showOthers);

    function showTop(now) {
        const by = now.list ? `by the ${now.list} list` : now.limit ? (now.verdict === "allow" ? `scarcest: ${now.limit}` : `by ${now.limit}`) : "no limit applies";
        const text = JSON.stringify([now.verdict, by, now.reason, now.attributes]);
        if (top.dataset.text !== text) {
            top.dataset.text = text;
            fill(top, h("div", { class: "row" }, verdictBadge(now.verdict), h("span", {}, by), now.reason && now.reason !== "limit" && h("span", { class: "muted" }, words(now.reason))),
                h("div", { class: "row chips" }, Object.entries(now.attributes ?? {}).map(([name, value]) => h("span", { class: "chip" }, h("b", {}, name), String(value)))));
        }
    }
    // Verdicts and numbers are all of one instant, also that of the request as a whole.
    const tick = () => {
        if (answer) {
            const time = performance.now();
            const states = drawn.map(({ polls, item }) => polls.at(time, items.get(item)));
            drawn.forEach(({ card }, i) => card.update(states[i]));
            showTop(overall(answer, states));
        }
    };
    return {
        element: box,
        tick,
        items: () => items.size,
        setItems: (list) => {
            items = new Map(list.map((item) => [itemName(item.name, item.tier), item]));
        },
        forget: () => drawn.forEach(({ polls }) => polls.forget()),
        // `sent` is when the question was asked: a time of performance.now().
        set(next, sent) {
            answer = next;
            const came = performance.now();
            [start.hidden, top.hidden, cards.hidden] = [true, false, false];
            const now = JSON.stringify(next.limits.map((l) => [l.name, l.applies, l.key, l.naming, l.tier, l.mode, l.why, l.rate]));
            if (now !== shape) {
                shape = now;
                build();
            }
            next.limits.filter((l) => l.applies).forEach((l, i) => drawn[i].polls.add({ sent, came, answer: l }));
            tick();
        },
        clear(...shown) {
            answer = null;
            shape = "";
            fill(start, ...shown);
            [start.hidden, top.hidden, cards.hidden, rest.hidden] = [false, true, true, true];
        },
    };
}
