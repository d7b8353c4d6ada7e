// What was denied, and why: the reasons as series of the chart of requests, and the list of the keys that were denied most.

import { feed } from "./feed.js";
import { requestFor } from "./rules.js";
import { badge, bar, empty, fill, h, panel, setText, table } from "./dom.js";
import { exact, plural } from "./format.js";

// The reasons as the server names them, in the order of the chart. `series` is what the chart shows them as.
const LIMIT = { name: "denied", colour: "--deny", fill: "solid" };
const BAN = { name: "denied: ban", colour: "--deny-ban", fill: "cross" };
const BLOCK = { name: "denied: block", colour: "--deny-block", fill: "dots" };
const STORE = { name: "denied: store", colour: "--deny-store", fill: "back" };
const MISSING = { name: "denied: missing", colour: "--deny-missing", fill: "bars" };
const OTHER = { name: "denied: other", colour: "--deny-other", fill: "fade" };
const SERIES = [LIMIT, BAN, BLOCK, STORE, MISSING, OTHER];
const ALONE = { ...LIMIT, name: "denied: limit" }; // its name beside other reasons
const REASONS = {
    limit: { series: LIMIT, kind: "bad", about: "The key has used up the units of the limit." },
    ban: { series: BAN, kind: "bad", about: "The key is banned: it was denied too often." },
    blocked: { series: BLOCK, kind: "off", about: "The key is blocked by an operator." },
    block_list: { series: BLOCK, kind: "off", about: "The block list names the request." },
    store: { series: STORE, kind: "warn", about: "The store does not answer, and on_store_failure is closed: the limit denies every key." },
    missing: { series: MISSING, kind: "warn", about: "The request has no value for the key, and on_missing is deny." },
    overload: { series: OTHER, kind: "warn", about: "The table or the queue is full: this says nothing about the key." },
};

// The denied of a sample by reason: of all requests, or of one limit's decisions (without `limit`, which is the rest).
export const reasonsOf = (sample, limit) => (limit ? sample.limits_denied?.[limit] : sample.denied) ?? {};

// Returns which series these need: always that of limits, others where they have something.
export function deniedSeries(reasons) {
    const there = new Set(reasons.flatMap(Object.keys).map((reason) => REASONS[reason]?.series ?? OTHER));
    return SERIES.filter((series) => series === LIMIT || there.has(series));
}

// The series with the names that they have beside each other.
export const namedSeries = (list) => (list.length > 1 ? list.map((series) => (series === LIMIT ? ALONE : series)) : list);

// All that were denied, by reason, for each of the series. Those of limits are the rest, so that all of them are counted.
export function deniedOf(all, reasons, list) {
    const sums = new Map(list.map((series) => [series, 0]));
    let rest = all;
    Object.entries(reasons).forEach(([reason, n]) => {
        const series = REASONS[reason]?.series ?? OTHER;
        if (series !== LIMIT && sums.has(series)) {
            sums.set(series, sums.get(series) + n);
            rest -= n;
        }
    });
    sums.set(LIMIT, Math.max(0, rest));
    return list.map((series) => sums.get(series));
}

const covered = (seconds) => (seconds < 120 ? plural(seconds, "second") : plural(Math.round(seconds / 60), "minute"));

// The list of the time that `choice` has. `known` gives the rules, from which a request with the key is made: here the limit and
// the text of the key are known alone.
export function topDenied(choice, known) {
    const view = table("Keys that were denied most", [["Key"], ["Limit"], ["Reason"], ["Denied", "num"]]);
    const none = empty("No key has been denied");
    const hint = h("p", { class: "note denied-hint", hidden: true }, "Reason store: the store does not answer, so these limits deny everybody. These keys need not have done anything.");
    const box = panel("Denied most", { note: "estimated" }, none, hint, h("div", { class: "tall" }, view.element));
    const note = box.querySelector(".note");
    const rows = [];
    // Rows are changed in place, so that a link keeps the focus.
    const row = (n) => {
        const link = h("a");
        const level = bar("Share of the most", "bad");
        const [limit, reason, denied] = [h("td"), h("td"), h("td", { class: "num" })];
        rows[n] ??= { element: h("tr", {}, h("td", { class: "key" }, link, level.element), limit, reason, denied), link, level, limit, reason, denied };
        return rows[n];
    };
    function showReason(cell, reason) {
        if (cell.dataset.reason !== reason) {
            cell.dataset.reason = reason;
            cell.title = REASONS[reason]?.about ?? "";
            fill(cell, badge(REASONS[reason]?.kind ?? "off", reason.replace("_", " ")));
        }
    }
    function showRow(item, n, most) {
        const r = row(n);
        const nameless = item.reason === "missing" && item.key === "";
        setText(r.link, nameless ? "(no value)" : item.key);
        r.link.href = `#/keys?${requestFor(known().get(item.limit), item.key)}`;
        setText(r.limit, item.limit);
        showReason(r.reason, item.reason);
        setText(r.denied, exact(item.count));
        r.denied.title = item.error ? `at most ${exact(item.error)} too many` : "";
        r.level.set(item.count / (most || 1), exact(item.count), REASONS[item.reason]?.kind === "warn" ? "warn" : "bad");
        return r.element;
    }
    function update() {
        const top = feed.tops?.find((t) => t.minutes * 60 === choice.seconds);
        const list = (top?.denied ?? []).slice(0, 20);
        none.hidden = list.length > 0;
        view.element.hidden = list.length === 0;
        hint.hidden = !list.some((item) => item.reason === "store");
        setText(note, top ? `in the last ${covered(top.seconds)}, estimated${top.others > 0 ? `; any other key at most ${exact(top.others)}` : ""}` : "estimated");
        const shown = list.map((item, n) => showRow(item, n, list[0].count));
        if (shown.length !== view.body.children.length) {
            fill(view.body, shown);
        }
    }
    return { element: box, update, updateTop: update };
}
