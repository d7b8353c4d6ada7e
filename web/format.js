// Numbers, durations and times as text. Units are those of weir's commands: k, M, G for counts, kB, MB for bytes
// (powers of 1000); times are in the viewer's time zone, always with 24 hours.

const pad = (n, width = 2) => String(n).padStart(width, "0");

// Three significant digits: 7, 42, 999, 1.23, 45.6.
function short(value) {
    const size = Math.abs(value);
    if (size >= 99.95 || Number.isInteger(value)) {
        return String(Math.round(value));
    }
    return value.toFixed(size >= 9.995 ? 1 : 2);
}

function scaled(value, units) {
    let i = 0;
    while (i + 1 < units.length && Math.abs(value) >= 999.5) {
        value /= 1000;
        i++;
    }
    return [short(value), units[i]];
}

export function count(value) {
    if (value === null || value === undefined) {
        return "–";
    }
    const [text, unit] = scaled(value, ["", "k", "M", "G", "T"]);
    return text + unit;
}

export const exact = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en-US"));

export function bytes(value) {
    const [text, unit] = scaled(value, ["bytes", "kB", "MB", "GB", "TB"]);
    return `${text} ${unit}`;
}

export function micros(value) {
    if (value === null || value === undefined) {
        return "–";
    }
    const [text, unit] = scaled(value, ["µs", "ms", "s"]);
    return `${text} ${unit}`;
}

export function percent(part, whole) {
    if (!whole) {
        return "–";
    }
    const value = (100 * part) / whole;
    if (value > 0 && value < 0.1) {
        return "< 0.1 %";
    }
    return `${value >= 9.95 || value === 0 ? Math.round(value) : value.toFixed(1)} %`;
}

// Two units at most: 0.4 s, 12.5 s, 2 min 5 s, 3 h 20 min, 4 d 2 h. null means that the time never comes.
export function duration(ms) {
    if (ms === null || ms === undefined) {
        return "never";
    }
    if (ms < 0) {
        return "without end";
    }
    if (ms < 59950) {
        return ms >= 1 && ms < 100 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
    }
    const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    let seconds = Math.round(ms / 1000);
    const words = [];
    for (const [name, size] of units) {
        const n = Math.floor(seconds / size);
        if ((n > 0 || words.length > 0) && words.length < 2) {
            words.push(n > 0 ? `${n} ${name}` : "");
        }
        seconds -= n * size;
    }
    return words.filter(Boolean).join(" ");
}

export function clock(ms, seconds = true) {
    const t = new Date(ms);
    return `${pad(t.getHours())}:${pad(t.getMinutes())}` + (seconds ? `:${pad(t.getSeconds())}` : "");
}

// The time alone if it is today, otherwise with its date.
export function when(ms) {
    const t = new Date(ms);
    const today = new Date();
    const date = `${t.getFullYear()}-${pad(t.getMonth() + 1)}-${pad(t.getDate())}`;
    return t.toDateString() === today.toDateString() ? clock(ms) : `${date} ${clock(ms)}`;
}

export const words = (name) => String(name).replaceAll("_", " ");
export const plural = (n, one, many = `${one}s`) => `${exact(n)} ${n === 1 ? one : many}`;
