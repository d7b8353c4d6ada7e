// The timeline of the playground: what was allowed and denied, and how much within each period. As in play_pictures.js, it
// shows answers of the engine and decides nothing.

import { USUAL_PX, cross, prepare, text } from "./play_pictures.js";

// The most that was admitted within any one period, as far as the marks reach, and what it is at each change:
// [[time, units], ...]. A call counts from the time at which its caller acts.
export function rolling(card, scene) {
    const acts = card.marks.filter((m) => m.allowed && m.acts <= scene.now).sort((a, b) => a.acts - b.acts);
    const changes = [];
    let sum = 0,
        most = 0,
        oldest = 0;
    const leave = (until) => {
        while (oldest < acts.length && acts[oldest].acts + scene.period <= until) {
            sum -= acts[oldest].cost;
            changes.push([acts[oldest].acts + scene.period, sum]);
            oldest++;
        }
    };
    for (const mark of acts) {
        leave(mark.acts);
        sum += mark.cost;
        most = Math.max(most, sum);
        changes.push([mark.acts, sum]);
    }
    leave(scene.now);
    return { changes, most, sum };
}

// Whether the algorithm lets more than its quota pass within a period by design: a bucket fills up again meanwhile.
const refills = (card) => card.algorithm === "token_bucket" || card.algorithm === "leaky_bucket";

// Says the most that was admitted within a period, and of what it consists if it is more than the quota.
export function mostWords(card, most, before = "most within a period ") {
    if (most <= card.quota || !refills(card)) {
        return `${before}${most}, quota ${card.quota}`;
    }
    return card.algorithm === "token_bucket" ? `${before}${most}: burst ${card.quota} + refill ${most - card.quota}` : `${before}${most}: the queue leaves at the rate`;
}

const ROW = 74;
export const timelineHeight = (rows) => (26 + rows * ROW) / USUAL_PX; // in rem

function steps(g, changes, x, y, from, to) {
    let before = 0;
    for (const [at, sum] of changes) {
        if (at <= from) {
            before = sum;
        }
    }
    g.moveTo(x(from), y(0));
    g.lineTo(x(from), y(before));
    for (const [at, sum] of changes) {
        if (at <= from) {
            continue;
        }
        g.lineTo(x(at), y(before));
        g.lineTo(x(at), y(sum));
        before = sum;
    }
    g.lineTo(x(to), y(before));
    g.lineTo(x(to), y(0));
}

function row(g, card, scene, sums, tallest, top, x, from, right) {
    const c = scene.colours,
        base = top + ROW - 26,
        high = ROW - 42;
    const { changes, most } = sums;
    const y = (units) => base - (high * units) / tallest;
    // What was admitted within the last period, at each moment; amber where a window lets more than its quota pass.
    const shape = () => {
        g.beginPath();
        steps(g, changes, x, y, from, scene.now);
    };
    shape();
    g.fillStyle = c.soft;
    g.fill();
    g.save();
    g.beginPath();
    g.rect(x(from), top - 12, x(scene.now) - x(from), y(card.quota) - top + 12);
    g.clip();
    shape();
    g.fillStyle = refills(card) ? c.soft : c.over;
    g.fill();
    g.restore();
    g.setLineDash([4, 4]);
    g.strokeStyle = c.dim;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(x(from), y(card.quota));
    g.lineTo(right, y(card.quota));
    g.stroke();
    g.setLineDash([]);
    // The calls: allowed above the line, denied below it.
    g.lineWidth = 2;
    for (const mark of card.marks) {
        if (mark.allowed && mark.acts > from && mark.acts <= scene.now) {
            g.strokeStyle = c.allow;
            g.beginPath();
            g.moveTo(x(mark.acts), base);
            g.lineTo(x(mark.acts), base - 11);
            g.stroke();
        } else if (!mark.allowed && mark.at > from) {
            g.strokeStyle = c.deny;
            cross(g, x(mark.at), base + 7, 2.5);
        }
    }
    g.strokeStyle = c.line;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(x(from), base + 0.5);
    g.lineTo(right, base + 0.5);
    g.stroke();
    text(g, card.label, x(from) + 2, top + 2, c.ink);
    const room = right - x(from) - g.measureText(card.label).width - 16;
    const words = g.measureText(mostWords(card, most)).width <= room ? mostWords(card, most) : mostWords(card, most, "most ");
    text(g, words, right - 2, top + 2, most > card.quota && !refills(card) ? c.warn : c.dim, "right");
}

// All cards, one above the other, over the same time: up to `span` until now, but not before the beginning.
export function drawTimeline(canvas, cards, scene, span) {
    const { g, width } = prepare(canvas);
    if (!width) {
        return;
    }
    const c = scene.colours;
    const from = Math.max(scene.now - span, scene.begin);
    const x = (at) => 8 + ((width - 16) * (at - from)) / span;
    const bottom = cards.length * ROW + 4;
    g.strokeStyle = c.line;
    g.lineWidth = 1;
    for (let k = Math.ceil(from / scene.period); x(k * scene.period) < width; k++) {
        g.setLineDash([2, 5]);
        g.beginPath();
        g.moveTo(x(k * scene.period), 4);
        g.lineTo(x(k * scene.period), bottom);
        g.stroke();
        text(g, scene.label(k * scene.period), Math.min(Math.max(x(k * scene.period), 16), width - 24), bottom + 16, c.dim, "center");
    }
    g.setLineDash([]);
    // All rows have one scale, so that they can be compared.
    const sums = cards.map((card) => rolling(card, scene));
    const tallest = Math.max(1, ...cards.map((card, i) => Math.max(sums[i].most, 1.15 * card.quota)));
    cards.forEach((card, i) => row(g, card, scene, sums[i], tallest, 14 + i * ROW, x, from, width - 8));
    g.strokeStyle = c.ink;
    g.lineWidth = 1.5;
    g.beginPath();
    g.moveTo(x(scene.now), 4);
    g.lineTo(x(scene.now), bottom);
    g.stroke();
}
