// Clients of Redis for Node against `weir serve`, as programs use them.
// usage: node node_clients.js redis|ioredis 2|3 (found through NODE_PATH)
"use strict";
const assert = require("assert");
const {spawn} = require("child_process");

const [library, version] = [process.argv[2], Number(process.argv[3])];
const weir = `${process.env.WEIR_BUILD_DIR}/weir`;

// ---- the server ----

let server;

// Resolves to its port.
function start(port, config) {
    const options = ["serve", "--http", "off", "--admin", "off", "--resp", `127.0.0.1:${port}`, "--config", config,
        "--max-age", "0", "--no-watch"];
    server = spawn(weir, options, {stdio: ["ignore", "pipe", "ignore"]});
    return new Promise((resolve, reject) => {
        let text = "";
        server.stdout.on("data", (data) => {
            text += data;
            const found = /resp +127\.0\.0\.1:([0-9]+)\n/.exec(text);
            if (found) resolve(Number(found[1]));
        });
        server.on("exit", (code) => reject(new Error(`weir: exit ${code}`)));
    });
}

function stop() {
    const gone = new Promise((resolve) => {
        server.removeAllListeners("exit");
        server.on("exit", resolve);
    });
    server.kill("SIGTERM");
    return gone;
}

process.on("SIGTERM", () => process.exit(1));
process.on("exit", () => server && server.kill("SIGKILL"));

// ---- one shape for both libraries ----

// ask(word, ...): one command. many(commands): all of them at once, as a pipeline.
const libraries = {
    redis: async (port) => {
        const {createClient} = require("redis");
        const options = {url: `redis://127.0.0.1:${port}`, name: "test"};
        if (version === 3) options.RESP = 3;
        else if (Number(require("redis/package.json").version.split(".")[0]) > 4) options.RESP = 2;
        const client = createClient(options);
        client.on("error", () => {}); // it connects again by itself
        await client.connect();
        const ask = (...words) => client.sendCommand(words);
        return {
            ask,
            many: (commands) => Promise.all(commands.map((words) => ask(...words))),
            ping: () => client.ping(),
            end: () => client.quit(),
        };
    },
    ioredis: async (port) => {
        const Redis = require("ioredis");
        const client = new Redis({port, host: "127.0.0.1", connectionName: "test", protocol: version,
            retryStrategy: () => 50});
        client.on("error", () => {});
        await new Promise((resolve) => client.once("ready", resolve));
        return {
            ask: (...words) => client.call(...words),
            many: async (commands) => {
                const pipeline = client.pipeline();
                for (const words of commands) pipeline.call(...words);
                const replies = await pipeline.exec();
                for (const [error] of replies) assert.ifError(error);
                return replies.map(([, reply]) => reply);
            },
            ping: () => client.ping(),
            end: () => client.quit(),
        };
    },
};

// The eight values in their order, whatever the library makes of a map.
const names = ["verdict", "limit", "quota", "remaining", "retry_after_ms", "reset_after_ms", "delay_ms", "flags"];

function values(reply) {
    if (Array.isArray(reply)) return reply.length === 16 ? names.map((_, i) => reply[2 * i + 1]) : reply;
    assert.deepStrictEqual(reply instanceof Map ? [...reply.keys()] : Object.keys(reply), names);
    return names.map((name) => (reply instanceof Map ? reply.get(name) : reply[name]));
}

// ---- what they see ----

async function check(client) {
    assert.strictEqual(await client.ping(), "PONG");
    assert.strictEqual(await client.ask("CLIENT", "GETNAME"), "test");
    const hello = await client.ask("HELLO");
    const proto = Array.isArray(hello) ? hello[hello.indexOf("proto") + 1] : hello.proto || hello.get("proto");
    assert.strictEqual(proto, version);

    assert.deepStrictEqual(await client.ask("CL.THROTTLE", "k", "4", "6", "60"), [0, 5, 4, -1, 10]);
    assert.deepStrictEqual(await client.ask("CL.THROTTLE", "k", "4", "6", "60", "6"), [1, 5, 4, -1, 10]);

    const first = values(await client.ask("WEIR.CHECK", "api", "alice"));
    assert.deepStrictEqual(first.slice(0, 7), ["allow", "api", 1000, 999, 0, 86400, 0]);
    assert.strictEqual(first[7].length, 0);
    assert.strictEqual(values(await client.ask("WEIR.CHECK", "api", "alice", "COST", "9"))[3], 990);
    assert.strictEqual(values(await client.ask("WEIR.PEEK", "api", "alice"))[3], 990);
    assert.strictEqual(values(await client.ask("WEIR.ASK", "path", "/api/x", "user", "alice"))[3], 989);
    assert.strictEqual(values(await client.ask("WEIR.CHECK", "api", Buffer.from([0, 13, 10, 255]), "COST", "3"))[3], 997);
    await assert.rejects(client.ask("WEIR.CHECK", "nope", "x"), /NOLIMIT no limit named 'nope'/);
    await assert.rejects(client.ask("NO.SUCH"), /unknown command/);
}

// As many as the limit, whoever asks: two connections, each with a pipeline.
async function hammer(client, other) {
    const commands = Array.from({length: 1500}, () => ["WEIR.CHECK", "api", "crowd"]);
    const replies = (await Promise.all([client.many(commands), other.many(commands)])).flat().map(values);
    assert.strictEqual(replies.filter((a) => a[0] === "allow").length, 1000);
    assert.strictEqual(replies.filter((a) => a[0] === "deny" && a[4] >= 1).length, 2000);
}

// The server goes and comes: the same clients go on.
async function restart(client, other, port, config) {
    await stop();
    await start(port, config);
    assert.strictEqual(values(await client.ask("WEIR.PEEK", "api", "later"))[3], 1000);
    await check(client);
    assert.strictEqual(await other.ping(), "PONG");
}

async function main() {
    const config = process.argv[4];
    const port = await start(0, config);
    const client = await libraries[library](port);
    const other = await libraries[library](port);
    await check(client);
    await hammer(client, other);
    await restart(client, other, port, config);
    await client.end();
    await other.end();
    await stop();
    console.log(`${library} ${require(`${library}/package.json`).version}, RESP${version}: good`);
}

main().then(() => process.exit(0), (error) => {
    console.error(`${library}, RESP${version}:`, error);
    process.exit(1);
});
