// Pictures of the playground on canvas, one for each algorithm.
//
// They show answers of the engine and decide nothing. Between two answers they only let time pass: what the engine says is
// full again in 800 ms is drawn as full 800 ms later. All times are those of the sandbox, in milliseconds.
//
// What a picture gets:
//   card   {algorithm, quota, remaining, left (units, with the fraction that has come back), marks, sparks}
//   marks  decisions, oldest first: {at, cost, allowed, acts (when the caller acts: later than `at` in a queue)}
//   scene  {now, step (time in which a unit comes back), period, colours, motion (false: no decoration), clock (real ms)}

const TAU = 2 * Math.PI;

// On large screens the style sheet makes text larger than this, and pictures grow with it.
export const USUAL_PX = 14;

// Makes the canvas as sharp as the screen, and returns what draws on it in CSS pixels of a screen of usual size.
export function prepare(canvas) {
    const larger = parseFloat(getComputedStyle(document.documentElement).fontSize) / USUAL_PX;
    const scale = Math.min(window.devicePixelRatio || 1, 3) * larger;
    const width = canvas.clientWidth / larger,
        height = canvas.clientHeight / larger;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(height * scale);
    }
    const g = canvas.getContext("2d");
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = "12px system-ui, sans-serif";
    g.lineCap = "round";
    return { g, width, height };
}

// The colours of the style sheet's theme.
const COLOURS = {
    ink: "--text",
    dim: "--muted",
    line: "--line",
    panel: "--panel",
    allow: "--allow",
    soft: "--accent-soft",
    deny: "--deny",
    over: "--shadow", warn: "--warn",
};
export function colours() {
    const style = getComputedStyle(document.documentElement);
    return Object.fromEntries(Object.entries(COLOURS).map(([name, variable]) => [name, style.getPropertyValue(variable).trim()]));
}

function disc(g, x, y, r) {
    g.beginPath();
    g.arc(x, y, r, 0, TAU);
    g.fill();
}

export function cross(g, x, y, r) {
    g.beginPath();
    g.moveTo(x - r, y - r);
    g.lineTo(x + r, y + r);
    g.moveTo(x + r, y - r);
    g.lineTo(x - r, y + r);
    g.stroke();
}

export function text(g, words, x, y, colour, align = "left") {
    g.fillStyle = colour;
    g.textAlign = align;
    g.fillText(words, x, y);
}

// ---- buckets ----

// A vessel is wider at its top. Its inside at height y reaches this far from the middle.
function vessel(width, height, wide, narrow) {
    const top = 34;
    const bottom = height - 30;
    const half = (y) => narrow + ((wide - narrow) * (bottom - y)) / (bottom - top);
    return { middle: width / 2, top, bottom, wide, narrow, half };
}

function outline(g, v) {
    g.beginPath();
    g.moveTo(v.middle - v.wide, v.top);
    g.lineTo(v.middle - v.narrow, v.bottom - 8);
    g.quadraticCurveTo(v.middle - v.narrow + 1, v.bottom, v.middle - v.narrow + 10, v.bottom);
    g.lineTo(v.middle + v.narrow - 10, v.bottom);
    g.quadraticCurveTo(v.middle + v.narrow - 1, v.bottom, v.middle + v.narrow, v.bottom - 8);
    g.lineTo(v.middle + v.wide, v.top);
}

// How far from its age of 0 to its end (1) a spark is, or 1 if it is over.
const SPARK_MS = 550;
const age = (spark, scene) => Math.min((scene.clock - spark.born) / SPARK_MS, 1);
export const live = (spark, clock) => clock - spark.born < SPARK_MS;

function flash(card, scene) {
    // 1 right after a denial, 0 soon after
    let most = 0;
    for (const spark of card.sparks) {
        if (!spark.allowed) {
            most = Math.max(most, 1 - age(spark, scene));
        }
    }
    return most;
}

// Denied calls bounce off the rim at (x, y).
function bounces(g, card, scene, x, y) {
    if (!scene.motion) {
        return;
    }
    g.strokeStyle = scene.colours.deny;
    g.lineWidth = 2.5;
    card.sparks.forEach((spark, i) => {
        if (spark.allowed) {
            return;
        }
        const t = age(spark, scene),
            side = i % 2 ? 1 : -1;
        g.globalAlpha = 1 - t;
        cross(g, x + side * (8 + 46 * t), y - 26 * Math.sin(Math.PI * Math.min(t * 1.15, 1)) + 8 * t, 5);
    });
    g.globalAlpha = 1;
}

function rim(g, v, card, scene) {
    const hit = flash(card, scene);
    outline(g, v);
    g.strokeStyle = hit > 0.05 ? scene.colours.deny : scene.colours.ink;
    g.lineWidth = 2.5 + 2 * hit;
    g.stroke();
}

// The units of a bucket as lines on its side, while there are few enough to tell them apart.
function scale(g, v, units, scene) {
    if (units > 40) {
        return;
    }
    g.strokeStyle = scene.colours.ink;
    g.globalAlpha = 0.5;
    for (let i = 1; i <= units; i++) {
        const y = v.bottom - ((v.bottom - v.top - 8) * i) / units;
        const long = units <= 10 || i % 5 === 0;
        g.lineWidth = 1;
        g.beginPath();
        g.moveTo(v.middle + v.half(y) - (long ? 10 : 6), y);
        g.lineTo(v.middle + v.half(y) - 2, y);
        g.stroke();
    }
    g.globalAlpha = 1;
}

function waves(g, v, level, scene, stir, colour) {
    const y0 = v.bottom - (v.bottom - v.top - 8) * level;
    const height = scene.motion && level > 0 ? 1.2 + 3 * stir : 0;
    const half = v.half(y0);
    g.save();
    outline(g, v);
    g.closePath();
    g.clip();
    const fill = g.createLinearGradient(0, y0 - 4, 0, v.bottom);
    fill.addColorStop(0, colour + "b0");
    fill.addColorStop(0.4, colour);
    g.fillStyle = fill;
    g.beginPath();
    g.moveTo(v.middle - half - 4, v.bottom + 2);
    for (let x = -half - 4; x <= half + 4; x += 4) {
        g.lineTo(v.middle + x, y0 + height * Math.sin(x / 13 + scene.clock / 260));
    }
    g.lineTo(v.middle + half + 4, v.bottom + 2);
    g.fill();
    g.restore();
    return y0;
}

// Token bucket: water is what may be spent. It runs in through a tap and out, a unit at a time, when a call is allowed.
function tokenBucket(g, width, height, card, scene) {
    const wide = Math.min(width * 0.36, 110);
    const v = vessel(width, height, wide, wide * 0.76);
    const c = scene.colours;
    const stir = card.sparks.reduce((most, s) => Math.max(most, s.allowed ? 1 - age(s, scene) : 0), 0);
    const level = card.quota ? Math.min(card.left / card.quota, 1) : 0;
    // The tap, and the unit that is on its way.
    g.fillStyle = c.dim;
    g.fillRect(v.middle - 5, 0, 10, 9);
    g.fillRect(v.middle - 9, 8, 18, 4);
    const y0 = waves(g, v, level, scene, stir, c.allow);
    if (card.left < card.quota) {
        const part = card.left - Math.floor(card.left);
        g.fillStyle = c.allow;
        if (scene.motion && scene.step / scene.speed > 120) {
            // slow enough for single drops
            const fall = Math.max(0, (part - 0.55) / 0.45);
            disc(g, v.middle, 15 + (y0 - 17) * fall * fall, 2.5 + 2.5 * Math.min(part / 0.55, 1));
        } else {
            g.fillRect(v.middle - 2, 12, 4, Math.max(y0 - 12, 0));
        }
    }
    scale(g, v, card.quota, scene);
    // The line that the water must reach for a call.
    if (card.quota > 1 && card.quota <= 40) {
        const y = v.bottom - (v.bottom - v.top - 8) * Math.min(card.cost / card.quota, 1);
        g.setLineDash([3, 4]);
        g.strokeStyle = card.remaining >= card.cost ? c.dim : c.deny;
        g.lineWidth = 1.5;
        g.beginPath();
        g.moveTo(v.middle - v.half(y) + 3, y);
        g.lineTo(v.middle + v.half(y) - 3, y);
        g.stroke();
        g.setLineDash([]);
    }
    rim(g, v, card, scene);
    if (scene.motion) {
        // units that are spent fall out of the bucket
        g.fillStyle = c.allow;
        for (const spark of card.sparks) {
            if (!spark.allowed) {
                continue;
            }
            const t = age(spark, scene);
            g.globalAlpha = 1 - t * t;
            disc(g, v.middle + spark.drift * 26 * t, v.bottom + 4 + 30 * t * t, 5);
        }
        g.globalAlpha = 1;
    }
    bounces(g, card, scene, v.middle, v.top - 4);
}

// Leaky bucket: the calls themselves are in it. Each sinks to the hole and leaves at the time that its answer named.
function leakyBucket(g, width, height, card, scene) {
    const v = vessel(width, height, 52, 30);
    const c = scene.colours;
    const unit = (v.bottom - v.top - 8) / Math.max(card.quota, 1);
    const r = Math.max(2.5, Math.min(unit * 0.42, 13));
    const lead = Math.max(card.quota - card.left, 0);
    waves(g, v, Math.min(lead / Math.max(card.quota, 1), 1), scene, 0, c.soft);
    scale(g, v, card.quota, scene);
    // The hole.
    g.clearRect(v.middle - 9, v.bottom - 3, 18, 6);
    rim(g, v, card, scene);
    g.strokeStyle = c.panel;
    g.lineWidth = 7;
    g.beginPath();
    g.moveTo(v.middle - r, v.bottom);
    g.lineTo(v.middle + r, v.bottom);
    g.stroke();
    g.fillStyle = c.allow;
    const gone = scene.motion ? 420 * scene.speed : 0;
    for (let i = card.marks.length - 1; i >= 0; i--) {
        const mark = card.marks[i];
        if (!mark.allowed) {
            continue;
        }
        const wait = mark.acts - scene.now;
        if (wait < -gone) {
            break;
        }
        if (wait > 0) {
            const y = v.bottom - r - 1 - (wait / scene.step) * unit;
            disc(g, v.middle, Math.max(y, v.top - r), r);
        } else {
            const t = gone ? -wait / gone : 1;
            g.globalAlpha = 1 - t * t;
            disc(g, v.middle, v.bottom - r + 2 * r * Math.min(t * 4, 1) + 26 * t * t, Math.min(r, 7));
            g.globalAlpha = 1;
        }
    }
    bounces(g, card, scene, v.middle, v.top - 4);
}

// ---- windows ----

const DOT = 7; // distance of two dots

// A strip of time with "now" at a fixed place: the past slides to the left.
function strip(width, height, scene) {
    const right = width - 46,
        now = right * 0.62,
        past = 1.75 * scene.period,
        perMs = now / past;
    return { left: 6, right, now, perMs, base: height - 46, top: 30, x: (at) => now + (at - scene.now) * perMs };
}

// Dots that lie at the same place are stacked. Calls back with the place of each mark that is in sight.
function stacked(s, card, scene, draw) {
    const quantum = DOT / s.perMs,
        heights = new Map();
    const from = scene.now - (s.now - s.left) / s.perMs;
    for (const mark of card.marks) {
        if (mark.at < from) {
            continue;
        }
        const column = Math.floor(mark.at / quantum);
        const id = mark.allowed ? column : -1 - column;
        const n = heights.get(id) || 0;
        heights.set(id, n + 1);
        draw(mark, s.x((column + 0.5) * quantum), n);
    }
}

function dots(g, s, card, scene, inside) {
    const c = scene.colours;
    const room = Math.max(Math.floor((s.base - s.top - 6) / DOT), 1);
    g.lineWidth = 1.6;
    stacked(s, card, scene, (mark, x, n) => {
        if (mark.allowed) {
            if (n >= room) {
                return;
            }
            const fresh = scene.motion ? Math.max(0, 1 - (scene.clock - mark.born) / 220) : 0;
            g.fillStyle = inside(mark) ? c.allow : c.dim;
            disc(g, x, s.base - 5 - n * DOT, 3 + 3 * fresh);
        } else if (n < 3) {
            g.strokeStyle = c.deny;
            cross(g, x, s.base + 8 + n * DOT, 2.5);
        }
    });
}

function baseline(g, s, scene) {
    const c = scene.colours;
    g.strokeStyle = c.line;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(s.left, s.base);
    g.lineTo(s.right, s.base);
    g.stroke();
}

function nowLine(g, s, scene) {
    const c = scene.colours;
    g.strokeStyle = c.ink;
    g.lineWidth = 2;
    g.beginPath();
    g.moveTo(s.now, s.top - 6);
    g.lineTo(s.now, s.base + 27);
    g.stroke();
    text(g, "now", s.now, s.base + 38, c.dim, "center");
}

// A vessel of `quota` units at the right; what is used fills it. The height follows the answers, softly.
function gauge(g, width, height, card, scene) {
    const c = scene.colours,
        x = width - 34,
        w = 24,
        top = 24,
        bottom = height - 46;
    const hit = flash(card, scene);
    const used = Math.max(0, card.quota - card.remaining);
    if (card.shown === undefined || !scene.motion) {
        card.shown = used;
    }
    card.shown += (used - card.shown) * 0.3;
    const part = card.quota ? Math.min(card.shown / card.quota, 1) : 0;
    g.fillStyle = used >= card.quota ? c.over : c.allow;
    g.fillRect(x, bottom - (bottom - top) * part, w, (bottom - top) * part);
    if (card.quota <= 30) {
        g.strokeStyle = c.panel;
        g.lineWidth = 1.5;
        for (let i = 1; i < card.quota; i++) {
            const y = bottom - ((bottom - top) * i) / card.quota;
            g.beginPath();
            g.moveTo(x, y);
            g.lineTo(x + w, y);
            g.stroke();
        }
    }
    g.strokeStyle = hit > 0.05 ? c.deny : c.ink;
    g.lineWidth = 2 + 2 * hit;
    g.strokeRect(x, top, w, bottom - top);
    text(g, "used", x + w / 2, bottom + 16, c.dim, "center");
    bounces(g, card, scene, x + w / 2, top - 4);
}

function frame(g, x0, x1, s, colour, fill) {
    g.fillStyle = fill;
    g.globalAlpha = 0.35;
    g.fillRect(x0, s.top, x1 - x0, s.base - s.top);
    g.globalAlpha = 1;
    g.strokeStyle = colour;
    g.lineWidth = 2;
    g.strokeRect(x0, s.top, x1 - x0, s.base - s.top);
}

// Draws what slides without crossing the borders of the strip.
function within(g, s, height, draw) {
    g.save();
    g.beginPath();
    g.rect(s.left, 0, s.right - s.left, height);
    g.clip();
    draw();
    g.restore();
}

// Words that stay inside the strip: those of a narrow frame at its border would be cut off.
function textWithin(g, s, words, x, y, colour) {
    text(g, words, Math.max(s.left, Math.min(x, s.right - g.measureText(words).width)), y, colour);
}

const edges = (scene, k) => k * scene.period;

// Fixed window: the frame lies on the time itself and moves away with it. At its end a new one begins, empty.
function fixedWindow(g, width, height, card, scene) {
    const s = strip(width, height, scene),
        c = scene.colours;
    const k = Math.floor(scene.now / scene.period);
    within(g, s, height, () => {
        for (let i = k - 2; i <= k; i++) {
            frame(g, s.x(edges(scene, i)) + 1.5, s.x(edges(scene, i + 1)) - 1.5, s, i === k ? c.allow : c.line, i === k ? c.soft : c.panel);
        }
        baseline(g, s, scene);
        dots(g, s, card, scene, (mark) => mark.at >= edges(scene, k));
    });
    textWithin(g, s, "this window", s.x(edges(scene, k)) + 5, s.top - 7, c.dim);
    nowLine(g, s, scene);
    gauge(g, width, height, card, scene);
}

// Sliding window: two counters. The frame goes with the time; of the window before, only the share inside the frame counts.
function slidingWindow(g, width, height, card, scene) {
    const s = strip(width, height, scene),
        c = scene.colours;
    const k = Math.floor(scene.now / scene.period);
    const counts = new Map();
    for (const mark of card.marks) {
        const window = Math.floor(mark.at / scene.period);
        if (mark.allowed) {
            counts.set(window, (counts.get(window) || 0) + mark.cost);
        }
    }
    within(g, s, height, () => {
        for (let i = k - 2; i <= k; i++) {
            const high = (s.base - s.top - 10) * Math.min((counts.get(i) || 0) / Math.max(card.quota, 1), 1);
            const x0 = s.x(edges(scene, i)),
                x1 = Math.min(s.x(edges(scene, i + 1)), s.now),
                cut = s.x(scene.now - scene.period);
            g.fillStyle = c.line;
            g.fillRect(x0 + 1, s.base - high, Math.max(Math.min(cut, x1) - x0 - 2, 0), high);
            g.fillStyle = c.soft;
            g.fillRect(Math.max(x0 + 1, cut), s.base - high, Math.max(x1 - 1 - Math.max(x0 + 1, cut), 0), high);
            g.setLineDash([2, 4]);
            g.strokeStyle = c.dim;
            g.lineWidth = 1;
            g.beginPath();
            g.moveTo(x0, s.top - 4);
            g.lineTo(x0, s.base + 4);
            g.stroke();
            g.setLineDash([]);
        }
        baseline(g, s, scene);
        dots(g, s, card, scene, (mark) => mark.at > scene.now - scene.period);
        g.strokeStyle = c.allow;
        g.lineWidth = 2;
        g.strokeRect(s.x(scene.now - scene.period), s.top, scene.period * s.perMs, s.base - s.top);
        const share = Math.round(100 * (1 - (scene.now - edges(scene, k)) / scene.period));
        textWithin(g, s, (width < 260 ? "last: " : "last window counts ") + share + " %", s.left, s.top - 7, c.dim);
    });
    nowLine(g, s, scene);
    gauge(g, width, height, card, scene);
}

// Sliding log: every call is remembered until it has left the frame, which goes with the time.
function slidingLog(g, width, height, card, scene) {
    const s = strip(width, height, scene),
        c = scene.colours;
    within(g, s, height, () => {
        frame(g, s.x(scene.now - scene.period), s.now, s, c.allow, c.soft);
        baseline(g, s, scene);
        dots(g, s, card, scene, (mark) => mark.at > scene.now - scene.period);
    });
    textWithin(g, s, "the last period", s.x(scene.now - scene.period) + 4, s.top - 7, c.dim);
    nowLine(g, s, scene);
    gauge(g, width, height, card, scene);
}

const PICTURES = {
    token_bucket: tokenBucket,
    leaky_bucket: leakyBucket,
    fixed_window: fixedWindow,
    sliding_window: slidingWindow,
    sliding_log: slidingLog,
};

export function drawCard(canvas, card, scene) {
    const { g, width, height } = prepare(canvas);
    if (width > 0) {
        PICTURES[card.algorithm](g, width, height, card, scene);
    }
}
