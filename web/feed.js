// One stream of events for the whole page: the samples of the last 15 minutes, what has happened, and whether the server
// answers. The past comes from /v1/history at each connection, so that a gap closes by itself; then /v1/events goes on.
//
// Listeners: state, history (all samples are new), sample, event, top, notices.

import { api } from "./api.js";

const SAMPLES_MAX = 900;
const EVENTS_MAX = 50;
// The server sends once a second; after this time without a byte it counts as gone. The time doubles each time that it
// was too short, because a busy machine may only be slow, and each new connection costs it more than waiting. It is short
// again after a stream that was heard for STEADY_MS.
const SILENCE_MS = 2500;
const SILENCE_MAX_MS = 20000;
const STEADY_MS = 60000;
const BACKOFF_MS = [500, 1000, 2000, 4000];

class Feed {
    samples = [];
    events = [];
    notices = []; // what operators must know at once, the worst first
    tops = null; // the keys that were denied most, for 1, 5 and 15 minutes
    version = "";
    // connecting, live, gone (no answer), refused (401, 403), full (too many streams), paused (the tab is hidden)
    state = "connecting";
    why = "";
    lastAt = 0; // when the server was last heard, in the browser's clock
    skew = 0; // the server's clock minus the browser's, in ms
    #listeners = new Map();
    #abort = null;
    #attempt = 0;
    #timer = 0;
    #watch = 0;
    #silence = SILENCE_MS;

    on(name, listener) {
        const list = this.#listeners.get(name) ?? new Set();
        this.#listeners.set(name, list.add(listener));
        return () => list.delete(listener);
    }

    #tell(name, value) {
        this.#listeners.get(name)?.forEach((listener) => listener(value));
    }

    #setState(state, why = "") {
        this.state = state;
        this.why = why;
        this.#tell("state", state);
    }

    start() {
        document.addEventListener("visibilitychange", () => this.#visible());
        api.addEventListener("secret", () => {
            this.notices = []; // they may have words that the new role must not see
            this.#tell("notices");
            this.restart();
        });
        this.#visible();
    }

    // A hidden tab holds no stream: the server has room for a bounded number.
    #visible() {
        if (document.hidden) {
            this.#stop();
            this.#setState("paused");
        } else if (!this.#abort) {
            this.restart();
        }
    }

    restart() {
        this.#stop();
        this.#attempt = 0;
        this.#connect();
    }

    #stop() {
        clearTimeout(this.#timer);
        clearTimeout(this.#watch);
        this.#abort?.abort();
        this.#abort = null;
    }

    #heard(abort) {
        if (this.#abort === abort) {
            this.lastAt = Date.now();
            this.#watchFor(abort);
        }
    }

    #watchFor(abort) {
        clearTimeout(this.#watch);
        this.#watch = setTimeout(() => {
            this.#silence = Math.min(2 * this.#silence, SILENCE_MAX_MS);
            abort.abort("silent");
        }, this.#silence);
    }

    async #connect() {
        const abort = new AbortController();
        this.#abort = abort;
        let problem = null;
        try {
            this.#watchFor(abort);
            this.#takeHistory(await api.get("v1/history", { signal: abort.signal }));
            this.#heard(abort);
            const opened = Date.now();
            await api.events("v1/events", abort.signal, (name, data) => {
                if (Date.now() - opened > STEADY_MS) {
                    this.#silence = SILENCE_MS;
                }
                this.#heard(abort);
                this.#take(name, data);
            });
        } catch (e) {
            problem = e;
        }
        if (this.#abort === abort) {
            this.#stop();
            this.#ended(problem);
        }
    }

    #ended(problem) {
        const status = problem?.status;
        if ((status === 401 || status === 403) && api.secret) {
            // Tell it before the secret goes: setting it restarts the feed without one.
            this.#tell("refused", problem.message);
            api.secret = null;
            return;
        }
        if (status === 401 || status === 403) {
            api.setRole(null);
            this.#setState("refused", problem.message);
        } else if (status === 503) {
            this.#setState("full", problem.message);
        } else {
            this.#setState("gone", status ? problem.message : "");
        }
        const wait = BACKOFF_MS[Math.min(this.#attempt++, BACKOFF_MS.length - 1)];
        this.#timer = setTimeout(() => this.#connect(), wait * (0.75 + 0.5 * Math.random()));
    }

    #takeHistory(history) {
        this.samples = history.samples.slice(-SAMPLES_MAX);
        this.events = history.events.slice(-EVENTS_MAX);
        this.skew = history.now_ms - Date.now();
        api.demo = history.demo === true;
        api.setRole(history.role);
        this.#tell("history");
        this.#tell("event");
    }

    #take(name, data) {
        if (name === "hello") {
            this.version = data.version;
            this.#attempt = 0;
            api.setRole(data.role);
            this.#setState("live");
        } else if (name === "sample") {
            this.#takeSample(data);
        } else if (name === "event") {
            this.events = [...this.events, data].slice(-EVENTS_MAX);
            this.#tell("event", data);
        } else if (name === "notices") {
            this.notices = data.notices;
            this.#tell("notices");
        } else if (name === "top") {
            this.tops = data.tops;
            this.#tell("top");
        } else if (name === "dropped") {
            this.why = data?.why ?? "";
        }
    }

    #takeSample(sample) {
        const last = this.samples.at(-1);
        if (last && sample.at_ms <= last.at_ms) {
            return;
        }
        this.samples.push(sample);
        if (this.samples.length > SAMPLES_MAX) {
            this.samples.shift();
        }
        this.skew = sample.at_ms - Date.now();
        this.#tell("sample", sample);
    }
}

export const feed = new Feed();

// The samples of the last `seconds`, and their times.
export function samplesOf(seconds) {
    const to = feed.samples.at(-1)?.at_ms ?? Date.now() + feed.skew;
    const from = to - seconds * 1000;
    const samples = feed.samples.filter((s) => s.at_ms >= from);
    return { from, to, at: samples.map((s) => s.at_ms), samples };
}
