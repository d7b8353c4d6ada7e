// A sandbox on the server: an engine with rules of its own and a time that the page sets. All decisions that the playground
// and "Try rules" show are made there. Operators bring rules; everybody else has the demo's, where an address has one sandbox,
// so there each request waits for the one before.

export const ASKS_MAX = 512; // of one step

let left = Promise.resolve(); // ends when the server has heard that the page has left its last sandbox of the demo

export class Sandbox {
    #api;
    #demo;
    #path;
    #id = null;
    #generation = 0; // grows with each create(), so that late answers to earlier calls are dropped
    #closed = false;
    #last = Promise.resolve(); // ends with the request that is on its way; never fails

    constructor(api, demo = false) {
        this.#api = api;
        this.#demo = demo;
        this.#path = demo ? "v1/demo" : "v1/sandbox";
    }

    // Replaces the sandbox by one with {rules}, or in the demo with the rules of a {scenario}. Returns its limits, or null if
    // another call came later.
    async create(request) {
        const mine = ++this.#generation;
        if (this.#demo) {
            await left;
            await this.#last;
            return mine === this.#generation ? this.#note(this.#make(request, mine)) : null;
        }
        this.#end(this.#id);
        return this.#make(request, mine);
    }

    async #make(request, mine) {
        this.#id = null;
        const { sandbox, limits } = await this.#api.post(this.#path, request);
        if (mine === this.#generation) {
            this.#id = sandbox;
            return limits;
        }
        if (!this.#demo || this.#closed) { // in the demo, the later call replaces it
            await this.#end(sandbox);
        }
        return null;
    }

    // Takes one batched step. Returns the answers, or null if the sandbox was replaced meanwhile.
    async step(asks) {
        const mine = this.#generation;
        const { answers } = await this.#note(this.#api.post(`${this.#path}/${this.#id}`, { asks }));
        return mine === this.#generation ? answers : null;
    }

    close() {
        this.#closed = true;
        this.#generation++;
        left = this.#last.then(() => this.#end(this.#id));
    }

    #note(request) {
        this.#last = request.then(() => {}, () => {});
        return request;
    }

    // If the server does not hear of it, it ends the sandbox by itself after some idle minutes.
    #end(id) {
        return id ? this.#api.send("DELETE", `${this.#path}/${id}`).catch(() => {}) : Promise.resolve();
    }
}
