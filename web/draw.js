// Charts over time on a canvas: areas that are stacked or lines, sharp on any screen. The value at a time is read with the
// pointer, or with the arrow keys as from a slider; a table gives the same numbers by the minute.

import { fill, h, setText } from "./dom.js";
import { clock, count } from "./format.js";

const GAP_MS = 2500; // Samples farther apart than this have a gap between them: the server did not run.
const FONT = 'px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';

const colours = new Map();
addEventListener("themechange", () => colours.clear());

// Returns the value of a variable of style.css: canvases do not know them.
export function colour(name) {
    if (!colours.has(name)) {
        colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    }
    return colours.get(name);
}

// Makes the canvas as fine as the screen. Returns its context, in CSS pixels, empty.
export function prepare(canvas, width, height) {
    const ratio = Math.min(4, window.devicePixelRatio || 1);
    const [w, hh] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== hh) {
        canvas.width = w;
        canvas.height = hh;
    }
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    return c;
}

// Calls draw at the next frame, once, however often it is asked for.
export function frame(draw) {
    let wanted = 0;
    const ask = () => {
        wanted ||= requestAnimationFrame(() => {
            wanted = 0;
            draw();
        });
    };
    ask.cancel = () => cancelAnimationFrame(wanted);
    return ask;
}

const rootSize = () => parseFloat(getComputedStyle(document.documentElement).fontSize);

// The smallest of 1, 2, 2.5, 5 times a power of ten that is not less than the value.
function nice(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return [1, 2, 2.5, 5, 10].find((n) => n * power >= value * 0.9999) * power;
}

function linearScale(most, least) {
    const high = Math.max(most * 1.04, least);
    const step = nice(high / 4);
    const top = step * Math.ceil(high / step);
    const ticks = [];
    for (let v = 0; v <= top * 1.001; v += step) {
        ticks.push(v);
    }
    return { ticks, part: (v) => v / top };
}

function logScale(least, most) {
    const low = Math.floor(Math.log10(Math.max(least, 1)));
    const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(most, 1)) - 0.02));
    const ticks = [];
    for (let p = low; p <= high; p++) {
        ticks.push(10 ** p);
    }
    return { ticks, part: (v) => (Math.log10(Math.max(v, 10 ** low)) - low) / (high - low) };
}

// Lines between neighbours; a gap in time or a missing value ends a line.
function runs(at, values) {
    const found = [];
    let run = [];
    values.forEach((v, i) => {
        if (run.length && (v === null || at[i] - at[i - 1] > GAP_MS)) {
            found.push(run);
            run = [];
        }
        if (v !== null) {
            run.push(i);
        }
    });
    return run.length ? [...found, run] : found;
}

const rising = (t) => [-6, 0, 6].forEach((x) => (t.moveTo(x, 6), t.lineTo(x + 6, 0)));
const falling = (t) => [-6, 0, 6].forEach((x) => (t.moveTo(x, 0), t.lineTo(x + 6, 6)));

// What is drawn into a tile of 6 by 6, which fills an area again and again. style.css has the same for legends.
const PATTERNS = {
    stripes: rising,
    back: falling,
    cross: (t) => (rising(t), falling(t)),
    bars: (t) => (t.moveTo(0, 3), t.lineTo(6, 3)),
    dots: (t) => [[0, 1.5], [3, 4.5]].forEach(([x, y]) => (t.moveTo(x, y), t.lineTo(x + 2, y))),
};

function pattern(c, paint, ink) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const t = tile.getContext("2d");
    t.strokeStyle = ink;
    t.lineWidth = 1.5;
    t.beginPath();
    paint(t);
    t.stroke();
    return c.createPattern(tile, "repeat");
}

// How the area of a series is filled: faint, solid or with a pattern, so that series differ in more than their colour.
function areaInk(c, series, height) {
    const ink = colour(series.colour);
    if (PATTERNS[series.fill]) {
        return pattern(c, PATTERNS[series.fill], ink);
    }
    if (series.fill === "solid") {
        return `${ink}c8`;
    }
    const fade = c.createLinearGradient(0, 0, 0, height);
    fade.addColorStop(0, `${ink}66`);
    fade.addColorStop(1, `${ink}14`);
    return fade;
}

function trace(c, run, x, y) {
    run.forEach((i, n) => (n === 0 ? c.moveTo(x(i), y(i)) : c.lineTo(x(i), y(i))));
}

// Draws one area between two functions of the index.
function drawArea(c, run, x, low, high, ink, line) {
    c.beginPath();
    trace(c, run, x, high);
    [...run].reverse().forEach((i) => c.lineTo(x(i), low(i)));
    c.closePath();
    c.fillStyle = ink;
    c.fill();
    if (line) {
        c.beginPath();
        trace(c, run, x, high);
        c.strokeStyle = line;
        c.stroke();
    }
}

// Draws areas on top of each other. All but the lowest are drawn only where they have something.
function stack(series, at, x, y, c, height, lines) {
    const floor = new Float64Array(at.length);
    series.forEach((s, k) => {
        if (!s.values.some((v) => v > 0)) {
            return;
        }
        const below = Float64Array.from(floor);
        s.values.forEach((v, i) => {
            floor[i] += v ?? 0;
        });
        const ink = areaInk(c, s, height);
        runs(at, k === 0 ? s.values : s.values.map((v, i, all) => (v || all[i - 1] || all[i + 1] ? v : null))).forEach((run) => drawArea(c, run, x, (i) => y(below[i]), (i) => y(floor[i]), ink, lines ? colour(s.colour) : null));
    });
}

// A small picture without axes, for a row of a table: series as for the chart, stacked.
export function spark(canvas, at, series, from, to) {
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width) {
        return;
    }
    const c = prepare(canvas, width, height);
    const most = Math.max(1, ...at.map((_, i) => series.reduce((sum, s) => sum + (s.values[i] ?? 0), 0)));
    c.lineWidth = 1;
    stack(series, at, (i) => ((at[i] - from) / (to - from)) * width, (v) => height - 1 - (v / most) * (height - 2), c, height, true);
    c.fillStyle = colour("--line");
    c.fillRect(0, height - 1, width, 1);
}

// Without zeros at the end: 1.5k, not 1.50k.
const plain = (text) => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");

const STEPS_S = [10, 15, 30, 60, 120, 180, 300, 600];

/*
 * A chart. series: [{name, colour: "--variable", fill: "fade"|"solid"|a pattern}]; set() gives their values. log: a scale by
 * powers of ten, and lines instead of areas. format: of values. rem: height in root sizes.
 */
export function timeChart({ label, series, format = count, log = false, least = 10, rem = 15 }) {
    const canvas = h("canvas", { "aria-hidden": "true" });
    const tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    const box = h("div", { class: "chart", tabIndex: 0, role: "slider", "aria-label": label, "aria-orientation": "horizontal", "aria-valuemin": "0", "aria-valuemax": "0", "aria-valuenow": "0", "aria-valuetext": "no samples yet" }, canvas, tip);
    box.style.height = `${rem}rem`;
    const legend = h("ul", { class: "legend" });
    const details = h("details", { class: "as-table", ontoggle: () => showTable() }, h("summary", {}, "Table"));
    let data = { at: [], values: [], from: 0, to: 1, marks: [] };
    let chosen = -1; // the index of the sample that is read, or -1
    let pinned = 0; // the time that the keyboard has chosen, or 0: the newest
    let area = null;

    const shown = () => series.map((s, k) => ({ ...s, values: data.values[k] ?? [] }));
    const readout = (i) => `${clock(data.at[i])}: ${series.map((s, k) => `${s.name} ${data.values[k][i] === null ? "none" : format(data.values[k][i])}`).join(", ")}`;

    function scale() {
        const sums = log ? [] : data.at.map((_, i) => data.values.reduce((sum, v) => sum + (v[i] ?? 0), 0));
        const all = log ? data.values.flat().filter((v) => v > 0) : sums;
        const most = all.reduce((a, b) => Math.max(a, b), 0);
        return log ? logScale(all.reduce((a, b) => Math.min(a, b), most || 10), most || 1000) : linearScale(most, least);
    }

    function axes(c, { left, top, width, height }, size) {
        c.textBaseline = "middle";
        c.textAlign = "right";
        area.scale.ticks.forEach((tick) => {
            const y = Math.round(area.y(tick)) + 0.5;
            c.fillStyle = colour(tick === area.scale.ticks[0] ? "--line" : "--line-soft");
            c.fillRect(left, y - 0.5, width, 1);
            c.fillStyle = colour("--muted");
            c.fillText(plain(format(tick)), left - 8, y);
        });
        c.textAlign = "center";
        c.textBaseline = "alphabetic";
        const span = (data.to - data.from) / 1000;
        const fits = Math.max(2, Math.floor(width / (size * 6)));
        const step = (STEPS_S.find((s) => span / s <= fits) ?? 600) * 1000;
        const zone = new Date(data.from).getTimezoneOffset() * 60000;
        for (let t = Math.ceil((data.from - zone) / step) * step + zone; t <= data.to; t += step) {
            const x = area.x(t);
            c.fillStyle = colour("--line");
            c.fillRect(Math.round(x), top + height, 1, 4);
            c.fillStyle = colour("--muted");
            if (x - left > size * 1.6 && left + width - x > size * 1.2) {
                c.fillText(clock(t, step < 60000), x, top + height + size + 7);
            }
        }
    }

    function marks(c, { top, height }) {
        data.marks.filter((m) => m.at >= data.from && m.at <= data.to).forEach((m) => {
            const x = Math.round(area.x(m.at)) + 0.5;
            c.strokeStyle = c.fillStyle = colour(m.bad ? "--deny" : "--muted");
            c.setLineDash([2, 3]);
            c.beginPath();
            c.moveTo(x, top);
            c.lineTo(x, top + height);
            c.stroke();
            c.setLineDash([]);
            c.beginPath();
            c.moveTo(x - 4, top - 6);
            c.lineTo(x + 4, top - 6);
            c.lineTo(x, top);
            c.fill();
        });
    }

    function lines(c) {
        shown().forEach((s) => {
            c.strokeStyle = colour(s.colour);
            c.lineWidth = 1.5;
            c.lineJoin = "round";
            c.beginPath();
            runs(data.at, s.values).forEach((run) => {
                trace(c, run, (i) => area.x(data.at[i]), (i) => area.y(s.values[i]));
                if (run.length === 1) {
                    c.lineTo(area.x(data.at[run[0]]) + 1.5, area.y(s.values[run[0]]));
                }
            });
            c.stroke();
        });
    }

    function draw() {
        const { clientWidth: wide, clientHeight: high } = box;
        if (!wide) {
            return;
        }
        const size = Math.round(rootSize() * 0.8);
        const c = prepare(canvas, wide, high);
        const s = scale();
        c.font = size + FONT;
        const left = Math.max(...s.ticks.map((tick) => c.measureText(plain(format(tick))).width)) + 10;
        const at = { left, top: 10, width: wide - left - 8, height: high - 10 - size * 2 };
        area = { ...at, scale: s, x: (t) => at.left + ((t - data.from) / (data.to - data.from)) * at.width, y: (v) => at.top + at.height * (1 - s.part(v)) };
        axes(c, at, size);
        c.save();
        c.beginPath();
        c.rect(at.left, 0, at.width + 2, at.top + at.height + 1);
        c.clip();
        c.lineWidth = 1.25;
        if (log) {
            lines(c);
        } else {
            stack(shown(), data.at, (i) => area.x(data.at[i]), area.y, c, at.top + at.height, true);
        }
        marks(c, at);
        c.restore();
        if (!data.values.some((values) => values.some((v) => v > 0))) {
            c.textAlign = "center";
            c.fillStyle = colour("--muted");
            c.fillText("no requests in this time", at.left + at.width / 2, at.top + at.height / 2);
        }
        if (chosen >= 0) {
            point(c, at);
        }
    }

    function point(c, { top, height }) {
        const x = area.x(data.at[chosen]);
        c.fillStyle = colour("--muted");
        c.fillRect(Math.round(x), top, 1, height);
        let sum = 0;
        series.forEach((s, k) => {
            const v = data.values[k][chosen];
            sum = log ? v : sum + (v ?? 0);
            if (v !== null && (log || v > 0)) {
                c.beginPath();
                c.arc(x, area.y(sum), 3.5, 0, 7);
                c.fillStyle = colour(s.colour);
                c.fill();
                c.strokeStyle = colour("--panel");
                c.lineWidth = 1.5;
                c.stroke();
            }
        });
    }

    const redraw = frame(draw);

    function showTip() {
        tip.hidden = chosen < 0 || !area;
        if (tip.hidden) {
            return;
        }
        const mark = data.marks.find((m) => Math.abs(m.at - data.at[chosen]) < (data.to - data.from) / 150);
        fill(tip, h("div", { class: "tip-time" }, clock(data.at[chosen])),
            series.map((s, k) => h("div", { class: "tip-row" }, swatch(s), s.name, h("b", {}, data.values[k][chosen] === null ? "–" : format(data.values[k][chosen])))).reverse(),
            mark && h("div", { class: "tip-time" }, mark.text));
        const x = area.x(data.at[chosen]);
        const right = x > box.clientWidth / 2;
        tip.style.left = right ? "auto" : `${x + 12}px`;
        tip.style.right = right ? `${box.clientWidth - x + 12}px` : "auto";
    }

    function choose(i) {
        chosen = i;
        showTip();
        redraw();
        if (i >= 0) {
            box.setAttribute("aria-valuenow", String(i));
            box.setAttribute("aria-valuetext", readout(i));
        }
    }

    const nearest = (t) => data.at.reduce((best, at, i) => (best < 0 || Math.abs(at - t) < Math.abs(data.at[best] - t) ? i : best), -1);

    function onkeydown(event) {
        const n = data.at.length;
        const now = chosen < 0 ? n - 1 : chosen;
        const page = Math.max(1, Math.round(n / 15));
        const to = { ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1, PageDown: now - page, PageUp: now + page, Home: 0, End: n - 1, Escape: -1 }[event.key];
        if (to === undefined || n === 0) {
            return;
        }
        event.preventDefault();
        const i = event.key === "Escape" ? -1 : Math.max(0, Math.min(n - 1, to));
        pinned = i < 0 || i === n - 1 ? 0 : data.at[i];
        choose(i);
    }

    let hover = -1; // the pointer's place in the box
    box.addEventListener("pointermove", (event) => {
        hover = event.clientX - box.getBoundingClientRect().left;
        choose(area ? nearest(data.from + ((hover - area.left) / area.width) * (data.to - data.from)) : -1);
    });
    box.addEventListener("pointerleave", () => {
        hover = -1;
        choose(-1);
    });
    box.addEventListener("keydown", onkeydown);
    box.addEventListener("blur", () => {
        pinned = 0;
        choose(hover < 0 ? -1 : chosen);
    });

    // One row for each minute: the mean of sums, the most of what is measured.
    function showTable() {
        if (!details.open) {
            return;
        }
        const minutes = new Map();
        data.at.forEach((at, i) => {
            const minute = Math.floor(at / 60000) * 60000;
            minutes.set(minute, [...(minutes.get(minute) ?? []), i]);
        });
        const value = (k, list) => {
            const known = list.map((i) => data.values[k][i]).filter((v) => v !== null);
            return known.length === 0 ? "–" : format(log ? Math.max(...known) : known.reduce((a, b) => a + b, 0) / known.length);
        };
        const rows = [...minutes].reverse().map(([minute, list]) => h("tr", {}, h("td", {}, clock(minute, false)), series.map((_, k) => h("td", { class: "num" }, value(k, list)))));
        details.querySelector("div")?.remove();
        details.append(h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": `${label}, by the minute` }, h("table", { class: "data" },
            h("caption", { class: "unseen" }, `${label}, ${log ? "highest" : "mean"} of each minute`),
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, log ? "Minute (highest)" : "Minute (mean)"), series.map((s) => h("th", { scope: "col", class: "num" }, s.name)))), h("tbody", {}, rows))));
    }

    function showLegend() {
        const last = data.at.length - 1;
        if (legend.children.length !== series.length) {
            fill(legend, series.map((s) => h("li", {}, swatch(s), s.name, h("b", {}))));
        }
        series.forEach((s, k) => setText(legend.children[k].lastChild, last < 0 || data.values[k][last] === null ? "–" : format(data.values[k][last])));
    }

    const observer = new ResizeObserver(redraw);
    observer.observe(box);
    addEventListener("themechange", redraw);
    return {
        element: h("div", { class: "chart-box" }, legend, box, details),
        set(next) {
            data = { marks: [], ...next };
            box.setAttribute("aria-valuemax", String(Math.max(0, data.at.length - 1)));
            showLegend();
            if (hover >= 0 && area) {
                chosen = nearest(data.from + ((hover - area.left) / area.width) * (data.to - data.from));
            } else if (chosen >= 0) {
                chosen = pinned ? nearest(pinned) : data.at.length - 1;
            }
            if (document.activeElement !== box && data.at.length > 0) {
                box.setAttribute("aria-valuenow", String(data.at.length - 1));
                box.setAttribute("aria-valuetext", readout(data.at.length - 1));
            }
            showTip();
            redraw();
        },
        setSeries(next, newLabel) {
            series = next;
            label = newLabel;
            box.setAttribute("aria-label", label);
            fill(legend);
        },
        showTable,
        close() {
            observer.disconnect();
            removeEventListener("themechange", redraw);
            redraw.cancel();
        },
    };
}

export function swatch(series) {
    const box = h("span", { class: `swatch ${series.fill ?? "line"}`, "aria-hidden": "true" });
    box.style.setProperty("--ink", `var(${series.colour})`);
    return box;
}
