// A text area for rule files: line numbers beside it, and problems marked where they are. The marks are in a copy of the text
// that lies under the text area, in the same font.

import { fill, h } from "./dom.js";

const RANK = { error: 2, warning: 1, note: 0 };

// Where a column, which counts characters from 1, is in a string of 16-bit units.
function unitAt(line, column) {
    return [...line].slice(0, Math.max(column - 1, 0)).join("").length;
}

export class Editor {
    #lines = h("div", { class: "editor-lines", "aria-hidden": "true" });
    #marks = h("div", { class: "editor-marks", "aria-hidden": "true" });
    #count = 0;

    constructor(label, text, oninput) {
        this.area = h("textarea", { class: "editor-area", wrap: "off", spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": label, value: text });
        this.area.addEventListener("input", () => {
            this.show([]);
            oninput();
        });
        this.area.addEventListener("scroll", () => this.#scroll());
        this.element = h("div", { class: "editor" }, this.#lines, h("div", { class: "editor-paper" }, this.#marks, this.area));
        this.show([]);
    }

    get text() {
        return this.area.value;
    }

    set text(text) {
        this.area.value = text;
        this.show([]);
    }

    #scroll() {
        this.#lines.scrollTop = this.area.scrollTop;
        this.#marks.scrollTop = this.area.scrollTop;
        this.#marks.scrollLeft = this.area.scrollLeft;
    }

    // Shows messages {severity, line, column, text} at their places.
    show(messages) {
        const lines = this.text.split("\n");
        if (lines.length !== this.#count) {
            this.#count = lines.length;
            fill(this.#lines, lines.map((_, i) => h("div", {}, String(i + 1))));
        }
        const at = new Map();
        for (const message of messages) {
            const before = at.get(message.line);
            if (!before || RANK[message.severity] > RANK[before.severity]) {
                at.set(message.line, message);
            }
        }
        [...this.#lines.children].forEach((line, i) => (line.className = at.get(i + 1)?.severity ?? ""));
        fill(this.#marks, at.size ? lines.map((line, i) => this.#marked(line, at.get(i + 1))) : []);
        this.area.setAttribute("aria-invalid", String(messages.some((m) => m.severity === "error")));
        this.#scroll();
    }

    #marked(line, message) {
        if (!message) {
            return `${line}\n`;
        }
        const from = unitAt(line, message.column);
        const word = /^[\w./*|-]+|^./u.exec(line.slice(from))?.[0] ?? " ";
        return [line.slice(0, from), h("mark", { class: message.severity }, word), `${line.slice(from + word.length)}\n`];
    }

    // Puts the cursor at a place and brings it into sight.
    go(line, column) {
        const lines = this.text.split("\n");
        const before = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
        const at = before + unitAt(lines[line - 1] ?? "", column);
        this.area.focus();
        this.area.setSelectionRange(at, at);
        const height = this.area.scrollHeight / Math.max(lines.length, 1);
        if (line * height < this.area.scrollTop || (line + 1) * height > this.area.scrollTop + this.area.clientHeight) {
            this.area.scrollTop = Math.max(line * height - this.area.clientHeight / 2, 0);
        }
    }
}
