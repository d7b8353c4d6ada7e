// Elements, and the components that the views share. Values reach the document as text nodes and attributes only, never as
// markup: keys, names and rule texts may hold anything.

const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "tabIndex", "selected", "readOnly"]);

// Returns an element. Names that begin with "on" are listeners; null, undefined and false leave an attribute out.
export function h(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (value === null || value === undefined || value === false) {
            continue;
        }
        if (name.startsWith("on")) {
            element.addEventListener(name.slice(2), value);
        } else if (PROPERTIES.has(name)) {
            element[name] = value;
        } else {
            element.setAttribute(name, value === true ? "" : value);
        }
    }
    element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
}

export function fill(element, ...children) {
    element.replaceChildren(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
}

// Sets the text only if it has changed: a screen reader reads, and the browser lays out, nothing that is as before.
export function setText(element, text) {
    if (element.textContent !== text) {
        element.textContent = text;
    }
}

let ids = 0;
export const newId = (prefix) => `${prefix}-${++ids}`;

// A titled section. `actions` are at the right of its title.
export function panel(title, { note = null, actions = [], wide = false, level = "h2" } = {}, ...children) {
    const id = newId("panel");
    return h("section", { class: wide ? "panel wide" : "panel", "aria-labelledby": id },
        h("div", { class: "panel-head" }, h(level, { id }, title), note && h("span", { class: "note" }, note), h("div", { class: "actions" }, actions)),
        ...children);
}

// A word with a shape before it, so that its colour is not its only sign. kind: ok, warn, bad, info, off.
const SHAPES = { ok: "●", warn: "▲", bad: "■", info: "◆", off: "○" };
export function badge(kind, text, title = null) {
    return h("span", { class: `badge ${kind}`, title }, h("span", { class: "shape", "aria-hidden": "true" }, SHAPES[kind] ?? ""), text);
}

export function field(label, control, hint = null) {
    control.id ||= newId("field");
    const note = hint && h("span", { class: "hint", id: `${control.id}-hint` }, hint);
    if (note) {
        control.setAttribute("aria-describedby", note.id);
    }
    return h("div", { class: "field" }, h("label", { for: control.id }, label), control, note);
}

// A field that narrows a list. `key` puts the cursor into it, from anywhere but another field; close() ends that. Escape
// empties it.
export function filterBox(label, oninput, { key = null } = {}) {
    const input = h("input", {
        type: "search", "aria-label": label, "aria-keyshortcuts": key, placeholder: key ? `Filter: press ${key}` : "Filter", spellcheck: "false", autocomplete: "off", oninput,
        onkeydown: (event) => {
            if (event.key === "Escape" && input.value) {
                event.preventDefault();
                input.value = "";
                oninput();
            }
        },
    });
    const element = h("div", { class: "filter" }, input);
    const press = (event) => {
        const typed = event.target.closest?.("input:not([type=radio], [type=checkbox]), textarea, select, dialog");
        if (event.key === key && !typed && !element.hidden && !event.ctrlKey && !event.metaKey && !event.altKey) {
            event.preventDefault();
            input.focus();
        }
    };
    document.addEventListener("keydown", press);
    return { element, input, close: () => document.removeEventListener("keydown", press) };
}

// Buttons of which one is chosen. options: [[value, text], ...]
export function segmented(label, options, value, onchange) {
    const name = newId("segment");
    return h("fieldset", { class: "segmented" }, h("legend", { class: "unseen" }, label),
        options.map(([option, text]) => h("label", {},
            h("input", { type: "radio", name, value: option, checked: option === value, onchange: () => onchange(option) }), h("span", {}, text))));
}

// A level between 0 and 1. set(level, text, kind) changes it; text is what a screen reader says.
export function bar(label, kind = "info") {
    const inner = h("span", { class: "bar-fill" });
    const element = h("div", { class: `bar ${kind}`, role: "meter", "aria-label": label, "aria-valuemin": "0", "aria-valuemax": "100" }, inner);
    let last = "";
    return {
        element,
        set(level, text, newKind = kind) {
            const part = Math.max(0, Math.min(1, level || 0));
            const now = `${part} ${text} ${newKind}`;
            if (now !== last) {
                last = now;
                inner.style.transform = `scaleX(${part})`;
                element.className = `bar ${newKind}`;
                element.setAttribute("aria-valuenow", String(Math.round(100 * part)));
                element.setAttribute("aria-valuetext", text);
            }
        },
    };
}

// columns: [[title, class], ...]; a class "num" aligns numbers. The caption is for screen readers.
export function table(caption, columns, rows = []) {
    const body = h("tbody", {}, rows);
    const element = h("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": `${caption}: table` },
        h("table", { class: "data" }, h("caption", { class: "unseen" }, caption),
            h("thead", {}, h("tr", {}, columns.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))), body));
    return { element, body };
}

export function empty(title, ...text) {
    return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), text.length ? h("p", {}, ...text) : null);
}

export function code(text) {
    return h("code", {}, text);
}

// The command that prints a link to this page. It names the address unless that is the usual one.
export function linkCommand() {
    const { protocol, hostname, port } = location;
    const tls = protocol === "https:";
    if (!tls && port === "8082" && (hostname === "127.0.0.1" || hostname === "localhost")) {
        return "weir ctl link";
    }
    const address = `${tls ? "https://" : ""}${hostname}:${port || (tls ? 443 : 80)}`;
    return `weir ctl --admin ${address.includes("[") ? `'${address}'` : address} link`;
}

// What to show where the admin secret is needed.
export function needsSecret(what) {
    return empty(`${what} need the admin secret`, "Run ", code(linkCommand()), " where the server runs, and open the link that it prints; or sign in with the secret.");
}

export function toast(text, kind = "info") {
    const box = h("div", { class: `toast ${kind}` }, h("span", { class: "shape", "aria-hidden": "true" }, SHAPES[kind] ?? ""), h("span", {}, text),
        h("button", { type: "button", class: "icon-button", "aria-label": "Dismiss", onclick: () => box.remove() }, "×"));
    const list = document.getElementById("toasts");
    list.append(box);
    while (list.children.length > 4) {
        list.firstChild.remove();
    }
    setTimeout(() => box.remove(), kind === "bad" ? 15000 : 5000);
}

// Opens a dialog with a form. `submit` may be async; an error that it throws is shown, and the dialog stays open.
// Resolves to what submit returned, or undefined if the dialog was cancelled.
export function ask({ title, text = null, fields = [], action, danger = false, submit = () => true }) {
    return new Promise((resolve) => {
        const problem = h("p", { class: "problem", role: "alert", hidden: true });
        const go = h("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
        const id = newId("dialog");
        let result;
        const form = h("form", {
            novalidate: true,
            onsubmit: async (event) => {
                event.preventDefault();
                go.disabled = true;
                try {
                    result = await submit(form);
                    dialog.close();
                } catch (e) {
                    problem.textContent = e.message;
                    problem.hidden = false;
                } finally {
                    go.disabled = false;
                }
            },
        }, h("h2", { id }, title), text && h("p", {}, text), fields, problem,
        h("div", { class: "dialog-actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), go));
        const dialog = h("dialog", {
            "aria-labelledby": id,
            onclose: () => {
                dialog.remove();
                resolve(result);
            },
        }, form);
        document.body.append(dialog);
        dialog.showModal();
    });
}
