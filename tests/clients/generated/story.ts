// Uses the types that openapi-typescript has generated, with openapi-fetch: node story.js URL-OF-HTTP URL-OF-ADMIN SECRET.
// Compiling it is half of the test: members with defaults are optional, and the two forms of a check are told apart.
import createClient from "openapi-fetch";
import type { components, paths } from "./weir.js";

declare const process: { argv: string[] };

const [http, admin, secret] = process.argv.slice(2);
const open = createClient<paths>({ baseUrl: http });
const operator = createClient<paths>({ baseUrl: admin, headers: { Authorization: `Bearer ${secret}` } });

function same(found: unknown, expected: unknown, what: string): void {
    if (found !== expected) {
        throw new Error(`${what}: found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
    }
}

const byName: components["schemas"]["CheckByName"] = { limit: "api", key: "tom" };
for (const left of [2, 1, 0]) {
    const { data } = await open.POST("/v1/check", { body: byName });
    same(data?.remaining, left, "remaining");
}
const denied = await open.POST("/v1/check", { body: { ...byName, key: ["tom"] } });
same(denied.response.status, 429, "denied");
same(denied.error !== undefined && "verdict" in denied.error && denied.error.verdict, "deny", "verdict");

const matched = await open.POST("/v1/check", { body: { attributes: { path: "/api/x", user: "uma" }, cost: 2 } });
same(matched.data?.limit, "api", "limit");
same((await open.POST("/v1/peek", { body: { limit: "api", key: "uma" } })).data?.remaining, 1, "peek");

const held = await open.POST("/v1/reserve", { body: { limit: "api", key: "vic", cost: 3 } });
const settled = await open.POST("/v1/settle", { body: { reservation: held.data!.reservation, actual: 1 } });
same(settled.data?.remaining, 2, "settled");

const call: components["schemas"]["RateLimitRequest"] = {
    domain: "d",
    descriptors: [{ entries: [{ key: "user", value: "wim" }], limit: { unit: "MINUTE", requestsPerUnit: 4294967295 } }],
};
same((await open.POST("/json", { body: call })).data?.overallCode, "OK", "rate limit service");

same((await operator.POST("/v1/keys/refund", { body: { limit: "api", key: "tom" } })).response.status, 200, "refund without units");
same((await operator.GET("/v1/limits/{name}", { params: { path: { name: "api" } } })).response.status, 200, "limit");
same((await operator.GET("/v1/top")).data?.denied.some((item) => item.key === "tom"), true, "top");
console.log("openapi-typescript: the story is told");
