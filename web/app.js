// The shell: which view is open, whether the server answers, who is signed in, light or dark.

import { api } from "./api.js";
import { feed } from "./feed.js";
import { ask, badge, code, empty, field, fill, h, linkCommand, needsSecret, toast } from "./dom.js";
import { clock, when } from "./format.js";

const VIEWS = [
    { name: "live", title: "Live", load: () => import("./live.js") },
    { name: "keys", title: "Keys", load: () => import("./keys.js"), admin: "Keys" },
    { name: "play", title: "Playground", load: () => import("./play.js"), admin: "The playground's sandboxes", demo: true },
    { name: "try", title: "Try rules", load: () => import("./try.js"), admin: "The checker and its sandboxes" },
];
const byId = (id) => document.getElementById(id);
const main = byId("main");

// ---- the secret ---------------------------------------------------------

// A link of `weir ctl link` carries the secret in its fragment, which browsers do not send. It leaves the address bar at once.
function takeSecretFromAddress() {
    const found = /^#secret=([^&]+)/.exec(location.hash);
    if (found) {
        api.secret = decodeURIComponent(found[1]);
        history.replaceState(null, "", `${location.pathname}#/live`);
    }
}

async function signIn() {
    const input = h("input", { type: "password", name: "secret", autocomplete: "off", spellcheck: "false" });
    await ask({
        title: "Sign in",
        text: h("span", {}, "Run ", code(linkCommand()), " where the server runs, and open the link that it prints; or paste the admin secret here. It stays in this tab."),
        fields: [field("Admin secret", input)],
        action: "Sign in",
        submit: async () => {
            const secret = input.value.trim().replace(/^.*#secret=/, "");
            if (!secret) {
                throw new Error("Found no secret. Expected the text after #secret= in the link.");
            }
            try {
                await api.get("v1/mode", { secret });
            } catch (e) {
                throw e.status === 401 || e.status === 403 ? new Error("The server does not know this secret.") : e;
            }
            api.secret = secret;
        },
    });
}

// Nothing of this tab stays: the rules that were tried out may have been those in effect.
function signOut() {
    sessionStorage.clear();
    window.dispatchEvent(new Event("signout"));
    api.secret = null;
    toast("Signed out. The secret is removed from this tab.");
}

function showRole() {
    const button = byId("sign");
    const admin = api.role === "admin" && api.secret;
    button.textContent = admin ? "Sign out" : "Sign in";
    button.className = admin ? "small" : "small primary";
    button.onclick = admin ? signOut : signIn;
    byId("views").querySelectorAll("a[data-admin]").forEach((a) => a.classList.toggle("locked", api.role !== "admin"));
}

// ---- light and dark -----------------------------------------------------

const THEMES = { auto: ["◐", "Colours follow the system"], light: ["☀", "Light colours"], dark: ["☾", "Dark colours"] };

function showTheme(theme) {
    const [sign, text] = THEMES[theme];
    const button = byId("theme");
    button.textContent = sign;
    button.title = `${text}. Press to change.`;
    button.setAttribute("aria-label", button.title);
    if (theme === "auto") {
        delete document.documentElement.dataset.theme;
    } else {
        document.documentElement.dataset.theme = theme;
    }
    window.dispatchEvent(new Event("themechange"));
}

function startTheme() {
    const names = Object.keys(THEMES);
    let theme = localStorage.getItem("weir.theme");
    theme = names.includes(theme) ? theme : "auto";
    byId("theme").onclick = () => {
        theme = names[(names.indexOf(theme) + 1) % names.length];
        localStorage.setItem("weir.theme", theme);
        showTheme(theme);
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => showTheme(theme));
    showTheme(theme);
}

// ---- the connection -----------------------------------------------------

const STATES = {
    connecting: ["off", "connecting"],
    live: ["ok", "live"],
    paused: ["off", "paused"],
    gone: ["bad", "no answer"],
    refused: ["warn", "signed out"],
    full: ["warn", "no stream"],
};

function bannerText() {
    const since = feed.lastAt ? ` since ${clock(feed.lastAt)}` : "";
    switch (feed.state) {
    case "gone":
        return feed.why ? `${feed.why} Trying again.` : `The server at ${location.host} has not answered${since}. This page reconnects by itself.`;
    case "full":
        return feed.why || "The server has no free event stream. Trying again.";
    default:
        return "";
    }
}

function showState() {
    const [kind, text] = STATES[feed.state];
    const element = byId("connection");
    if (element.dataset.state !== feed.state) {
        element.dataset.state = feed.state;
        fill(element, badge(kind, text));
    }
    const banner = byId("banner");
    const words = bannerText();
    if (banner.textContent !== words) {
        banner.textContent = words;
    }
    banner.hidden = !words;
    document.body.classList.toggle("stale", feed.state === "gone");
    showNotices();
}

// ---- notices ------------------------------------------------------------

const SEVERITIES = { critical: "bad", warning: "warn" };

// "Store away since 20:51:22: login denies all", then why, for the role admin, and what to do. Between backquotes is code.
function noticeItem(notice) {
    const since = notice.since_ms === null ? "" : ` since ${when(notice.since_ms)}`;
    const act = notice.act.split("`").map((text, i) => (i % 2 ? code(text) : text));
    return h("li", { class: SEVERITIES[notice.severity] ?? "warn", "data-notice": notice.name },
        badge(SEVERITIES[notice.severity] ?? "warn", notice.severity),
        h("span", {}, h("b", {}, `${notice.title}${since}: ${notice.text}.`), " ", notice.why && h("span", { class: "why" }, notice.why, " "), h("span", { class: "act" }, act)));
}

// A server that does not answer has no notices: what it said last may be over. The elements change only with the texts, so
// that a screen reader reads what is new.
function showNotices() {
    const box = byId("notices");
    const shown = feed.state === "gone" || feed.state === "refused" ? [] : feed.notices;
    const key = JSON.stringify(shown);
    if (box.dataset.key !== key) {
        box.dataset.key = key;
        fill(box, shown.length > 0 && h("ul", {}, shown.map(noticeItem)));
    }
}

function showSample() {
    const last = feed.samples.at(-1);
    const mode = byId("mode");
    const shadow = last?.mode === "shadow";
    if (mode.hidden === shadow || !mode.firstChild) {
        mode.hidden = !shadow;
        fill(mode, badge("warn", "shadow: nothing is denied"));
    }
    const foot = feed.version ? `weir ${feed.version} at ${location.host}` : location.host;
    if (byId("foot").textContent !== foot) {
        byId("foot").textContent = foot;
    }
}

// ---- views --------------------------------------------------------------

let close = null;
let opened = "";
let shown = null; // the view that is open
let route = ""; // the fragment at the last navigation: views may rewrite it without being opened again


const needsAdmin = (view) => view.admin && !(view.demo && api.demo);

// Dialogs end with the view that they belong to.
function closeDialogs() {
    document.querySelectorAll("dialog[open]").forEach((dialog) => dialog.close());
}

function showNavigation(current) {
    fill(byId("views"), VIEWS.map((view) => h("a", { href: `#/${view.name}`, "aria-current": view === current ? "page" : null, "data-admin": needsAdmin(view) ? "" : null }, view.title)));
    showRole();
}

async function openView() {
    const name = /^#\/(\w+)/.exec(route)?.[1];
    const view = VIEWS.find((v) => v.name === name) ?? VIEWS[0];
    const connecting = api.role === null && feed.state === "connecting";
    const locked = (needsAdmin(view) && api.role !== "admin") || feed.state === "refused";
    const key = `${route} ${api.role === "admin"} ${connecting} ${locked} ${api.demo}`;
    if (key === opened) {
        return;
    }
    opened = key;
    close?.();
    close = null;
    if (view !== shown) {
        shown = view;
        closeDialogs();
    }
    showNavigation(view);
    document.title = `${view.title} · weir`;
    main.dataset.view = view.name;
    if (connecting) {
        fill(main);
        return;
    }
    if (locked) {
        const signed = h("div", { class: "centre" }, h("button", { type: "button", class: "primary", onclick: signIn }, "Sign in"));
        fill(main, h("h1", { class: "unseen" }, view.title), needsSecret(view.admin ?? "On this server even counts"), signed);
        return;
    }
    try {
        const module = await view.load();
        if (opened === key) {
            fill(main, h("h1", { class: "unseen" }, view.title));
            close = module.open(main, api);
        }
    } catch (e) {
        fill(main, empty("This view could not be opened", e.message));
    }
}

function start() {
    takeSecretFromAddress();
    route = location.hash;
    startTheme();
    window.addEventListener("hashchange", () => {
        takeSecretFromAddress();
        route = location.hash;
        openView();
    });
    document.querySelector(".skip").onclick = (event) => {
        event.preventDefault();
        main.focus();
    };
    api.addEventListener("role", () => {
        if (api.role === "admin") {
            closeDialogs();
        }
        showRole();
        openView();
    });
    feed.on("state", () => {
        showState();
        openView();
    });
    feed.on("refused", () => toast(`The server no longer knows this secret. Run ${linkCommand()} for a new link.`, "bad"));
    feed.on("notices", showNotices);
    feed.on("history", () => {
        showSample();
        openView();
    });
    feed.on("sample", showSample);
    showState();
    feed.start();
    openView();
}

start();
