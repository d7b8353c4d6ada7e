// The rules in effect, as /v1/config prints them: one text for each limit, and what its lines say about keys. The server's
// own answers are preferred; this fills in forms and names keys in lists that have their text alone.

// Cuts the rules into the lines of each limit: an item of the list begins with "  - name:".
export function cutRules(yaml) {
    const parts = new Map();
    let name = null;
    for (const line of yaml.split("\n")) {
        const item = /^ {2}- name: (.*)$/.exec(line);
        if (item) {
            name = unquote(item[1]);
            parts.set(name, []);
        } else if (!/^ {3}/.test(line)) {
            name = null;
        }
        if (name !== null) {
            parts.get(name).push(line.slice(2));
        }
    }
    return parts;
}

const unquote = (text) => (/^'.*'$/.test(text) ? text.slice(1, -1).replaceAll("''", "'") : text);
const listOf = (text) => (text.match(/'(?:[^']|'')*'|[^,\s]+/g) ?? []).map(unquote);

export function valueOf(lines, name) {
    return unquote(lines.map((line) => line.match(`^ {2}${name}: (.*)$`)?.[1]).find(Boolean) ?? "");
}

// The parts of a limit's key; each is a list of alternatives.
function keyOf(lines) {
    const list = /^\[(.*)\]$/.exec(valueOf(lines, "key"));
    return list ? listOf(list[1]).map((part) => part.split("|")) : null;
}

const conditionsOf = (lines) => [...valueOf(lines, "when").matchAll(/([\w.-]+): \[((?:'(?:[^']|'')*'|[^\]'])*)\]/g)].map(([, name, list]) => [name, listOf(list)]);

// The names of attributes that conditions, keys and tiers use.
export function attributesIn(rules) {
    const names = new Set();
    for (const lines of rules.values()) {
        conditionsOf(lines).forEach(([name]) => names.add(name));
        keyOf(lines)?.flat().forEach((name) => names.add(name));
        lines.forEach((line) => /^ {4}by: (\S+)$/.exec(line)?.slice(1).forEach((name) => names.add(name)));
    }
    return [...names];
}

// The parts of a key from its text ("user=alice|/search"), as [attribute, value]; null if the text does not tell.
function readKey(lines, text) {
    const key = lines && keyOf(lines);
    const values = key?.length === 0 ? [] : text.split("|");
    if (!key || values.length !== key.length || /\\x|\.\.\.$/.test(text)) {
        return null;
    }
    return key.map((names, i) => {
        const name = names.length === 1 ? names[0] : names.find((n) => values[i].startsWith(`${n}=`));
        return name && [name, names.length === 1 ? values[i] : values[i].slice(name.length + 1), name === names[0]];
    });
}

// What /v1/keys/* takes to name a key: its parts, and which of them are later alternatives (`ip` of user|ip).
function naming(parts) {
    const by = parts?.filter((part) => part && !part[2]).map((part) => part[0]).join(",");
    return parts?.every(Boolean) ? { key: parts.map((part) => part[1]), ...(by ? { by } : {}) } : null;
}

// The same for a key that is known by its text alone, or by the attributes of a request; null if these do not tell it.
export const namingOf = (lines, text) => naming(readKey(lines, text));
export const namingFor = (lines, attributes) => naming(lines && keyOf(lines)?.map((names) => {
    const name = names.find((n) => attributes[n] !== undefined);
    return name && [name, attributes[name], name === names[0]];
}));

const request = (lines, parts) => {
    const conditions = conditionsOf(lines ?? []).map(([name, list]) => [name, list[0].replace(/\*+/g, "x")]);
    return new URLSearchParams([...new Map([...parts, ...conditions])]).toString();
};

// Attributes of a request that would meet the limit with this key; a guess where a condition has a pattern.
export const requestFor = (lines, text) => request(lines, readKey(lines, text)?.filter(Boolean).map(([name, value]) => [name, value]) ?? []);

// The same with a key that we make up.
const MADE_UP = { ip: "203.0.113.7", method: "GET", path: "/", host: "example.com" };
export const exampleFor = (lines) => request(lines, (keyOf(lines) ?? []).map(([name]) => [name, MADE_UP[name] ?? "alice"]));
