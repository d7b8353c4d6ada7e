// What the playground can be set to: the algorithms, the rule-file lines for them, the presets, and its time.

export const ALGORITHMS = {
    token_bucket: { name: "Token bucket", about: "Units are added at an even rate, up to the burst. A call takes one. Also known as GCRA." },
    leaky_bucket: { name: "Leaky bucket", about: "Calls wait in a queue and leave it at an even rate. A full queue denies." },
    fixed_window: { name: "Fixed window", about: "The count starts afresh with each window, so twice the count can pass around an edge." },
    sliding_window: { name: "Sliding window", about: "Two counts: the last window counts with the share of it that is still within the period." },
    sliding_log: { name: "Sliding log", about: "Every call is remembered: never more than the count in any period." },
};
export const CLIENTS = ["alice", "bob", "carol", "dave", "erin", "frank"];
export const UNITS = { s: 1000, min: 60000, h: 3600000 };

// Lines of a rule file, one text for each limit. `extra` are lines for the sandbox alone.
export function ruleLines(setup, algorithms, extra = []) {
    return algorithms.map((name, i) => [
        ...(i === 0 ? ["limits:"] : []),
        `  - name: ${name}`,
        ...(algorithms.length > 1 ? [`    when: {path: /${name}}`] : []),
        "    key: [user]",
        `    algorithm: ${name}`,
        `    rate: ${setup.count}/${setup.each === 1 ? "" : setup.each}${setup.unit}`,
        ...(name === "token_bucket" ? [`    burst: ${setup.burst}`] : []),
        ...(name === "leaky_bucket" ? [`    queue: ${setup.queue}`] : []),
        ...extra,
        "",
    ].join("\n"));
}

// ---- presets: calls at given times, as if somebody clicked. Each generator is one client: {at, user}. ----

function* evenly(from, every, user) {
    for (let at = from; ; at += every) {
        yield { at, user };
    }
}

function* edgeBurst(setup, start) {
    const edge = Math.ceil(start / setup.periodMs) * setup.periodMs;
    const gap = (0.1 * setup.periodMs) / setup.count;
    for (let i = setup.count; i > 0; i--) {
        yield { at: edge - 0.01 * setup.periodMs - i * gap, user: 0 };
    }
    for (let i = 0; i < setup.count; i++) {
        yield { at: edge + 0.01 * setup.periodMs + i * gap, user: 0 };
    }
}

// Clients that call evenly, at these multiples of the rate.
const atRates = (setup, start, users, rates) =>
    users.map((_, i) => evenly(start + setup.step * (0.5 + i / 3), setup.step / rates[i % rates.length], i));

export const START = 0.35; // the part of a period at which time begins
export const PRESETS = [
    {
        name: "Edge burst",
        about: "As many calls as the count just before the end of a window, and as many just after it, to all five algorithms",
        all: true,
        start: 0.7,
        calls: (setup, start) => [edgeBurst(setup, start)],
    },
    {
        name: "Steady",
        about: "Even calls: at half of the rate, at the rate, and at one and a half times the rate",
        start: START,
        calls: (setup, start, users) => atRates(setup, start, users, users.length > 1 ? [0.5, 1, 1.5] : [0.9]),
    },
    {
        name: "Flood",
        about: "The first client calls at five times the rate, the others at half of it",
        start: START,
        calls: (setup, start, users) => atRates(setup, start, users, [5, ...users.slice(1).map(() => 0.5)]),
    },
];

// The time of the sandbox. It runs `speed` times as fast as the viewer's, and stands still while there is a reason to.
export class Clock {
    speed = 1;
    #at = 0;
    #real = 0;
    #reasons = new Set();

    start(at) {
        this.#at = at;
        this.#real = performance.now();
    }

    now() {
        return this.#reasons.size ? this.#at : this.#at + (performance.now() - this.#real) * this.speed;
    }

    setSpeed(speed) {
        this.start(this.now());
        this.speed = speed;
    }

    stop(reason, stopped) {
        this.start(this.now());
        if (stopped) {
            this.#reasons.add(reason);
        } else {
            this.#reasons.delete(reason);
        }
    }
}
