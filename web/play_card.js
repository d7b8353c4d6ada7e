// One key of the playground: a client at one algorithm. Its card shows what the engine has answered.

import { h, setText } from "./dom.js";
import { duration } from "./format.js";
import { drawCard, live } from "./play_pictures.js";

const MARKS_MAX = 4000;
const VERDICT_MS = 1500; // how long the last verdict stays once another would come, or nothing is used any more

// Words for a key of which nothing is used, and for the time until then.
const FRESH = {
    token_bucket: ["full", "full in"],
    leaky_bucket: ["empty", "empty in"],
};

export class Card {
    quota = 0;
    remaining = 0;
    left = 0; // units, with the part of the next one that has come back
    cost = 1;
    marks = []; // decisions: {at, cost, allowed, acts, born}
    sparks = []; // decisions of the last moment, which are still moving
    allowed = 0;
    denied = 0;
    last = null; // decision
    answer = null; // of the last peek: {at, reset, retry}

    // `action` is a button or some words.
    constructor(algorithm, user, label, action) {
        this.algorithm = algorithm;
        this.user = user;
        this.path = "/" + algorithm;
        this.label = label;
        this.canvas = h("canvas", { class: "play-picture", "aria-hidden": "true" });
        this.number = h("span", { class: "play-number" }, "–");
        this.of = h("span", { class: "play-of" });
        this.state = h("p", { class: "play-state" });
        this.verdict = h("p", { class: "play-verdict" });
        this.element = h("section", { class: "panel play-card", "aria-label": label, "data-client": user, "data-algorithm": algorithm },
            h("div", { class: "play-card-head" }, h("h2", {}, label), h("p", {}, this.number, this.of)), this.canvas, this.state, this.verdict, action);
    }

    ask(at, cost, more) {
        return { at_ms: at, attributes: { user: this.user, path: this.path }, cost, ...more };
    }

    decided(call, answer) {
        const allowed = answer.verdict === "allow";
        const born = performance.now();
        const delay = answer.delay_ms || 0;
        this.marks.push({ at: call.at, cost: call.cost, allowed, acts: call.at + delay, born });
        this.sparks.push({ allowed, born, drift: Math.random() * 2 - 1 });
        this[allowed ? "allowed" : "denied"]++;
        this.last = { allowed, delay, retry: answer.retry_after_ms, born };
    }

    peeked(at, cost, answer) {
        this.quota = answer.quota;
        this.remaining = answer.remaining;
        this.cost = cost;
        this.answer = { at, reset: answer.reset_after_ms, retry: answer.verdict === "allow" ? 0 : answer.retry_after_ms };
    }

    // Whether time alone changes what is shown.
    moves() {
        return this.answer !== null && this.answer.reset > 0;
    }

    decision() {
        if (!this.last) {
            return "";
        }
        if (this.last.allowed) {
            return this.last.delay > 0 ? `✓ allowed, acts after ${duration(this.last.delay)}` : "✓ allowed";
        }
        return this.last.retry === null ? "✕ denied forever: the cost is above the quota" : `✕ denied, retry after ${duration(this.last.retry)}`;
    }

    stateText(retry, reset) {
        if (retry === null) {
            return "never: the cost is above the quota";
        }
        if (retry > 0) {
            return `next call in ${duration(retry)}`;
        }
        const [fresh, until] = FRESH[this.algorithm] ?? ["fresh", "fresh in"];
        return reset > 0 ? `${until} ${duration(reset)}` : fresh;
    }

    // Forgets what has left the timeline.
    forget(before, clock) {
        if (this.marks.length > MARKS_MAX || (this.marks.length && this.marks[0].acts < before)) {
            this.marks = this.marks.filter((m) => m.acts >= before).slice(-MARKS_MAX);
        }
        this.sparks = this.sparks.filter((s) => live(s, clock));
    }

    show(scene) {
        if (!this.answer) {
            drawCard(this.canvas, this, scene);
            return;
        }
        const { at, reset: full, retry: wait } = this.answer;
        const passed = scene.now - at;
        const reset = Math.max(full - passed, 0);
        const retry = wait === null ? null : Math.max(wait - passed, 0);
        this.left = Math.max(this.quota - reset / scene.step, 0);
        drawCard(this.canvas, this, scene);
        setText(this.number, String(this.remaining));
        setText(this.of, ` of ${this.quota} ${this.algorithm === "leaky_bucket" ? "free" : "left"}`);
        setText(this.state, this.stateText(retry, reset));
        const past = reset === 0 || (retry === 0 && this.last?.allowed === false);
        if (this.last && past && scene.clock - this.last.born > VERDICT_MS) {
            this.last = null; // "denied" would be taken for what comes next
        }
        setText(this.verdict, this.decision());
        this.verdict.classList.toggle("denied", this.last !== null && !this.last.allowed);
        this.element.classList.toggle("spent", retry === null || retry > 0);
        const { dataset } = this.element;
        dataset.remaining = this.remaining;
        dataset.quota = this.quota;
        dataset.retry = retry === null ? "never" : Math.ceil(retry);
        dataset.reset = Math.ceil(reset);
        dataset.allowed = this.allowed;
        dataset.denied = this.denied;
    }
}
