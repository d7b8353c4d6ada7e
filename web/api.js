// Requests to the server that this page came from. The secret is in the session storage of this tab, and goes out only in
// the Authorization field of requests to the same origin.

const STORED = "weir.secret";

// An answer that is not 2xx, as problem+json describes it. status 0: there was no answer.
export class Problem extends Error {
    constructor(status, detail, body = {}) {
        super(detail);
        this.status = status;
        this.messages = Array.isArray(body.messages) ? body.messages : [];
        this.body = body;
    }
}

async function problemOf(response) {
    let body = {};
    try {
        body = await response.json();
    } catch {
        // Not JSON: the status alone has to do.
    }
    return new Problem(response.status, body.detail || body.title || `The server answered ${response.status} ${response.statusText}.`, body);
}

class Api extends EventTarget {
    // "admin", "check", or null if the server has not said so yet or refuses this page.
    role = null;
    demo = false; // whether the server lets everybody play in its sandboxes

    get secret() {
        return sessionStorage.getItem(STORED);
    }

    set secret(value) {
        if (value) {
            sessionStorage.setItem(STORED, value);
        } else {
            sessionStorage.removeItem(STORED);
        }
        this.dispatchEvent(new Event("secret"));
    }

    setRole(role) {
        if (this.role !== role) {
            this.role = role;
            this.dispatchEvent(new Event("role"));
        }
    }

    // credentials: "omit", because otherwise a browser answers 401 with a password dialog of its own.
    async request(method, path, { body, type, signal, secret = this.secret } = {}) {
        const headers = {};
        if (secret) {
            headers.Authorization = `Bearer ${secret}`;
        }
        if (method !== "GET") {
            headers["Content-Type"] = type || "application/json";
        }
        let response;
        try {
            response = await fetch(path, {
                method, headers, signal, cache: "no-store", credentials: "omit",
                body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
            });
        } catch (e) {
            if (e.name === "AbortError") {
                throw e;
            }
            throw new Problem(0, "The server does not answer.");
        }
        if (!response.ok) {
            throw await problemOf(response);
        }
        return response;
    }

    async get(path, options) {
        return (await this.request("GET", path, options)).json();
    }

    async text(path, options) {
        return (await this.request("GET", path, options)).text();
    }

    // Sends JSON, or a string as it is (type: application/yaml). Returns the JSON of the answer; null if it has none.
    async send(method, path, body, options = {}) {
        const response = await this.request(method, path, { ...options, body });
        const text = await response.text();
        return text ? JSON.parse(text) : null;
    }

    post(path, body, options) {
        return this.send("POST", path, body, options);
    }

    put(path, body, options) {
        return this.send("PUT", path, body, options);
    }

    // Reads server-sent events until the stream ends. EventSource cannot send the secret in a field, fetch() can.
    async events(path, signal, onevent) {
        const response = await this.request("GET", path, { signal });
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = "";
        for (;;) {
            const { value, done } = await reader.read();
            if (done) {
                return;
            }
            const blocks = (rest + value.replaceAll("\r", "")).split("\n\n");
            rest = blocks.pop();
            blocks.forEach((block) => dispatch(block, onevent));
        }
    }
}

function dispatch(block, onevent) {
    let name = "message";
    const data = [];
    for (const line of block.split("\n")) {
        if (line.startsWith("event:")) {
            name = line.slice(6).trim();
        } else if (line.startsWith("data:")) {
            data.push(line.slice(line[5] === " " ? 6 : 5));
        }
    }
    onevent(name, data.length ? JSON.parse(data.join("\n")) : null);
}

export const api = new Api();
