// The table of limits in the live view: those that deny most per second come first, and idle ones are folded, so that of
// thousands of limits the one that matters is seen. `weir ctl limits` has the same order.

import { feed, samplesOf } from "./feed.js";
import { spark } from "./draw.js";
import { badge, bar, code, empty, fill, filterBox, h, panel, setText, table } from "./dom.js";
import { count, exact, percent, plural } from "./format.js";

export const ALL = ""; // the choice of all requests, where a limit's name could be
const OTHERS = "(others)"; // limits that a sample does not name, added up
const FEW = 12; // limits up to which none is folded
const ROWS = 25; // rows at first
const MORE = 100;
const ORDER_MS = 3000; // rows change their places at most this often
const LOAD_MS = 4000;
const LOAD_EACH_MS = 8; // thousands of limits are megabytes: they are loaded less often

// How often the list of all limits is loaded.
export const loadPause = (limits) => Math.max(LOAD_MS, LOAD_EACH_MS * limits);

const sum = (values) => values.reduce((a, b) => a + (b ?? 0), 0);

// /v1/limits has an item for each tier; a row of the table is a limit.
function byName(items) {
    const limits = new Map();
    items.forEach((item) => {
        const limit = limits.get(item.name) ?? { name: item.name, rates: [], keys: null, capacity: 0, blocks: 0, missing: 0, uncovered: 0, modes: new Set(), denied: item.denied_rate, decided: item.decided_rate };
        if (item.rate) {
            limit.rates.push(item.tier ? `${item.tier} ${item.rate}` : item.rate);
        }
        limit.keys = item.keys === null ? limit.keys : limit.keys + item.keys; // null: they are in the store
        limit.capacity += item.capacity;
        limit.blocks += item.blocks;
        limit.missing += item.missing;
        limit.uncovered += item.uncovered;
        limit.modes.add(item.mode);
        limits.set(item.name, limit);
    });
    return limits;
}

// ---- the order ------------------------------------------------------------

const RATE_S = 10; // as RATE_SPAN_S of the server

// Denials and decisions per second of about the last ten seconds, as the server counts them for /v1/limits.
function recentRates() {
    const rates = new Map();
    let last = 0;
    const step = (rate, value, seconds) => (rate * RATE_S + value) / (RATE_S + seconds);
    const rounded = (rate) => Math.round(100 * rate) / 100;

    function take(sample) {
        const seconds = last > 0 ? (sample.at_ms - last) / 1000 : 1;
        last = sample.at_ms;
        Object.keys(sample.limits).filter((name) => !rates.has(name)).forEach((name) => rates.set(name, [0, 0]));
        rates.forEach(([denied, decided], name) => {
            const now = sample.limits[name] ?? [0, 0, 0];
            const next = [step(denied, now[1], seconds), step(decided, sum(now), seconds)];
            if (next[1] < 0.005) {
                rates.delete(name);
            } else {
                rates.set(name, next);
            }
        });
    }
    return {
        update() {
            const first = feed.samples.findLastIndex((s) => s.at_ms <= last) + 1;
            feed.samples.slice(first).forEach(take);
        },
        of(name, item) {
            const rate = rates.get(name);
            return rate ? rate.map(rounded) : [item?.denied ?? 0, item?.decided ?? 0];
        },
    };
}

// By denials per second, then by decisions per second, then as they came, which is the order of the rule file.
function ordered(names, rateOf) {
    const rated = names.map((name, place) => ({ name, place, rate: name === OTHERS ? [-1, -1] : rateOf(name) }));
    return rated.sort((a, b) => b.rate[0] - a.rate[0] || b.rate[1] - a.rate[1] || a.place - b.place).map((r) => r.name);
}

// Puts the rows into this order. The row that has the focus stays where it is while the others move around it, because a
// row that is moved loses the focus.
function arrange(body, rows) {
    if (rows.length === body.children.length && rows.every((row, i) => body.children[i] === row)) {
        return;
    }
    const wanted = new Set(rows);
    [...body.children].filter((row) => !wanted.has(row)).forEach((row) => row.remove());
    const held = rows.findIndex((row) => row.contains(document.activeElement));
    rows.forEach((row, i) => {
        if (i !== held) {
            body.insertBefore(row, i < held ? rows[held] : null);
        }
    });
}

// ---- rows -----------------------------------------------------------------

// Columns of the class "wide" are not shown on a phone, where a line under the name has their numbers.
function limitRow(name, choice, admin) {
    const cells = {
        mode: h("span"),
        rate: h("td", { class: "rate wide" }),
        spark: h("canvas", { class: "spark", "aria-hidden": "true" }),
        deny: h("td", { class: "num" }),
        share: h("td", { class: "num" }),
        allow: h("td", { class: "num" }),
        shadow: h("td", { class: "num wide" }),
        missing: h("td", { class: "num wide" }),
        keys: h("span", { class: "num" }),
        level: bar(`Table of ${name}`),
        brief: h("div", { class: "brief note" }),
    };
    const button = h("button", { type: "button", class: "link", "aria-pressed": "false", title: `Show ${name} in the chart`, onclick: () => choice.choose(choice.limit === name ? ALL : name) }, name);
    const row = h("tr", {}, h("th", { scope: "row" }, h("span", { class: "name" }, button, cells.mode), cells.brief), admin && cells.rate, h("td", { class: "wide" }, cells.spark), cells.deny, cells.share, cells.allow, cells.shadow, admin && cells.missing,
        admin && h("td", { class: "wide" }, h("span", { class: "level" }, cells.keys, cells.level.element)));
    return { row, cells, button };
}

function showCount(cell, value, kind, place = "num") {
    setText(cell, count(value));
    cell.className = value > 0 ? `${place} ${kind}` : `${place} zero`;
}

function showItem(cells, item, shadowed) {
    if (!item) {
        setText(cells.brief, shadowed > 0 ? `${count(shadowed)}/s shadow` : "");
        return;
    }
    const rates = item.rates.join(", ") || "in each call";
    if (cells.rate.title !== rates) {
        cells.rate.title = rates;
        setText(cells.rate, rates);
    }
    const level = item.capacity ? item.keys / item.capacity : 0;
    showCount(cells.missing, item.missing, item.uncovered > 0 ? "c-shadow" : "", "num wide");
    cells.missing.title = `${exact(item.missing)} requests had no value for the key; to ${exact(item.uncovered)} of them no other limit of the group applied`;
    setText(cells.keys, item.keys === null ? "–" : count(item.keys));
    cells.level.element.hidden = item.capacity === 0;
    cells.level.set(level, `${item.keys} of ${item.capacity} keys`, level >= 0.9 ? "bad" : level >= 0.75 ? "warn" : "info");
    setText(cells.brief, [rates, item.keys !== null && `${count(item.keys)} ${item.keys === 1 ? "key" : "keys"}`, shadowed > 0 && `${count(shadowed)}/s shadow`, item.missing > 0 && `${count(item.missing)} missing`].filter(Boolean).join(" · "));
    const mode = `${item.modes.has("shadow")} ${item.blocks}`;
    if (cells.mode.dataset.mode !== mode) {
        cells.mode.dataset.mode = mode;
        fill(cells.mode, item.modes.has("shadow") && badge("warn", "shadow"), item.blocks > 0 && badge("bad", `${exact(item.blocks)} blocked`));
    }
}

// ---- the table ------------------------------------------------------------

const TITLES = (admin) => [["Limit"], admin && ["Rate", "wide"], ["Decisions", "picture wide"], ["Denied /s", "num"], ["Denied %", "num"], ["Allowed /s", "num"], ["Shadow /s", "num wide"], admin && ["Missing", "num wide"], admin && ["Keys", "wide"]].filter(Boolean);

// series: allowed, denied and shadow, as spark() draws them.
export function limitsTable(choice, api, admin, series) {
    const view = table("Limits", TITLES(admin));
    view.element.classList.add("limits");
    const none = empty("No decisions yet", "Limits appear here with their first request. Try: ", code("weir ask path=/search/cats user=alice ip=203.0.113.7"));
    const filter = filterBox("Filter limits", () => show(), { key: "/" });
    const folded = h("span", { class: "note", role: "status" });
    const more = h("button", {
        type: "button", class: "small",
        onclick: () => {
            extra += MORE;
            show();
        },
    });
    const fewer = h("button", {
        type: "button", class: "small",
        onclick: () => {
            extra = 0;
            show();
        },
    }, "Fold");
    const foot = h("div", { class: "row limits-foot" }, folded, more, fewer);
    const box = panel("Limits", { note: "those that deny most first", actions: [filter.element] }, none, view.element, foot);
    const rates = recentRates();
    let rows = new Map();
    let items = new Map();
    let order = [];
    let extra = 0;
    let orderedAt = 0;
    let generation = 0;
    let timer = 0;
    let closed = false;

    // The limits that have decided something in the time shown.
    function busyNames(samples) {
        const busy = new Set();
        samples.forEach((s) => Object.keys(s.limits).forEach((name) => busy.add(name)));
        items.forEach((item, name) => item.decided > 0 && busy.add(name));
        return busy;
    }

    // Rows keep their places under the pointer, and for some seconds.
    function sort(names) {
        const same = names.length === order.length && new Set([...names, ...order]).size === names.length;
        const busy = performance.now() - orderedAt < ORDER_MS || (matchMedia("(hover: hover)").matches && view.body.matches(":hover"));
        if (!same || !busy) {
            orderedAt = performance.now();
            order = ordered(names, (name) => rates.of(name, items.get(name)));
        }
    }

    function visible(busy) {
        const words = filter.input.value.trim().toLowerCase();
        const found = words ? order.filter((name) => name.toLowerCase().includes(words)) : order;
        const few = found.length <= FEW || words;
        const [used, idle] = [found.filter((name) => busy.has(name)), found.filter((name) => !busy.has(name))];
        const list = few || extra > 0 ? [...used, ...idle] : used;
        const shown = list.slice(0, ROWS + extra);
        if (found.includes(choice.limit) && !shown.includes(choice.limit)) {
            shown.push(choice.limit);
        }
        return { shown, found, idle };
    }

    function showFoot({ shown, found, idle }) {
        const hidden = found.length - shown.length;
        const idleHidden = idle.filter((name) => !shown.includes(name)).length;
        foot.hidden = hidden === 0 && extra === 0 && found.length > 0;
        more.hidden = hidden === 0;
        fewer.hidden = extra === 0;
        setText(more, `Show ${Math.min(MORE, hidden)} more`);
        setText(folded, found.length === 0 ? "No limit has such a name" : hidden === 0 ? `${plural(found.length, "limit")}, all shown` : `${exact(shown.length)} of ${plural(found.length, "limit")} shown; ${exact(idleHidden)} idle and ${exact(hidden - idleHidden)} in use are folded`);
    }

    // What the limit decides each second; one that the sample does not name, as /v1/limits has it.
    function lastOf(name, values, sample) {
        const item = items.get(name);
        const isOther = item && sample?.[OTHERS] && !sample[name];
        return isOther ? [item.decided - item.denied, item.denied, 0] : values.map((v) => v.at(-1) ?? 0);
    }

    function showRow(name, { cells, row, button }, data) {
        const values = [0, 1, 2].map((k) => data.limits.map((l) => l[name]?.[k] ?? 0));
        const last = lastOf(name, values, data.limits.at(-1));
        const [allowed, denied, shadowed] = values.map(sum);
        showCount(cells.allow, last[0], "");
        showCount(cells.deny, last[1], "c-deny");
        showCount(cells.shadow, last[2], "c-shadow", "num wide");
        setText(cells.share, percent(denied, allowed + denied + shadowed));
        spark(cells.spark, data.at, series.map((s, k) => ({ ...s, values: values[k] })), data.from, data.to);
        button.setAttribute("aria-pressed", String(choice.limit === name));
        row.classList.toggle("chosen", choice.limit === name);
        showItem(cells, items.get(name), last[2]);
    }

    function show() {
        const data = samplesOf(choice.seconds);
        const busy = busyNames(data.samples);
        const known = [...items.keys()].filter((name) => name !== "adhoc" || busy.has(name));
        sort([...known, ...[...busy].filter((name) => !items.has(name))]);
        const now = visible(busy);
        rows = new Map(now.shown.map((name) => [name, rows.get(name) ?? limitRow(name, choice, admin)]));
        arrange(view.body, [...rows.values()].map((r) => r.row));
        none.hidden = order.length > 0;
        view.element.hidden = now.shown.length === 0;
        filter.element.hidden = order.length <= FEW;
        showFoot(now);
        rows.forEach((row, name) => showRow(name, row, { ...data, limits: data.samples.map((s) => s.limits) }));
    }

    async function load() {
        clearTimeout(timer);
        try {
            items = byName((await api.get("v1/limits")).limits);
            show();
        } catch {
            // The banner tells that the server is gone; the next turn asks again.
        }
        if (!closed) {
            timer = setTimeout(load, loadPause(items.size));
        }
    }
    function update() {
        rates.update();
        const now = feed.samples.at(-1)?.generation ?? 0;
        if (admin && now !== generation) {
            generation = now;
            load();
        }
        show();
    }
    return {
        element: box,
        update,
        close() {
            closed = true;
            clearTimeout(timer);
            filter.close();
        },
    };
}
