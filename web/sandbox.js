// A sandbox on the server: an engine with rules of its own and a time that the page sets. All decisions that the playground
// and "Try rules" show are made there.

export const ASKS_MAX = 512; // of one step

export class Sandbox {
    #api;
    #id = null;
    #generation = 0; // grows with each create(), so that late answers to earlier calls are dropped

    constructor(api) {
        this.#api = api;
    }

    // Replaces the sandbox by one with these rules. Returns its limits, or null if another call came later.
    async create(rules) {
        const mine = ++this.#generation;
        this.#end(this.#id);
        this.#id = null;
        const { sandbox, limits } = await this.#api.post("v1/sandbox", { rules });
        if (mine !== this.#generation) {
            this.#end(sandbox);
            return null;
        }
        this.#id = sandbox;
        return limits;
    }

    // Takes one batched step. Returns the answers, or null if the sandbox was replaced meanwhile.
    async step(asks) {
        const mine = this.#generation;
        const { answers } = await this.#api.post(`v1/sandbox/${this.#id}`, { asks });
        return mine === this.#generation ? answers : null;
    }

    close() {
        this.#generation++;
        this.#end(this.#id);
        this.#id = null;
    }

    // If the server does not hear of it, it ends the sandbox by itself after five idle minutes.
    #end(id) {
        if (id) {
            this.#api.send("DELETE", `v1/sandbox/${id}`).catch(() => {});
        }
    }
}
