// node-redis and ioredis as drivers (see ../README.md): node driver.js redis|ioredis PORT RESP SECRET
"use strict";
const readline = require("readline");

const [library, port, resp, secret] = process.argv.slice(2);
const {version} = require(`${library}/package.json`);

// ask(words) sends one command, many(commands, transaction) several.
const libraries = {
    redis: async () => {
        const options = {socket: {host: "127.0.0.1", port: Number(port)}, password: secret || undefined};
        if (parseInt(version) > 4) options.RESP = Number(resp);
        const client = require("redis").createClient(options);
        client.on("error", (error) => { // it connects again by itself, also with a wrong secret
            if (/WRONGPASS/.test(error.message)) fail(error);
        });
        await client.connect();
        return {
            ask: (words) => client.sendCommand(words),
            many: (commands, transaction) => {
                if (!transaction) return Promise.all(commands.map((words) => client.sendCommand(words)));
                const multi = client.multi();
                for (const words of commands) multi.addCommand(words);
                return multi.exec();
            },
        };
    },
    ioredis: async () => {
        const Redis = require("ioredis");
        const client = new Redis({host: "127.0.0.1", port: Number(port), password: secret || undefined,
            protocol: Number(resp), retryStrategy: () => 50});
        client.on("error", () => {});
        await client.ping();
        return {
            ask: (words) => client.call(...words),
            many: async (commands, transaction) => {
                const pipeline = transaction ? client.multi() : client.pipeline();
                for (const words of commands) pipeline.call(...words);
                return (await pipeline.exec()).map(([error, reply]) => error || reply);
            },
        };
    },
};

// What JSON.stringify() writes as the library gave it.
function plain(value) {
    if (value instanceof Error) return {error: value.message};
    if (Array.isArray(value)) return value.map(plain);
    if (value instanceof Map) return Object.fromEntries([...value].map(([k, v]) => [k, plain(v)]));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]));
}

async function main() {
    const client = await libraries[library]();
    console.log(library === "redis" ? "node-redis" : library, version);
    for await (const line of readline.createInterface({input: process.stdin})) {
        const [verb, ...words] = line.split("\t");
        const commands = words.join("\t").split("\t;\t").map((command) => command.split("\t"));
        const reply = verb === "ask" ? client.ask(words) : client.many(commands, verb === "multi");
        console.log(JSON.stringify(plain(await Promise.resolve(reply).catch((error) => error))));
    }
    process.exit(0);
}

function fail(error) {
    console.error(error);
    process.exit(1);
}

main().catch(fail);
