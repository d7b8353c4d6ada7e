// Playground: limits to touch. The server decides every call in a sandbox; this file sends the calls, keeps the time, and
// shows the answers.

import { code, h, field, linkCommand, panel, segmented, setText } from "./dom.js";
import { duration } from "./format.js";
import { Card } from "./play_card.js";
import { colours } from "./play_pictures.js";
import { ALGORITHMS, CLIENTS, Clock, PRESETS, START, UNITS, ruleLines } from "./play_setup.js";
import { drawTimeline, mostWords, rolling, timelineHeight } from "./play_timeline.js";
import { ASKS_MAX, Sandbox } from "./sandbox.js";

export const title = "Playground";

const PEEK_MS = 50; // real time between two peeks while something refills
const HAMMER_MS = 50; // real time between two calls of a button that is held
const HOLD_MS = 300; // after this, a press is a hold
const AGAIN_MS = 2000; // between two attempts to get a sandbox
const STILL_MS = 250; // between two pictures for viewers who want less motion
const SPAN = 4; // periods that the timeline shows
const SCRIPT_PER_S = 120; // the most calls of a preset in a real second, for each client

class Playground {
    constructor(main, api) {
        this.main = main;
        this.demo = api.role !== "admin"; // limits are built in, and an address has one sandbox
        this.sandbox = new Sandbox(api, this.demo);
        this.clock = new Clock();
        this.still = matchMedia("(prefers-reduced-motion: reduce)");
        this.cards = [];
        this.calls = []; // not sent yet: {at, card, cost}
        this.scripts = []; // of presets: {calls, next}
        this.peeked = 0; // when, in real time
        this.sent = 0; // the latest time that the sandbox has been told
        this.own = new Set(); // numbers that the viewer has set; the others follow the count
        this.listeners = new AbortController();
        this.build();
        this.listen();
        this.colours = colours();
        this.renew();
        this.loop = (real) => {
            this.frame(real);
            this.raf = requestAnimationFrame(this.loop);
        };
        this.showOrHide();
    }

    listen() {
        const { signal } = this.listeners;
        window.addEventListener("themechange", () => (this.colours = colours()), { signal });
        document.addEventListener("visibilitychange", () => this.showOrHide(), { signal });
        for (const name of ["pointerup", "pointercancel", "blur"]) {
            window.addEventListener(name, () => this.release(), { signal });
        }
    }

    close() {
        this.closed = true;
        this.listeners.abort();
        cancelAnimationFrame(this.raf);
        clearTimeout(this.renewal);
        this.release();
        this.sandbox.close();
    }

    // A hidden page stands still and asks nothing.
    showOrHide() {
        cancelAnimationFrame(this.raf);
        this.clock.stop("hidden", document.hidden);
        if (document.hidden) {
            this.release();
        } else {
            this.raf = requestAnimationFrame(this.loop);
        }
    }

    // ---- controls ----

    build() {
        const legend = h("p", { class: "play-legend" },
            h("span", { class: "key-allow" }, "allowed, when the caller acts"), h("span", { class: "key-deny" }, "denied"),
            h("span", { class: "key-sum" }, "allowed within the last period"), h("span", { class: "key-over" }, "more than the quota"));
        this.everyone = this.spender("Call all five", () => this.cards);
        this.everyone.classList.add("play-everyone");
        this.stage = h("div", { class: "play-stage" });
        this.timeline = h("canvas", { class: "play-timeline", role: "img", "aria-label": "No calls yet" });
        this.rules = h("pre", { class: "play-rules", tabIndex: 0, role: "region", "aria-label": "Lines of a rule file" });
        this.copied = h("span", { class: "note", role: "status" });
        this.said = h("p", { class: "unseen", role: "status" });
        this.note = h("p", { class: "play-note", role: "status" });
        this.main.append(h("div", { class: "play" },
            h("p", { class: "lead" }, "Click a client to make a call, hold to make many. ", h("span", { class: "lead-more" }, "The engine of this server decides every call, in a sandbox apart from the live limits.")),
            this.limitControls(), this.note, this.everyone, this.stage,
            panel("Allowed and denied", {}, legend, this.timeline),
            panel("In a rule file", { actions: [this.copied, this.button("Copy", () => this.copy())] }, this.rules), this.said));
        this.placeTime();
        this.setSpeed(1);
    }

    // On a phone the clients come before the controls of the time, so that their buttons are on the screen.
    placeTime() {
        const narrow = matchMedia("(max-width: 48rem)");
        const time = this.timeControls();
        const place = () => (narrow.matches ? this.stage.after(time) : this.note.before(time));
        narrow.addEventListener("change", place, { signal: this.listeners.signal });
        place();
    }

    limitControls() {
        this.inputs = {};
        const number = (name, label, value, min, max) => {
            const oninput = () => {
                this.own.add(name);
                this.changed();
            };
            this.inputs[name] = h("input", { type: "number", name, value, min, max, step: 1, required: true, inputmode: "numeric", "data-label": label, oninput });
            return field(label, this.inputs[name]);
        };
        this.algorithm = "token_bucket";
        const names = [...Object.entries(ALGORITHMS).map(([id, { name }]) => [id, name]), ["all", "All five"]];
        this.choices = segmented("Algorithm", names, this.algorithm, (id) => this.choose(id));
        this.unit = h("select", { name: "unit", "aria-label": "Unit of the period", onchange: () => this.changed() },
            Object.keys(UNITS).map((u) => h("option", { value: u }, u)));
        const each = number("each", "Period", 10, 1, 1000);
        each.append(this.unit);
        each.classList.add("play-each");
        this.problem = h("p", { class: "play-problem problem", role: "alert" });
        return h("form", { class: "panel play-controls", "aria-label": "The limit", onsubmit: (event) => event.preventDefault() }, this.choices,
            this.demo ? h("p", { class: "note play-fixed" }, "Each client has 10 calls in 10 s. Numbers of your own need the admin secret: run ", code(linkCommand()), " where the server runs.") : null,
            h("div", { class: "play-fields" }, number("count", "Count", 10, 1, 1000), each, number("burst", "Burst", 10, 1, 5000),
                number("queue", "Queue", 9, 0, 5000), number("clients", "Clients", 3, 1, CLIENTS.length), number("cost", "Cost", 1, 1, 1000)), this.problem);
    }

    timeControls() {
        const presets = PRESETS.map((preset) => this.button(preset.name, () => this.preset(preset), { title: preset.about }));
        this.stop = this.button("Stop the calls", () => this.setScripts([]), { hidden: true });
        this.pause = this.button("Pause", () => this.setPaused(!this.paused), { "aria-pressed": "false" });
        this.time = h("span", { class: "play-time" });
        this.speedText = h("output", { for: "play-speed" });
        this.speed = h("input", { type: "range", min: 0, max: 40, step: 1, id: "play-speed" }); // logarithmic: 1 to 100
        this.speed.addEventListener("input", () => this.setSpeed(10 ** (this.speed.value / 20)));
        return h("div", { class: "panel play-transport" },
            h("div", { class: "row", role: "group", "aria-label": "Presets" }, presets, this.stop),
            h("div", { class: "play-speed" }, h("label", { for: "play-speed" }, "Speed"), this.speed, this.speedText),
            h("div", { class: "row" }, this.pause, this.button("Start afresh", () => this.renew()), this.time));
    }

    button(name, act, more = {}) {
        return h("button", { type: "button", onclick: act, ...more }, name);
    }

    // A button that calls once when it is clicked, and again and again while it is held: by mouse, finger, Enter or space.
    spender(name, cards) {
        const isPress = (key) => key === " " || key === "Enter";
        return this.button(name, (event) => {
            if (event.detail === 0 && !event.pointerType) { // of a screen reader, which sends no other event
                this.call(cards());
            }
        }, {
            class: "spend primary",
            onpointerdown: (event) => event.button === 0 && this.press(cards),
            oncontextmenu: (event) => event.preventDefault(),
            onkeyup: (event) => isPress(event.key) && this.release(),
            onkeydown: (event) => {
                if (isPress(event.key)) {
                    event.preventDefault();
                    if (!event.repeat) {
                        this.press(cards);
                    }
                }
            },
        });
    }

    press(cards) {
        this.release();
        this.call(cards());
        this.hold = setTimeout(() => {
            this.hammer = setInterval(() => this.call(cards()), HAMMER_MS);
        }, HOLD_MS);
    }

    release() {
        clearTimeout(this.hold);
        clearInterval(this.hammer);
    }

    choose(algorithm) {
        this.algorithm = algorithm;
        this.choices.querySelectorAll("input").forEach((input) => (input.checked = input.value === algorithm));
        this.changed();
    }

    setSpeed(speed) {
        this.clock.setSpeed(speed);
        const shown = `${speed < 10 ? Math.round(10 * speed) / 10 : Math.round(speed)} ×`;
        this.speed.value = Math.round(20 * Math.log10(speed));
        this.speed.setAttribute("aria-valuetext", `${shown} as fast`);
        setText(this.speedText, shown);
    }

    setPaused(paused) {
        this.paused = paused;
        this.clock.stop("paused", paused);
        this.pause.setAttribute("aria-pressed", String(paused));
        setText(this.pause, paused ? "Go on" : "Pause");
    }

    setScripts(scripts) {
        this.scripts = scripts.map((calls) => ({ calls, next: calls.next().value }));
        this.stop.hidden = !scripts.length;
    }

    // Starts afresh with the calls of a preset, at a speed that shows a period in ten seconds.
    preset(preset) {
        if (preset.all) {
            this.choose("all");
        }
        const setup = this.read();
        if (setup) {
            this.setPaused(false);
            this.setSpeed(Math.min(Math.max(setup.periodMs / 10000, 1), 100));
            this.renew(preset);
        }
    }

    async copy() {
        try {
            await navigator.clipboard.writeText(this.rules.textContent);
            setText(this.copied, "copied");
        } catch { // No permission, or no clipboard because the page came without TLS.
            getSelection().selectAllChildren(this.rules);
            setText(this.copied, "selected; copy it with the keyboard");
        }
    }

    // ---- a limit, and its sandbox ----

    // Returns what the controls say, or null and shows what is wrong.
    read() {
        const { burst, queue, clients, count, each } = this.inputs;
        const all = this.algorithm === "all";
        count.parentNode.hidden = each.parentNode.hidden = this.demo;
        burst.parentNode.hidden = this.demo || (!all && this.algorithm !== "token_bucket");
        queue.parentNode.hidden = this.demo || (!all && this.algorithm !== "leaky_bucket");
        clients.parentNode.hidden = all;
        burst.value = this.own.has("burst") ? burst.value : count.value;
        queue.value = this.own.has("queue") ? queue.value : Math.max(count.value - 1, 0);
        const setup = { unit: this.unit.value };
        for (const [name, input] of Object.entries(this.inputs)) {
            if (!input.parentNode.hidden && !input.checkValidity()) {
                setText(this.problem, `${input.dataset.label}: found '${input.value}', expected a whole number from ${input.min} to ${input.max}`);
                return null;
            }
            setup[name] = Number(input.value);
        }
        setText(this.problem, "");
        setup.periodMs = setup.each * UNITS[setup.unit];
        setup.step = setup.periodMs / setup.count;
        return setup;
    }

    changed() {
        this.read();
        clearTimeout(this.renewal);
        this.renewal = setTimeout(() => this.renew(), 250);
    }

    // Makes a new sandbox for what the controls say: all keys are fresh, and time begins anew.
    async renew(preset) {
        clearTimeout(this.renewal);
        const setup = this.read();
        if (!setup) {
            return;
        }
        this.ready = false;
        this.over = false;
        this.setup = setup;
        this.setScripts([]);
        this.begin = 10 * setup.periodMs; // the edge of a window
        const start = this.begin + (preset?.start ?? START) * setup.periodMs;
        this.clock.start(start);
        const algorithms = this.algorithm === "all" ? Object.keys(ALGORITHMS) : [this.algorithm];
        const users = CLIENTS.slice(0, this.algorithm === "all" ? 1 : setup.clients);
        this.layOut(algorithms, users);
        try {
            const rules = () => ruleLines(setup, algorithms, ["    max_keys: 64"]).join("");
            if (await this.sandbox.create(this.demo ? { scenario: this.algorithm } : { rules: rules() })) {
                setText(this.note, "");
                this.clock.start(start);
                this.sent = 0;
                this.ready = true;
                this.stale = true; // nothing has been peeked
                this.setScripts(preset ? preset.calls(setup, start, users) : []);
            }
        } catch (problem) {
            this.failed(problem, () => this.renew(preset));
        }
    }

    // Shows why the server could not be asked. It is asked again soon, unless it does not want to be.
    failed(problem, again) {
        if (!this.closed) {
            setText(this.note, problem.message);
            if (problem.status !== 401 && problem.status !== 403) {
                this.renewal = setTimeout(again, AGAIN_MS);
            }
        }
    }

    layOut(algorithms, users) {
        const all = algorithms.length > 1;
        this.calls = [];
        this.cards = algorithms.flatMap((algorithm) => users.map((user) => this.card(algorithm, user, all)));
        this.everyone.hidden = !all;
        this.stage.replaceChildren(...this.cards.map((card) => card.element));
        this.stage.dataset.cards = all ? "all" : this.cards.length;
        this.timeline.style.height = `${timelineHeight(this.cards.length)}rem`;
        this.rules.replaceChildren(...ruleLines(this.setup, algorithms).map((lines) => h("span", {}, lines)));
        setText(this.copied, "");
    }

    card(algorithm, user, all) {
        const { name, about } = ALGORITHMS[algorithm];
        const cards = () => (all ? this.cards : [card]);
        const card = new Card(algorithm, user, all ? name : user, all ? h("p", { class: "play-about" }, about) : this.spender(`Call as ${user}`, cards));
        card.canvas.addEventListener("pointerdown", (event) => event.button === 0 && event.pointerType === "mouse" && this.press(cards));
        return card;
    }

    // ---- calls ----

    call(cards) {
        if (this.over) {
            this.beginAgain(cards);
        } else if (this.ready && !this.paused) {
            const at = this.clock.now();
            this.calls.push(...cards.map((card) => ({ at, card, cost: this.setup.cost, byHand: true })));
        }
    }

    // A new sandbox for somebody who has clicked these cards, and the same clicks there.
    async beginAgain(cards) {
        const labels = new Set(cards.map((card) => card.label));
        await this.renew();
        this.call(this.cards.filter((card) => labels.has(card.label)));
    }

    // Makes the calls of a preset whose time has come. If they are too many to be sent, some are left out.
    runScripts(now) {
        const least = (1000 / SCRIPT_PER_S) * this.clock.speed;
        for (const script of this.scripts) {
            let last = -Infinity;
            while (script.next && script.next.at <= now) {
                const { at, user } = script.next;
                if (this.calls.length < ASKS_MAX || at - last >= least) {
                    last = at;
                    const targets = this.cards.filter((card) => card.user === CLIENTS[user]);
                    this.calls.push(...targets.map((card) => ({ at: Math.max(at, this.sent), card, cost: this.setup.cost })));
                }
                script.next = script.calls.next().value;
            }
        }
        if (this.scripts.length && this.scripts.every((script) => !script.next)) {
            this.setScripts([]);
        }
        this.calls.sort((a, b) => a.at - b.at);
    }

    // Sends all calls since the last step and, while something moves, a peek of each card. Only one step is on its way.
    async send(real) {
        const due = (this.stale || this.cards.some((card) => card.moves())) && real - this.peeked >= PEEK_MS;
        if (!this.ready || this.busy || !(due || this.calls.length)) {
            return;
        }
        const now = this.clock.now();
        const { cards, setup } = this;
        const calls = this.calls.splice(0, ASKS_MAX - cards.length);
        const peeks = this.calls.length ? [] : cards; // time must not fall: no peek before calls that wait
        const asks = [...calls.map((c) => c.card.ask(c.at, c.cost)), ...peeks.map((card) => card.ask(now, setup.cost, { peek: true }))];
        this.sent = asks.at(-1).at_ms;
        this.peeked = real;
        this.busy = true;
        try {
            const answers = await this.sandbox.step(asks);
            if (answers && cards === this.cards) {
                calls.forEach((call, i) => call.card.decided(call, answers[i]));
                peeks.forEach((card, i) => card.peeked(now, setup.cost, answers[calls.length + i]));
                this.stale = this.stale && !peeks.length;
                this.announce(calls.at(-1)?.card);
            }
        } catch (problem) {
            if (cards === this.cards) {
                this.stepFailed(problem, calls);
            }
        }
        this.busy = false;
    }

    // A busy server is asked again; a sandbox that has ended is replaced. In the demo a click must ask for that: two pages of
    // one address would take the sandbox from each other without end.
    stepFailed(problem, calls) {
        this.ready = false;
        const clicked = calls.filter((call) => call.byHand).map((call) => call.card);
        if (problem.status === 404 && this.demo && !clicked.length) {
            this.over = true;
            setText(this.note, "Another page of your address plays now, or nothing was called for a minute. Call to begin again.");
        } else if (problem.status === 404) {
            this.beginAgain(this.demo ? clicked : []);
        } else if (problem.status === 503 || problem.status === 0) {
            this.calls.unshift(...calls);
            this.failed(problem, () => {
                setText(this.note, "");
                this.ready = true;
                this.stale = true;
            });
        } else {
            this.failed(problem, () => this.renew());
        }
    }

    // Tells a screen reader the last decision, at most once in a second.
    announce(card) {
        if (card && performance.now() - (this.announced ?? 0) >= 1000) {
            this.announced = performance.now();
            setText(this.said, `${card.label}: ${card.decision().slice(2)}, ${card.remaining} of ${card.quota} left`);
        }
    }

    // ---- frames ----

    frame(real) {
        if (this.ready) {
            this.runScripts(this.clock.now());
            this.send(real);
        }
        if (this.setup && !(this.still.matches && real - (this.drawn ?? 0) < STILL_MS)) {
            this.drawn = real;
            this.draw(real);
        }
    }

    draw(real) {
        const { periodMs: period, step } = this.setup;
        const scene = {
            now: this.clock.now(), clock: performance.now(), begin: this.begin, period, step, speed: this.clock.speed, colours: this.colours,
            motion: !this.still.matches, label: (at) => duration(at - this.begin),
        };
        setText(this.time, `time ${duration(scene.now - this.begin)}`);
        for (const card of this.cards) {
            card.forget(scene.now - (SPAN + 1) * period, scene.clock);
            card.show(scene);
        }
        drawTimeline(this.timeline, this.cards, scene, SPAN * period);
        if (real - (this.described ?? 0) >= 1000) {
            this.described = real;
            const words = (c) => `${c.label}: ${c.allowed} allowed, ${c.denied} denied, ${mostWords(c, rolling(c, scene).most)}`;
            this.timeline.setAttribute("aria-label", this.cards.map(words).join("; "));
        }
    }
}

export function open(main, api) {
    const playground = new Playground(main, api);
    return () => playground.close();
}
