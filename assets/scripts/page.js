// What belongs to the page rather than to a panel: what is in view in the address, keys, and their help.

import { around, needed, one } from "./elements.js";

/** @param {HTMLElement} element @param {Props<string>} props @param {Watch} watch */
export function page(element, props, watch) {
  const dialog = needed(element.querySelector("dialog"), "dialog");
  const off = needed(element.querySelector("input"), "input");
  const STORED = "qrag-keys-off";
  off.checked = !(localStorage.getItem(STORED) === "1");
  off.addEventListener("change", () => localStorage.setItem(STORED, off.checked ? "0" : "1"));

  // Light or dark, or what the system says.
  const [theme, COLOURS] = [needed(element.querySelector(".qx-theme"), ".qx-theme"), "qrag-colours"];
  const system = matchMedia("(prefers-color-scheme: dark)");
  const SCHEMES = [["", "◐", "as the system has them"], ["light", "☀", "light"], ["dark", "☾", "dark"]];
  const scheme = () => Math.max(0, SCHEMES.findIndex(([name]) => name === localStorage.getItem(COLOURS)));
  function paint() {
    const [name, sign, words] = SCHEMES[scheme()];
    document.body.classList.toggle("dark", name ? name === "dark" : system.matches);
    theme.textContent = sign;
    theme.title = `Colours: ${words}`;
    theme.setAttribute("aria-label", theme.title);
  }
  theme.addEventListener("click", () => {
    localStorage.setItem(COLOURS, SCHEMES[(scheme() + 1) % SCHEMES.length][0]);
    paint();
  });
  system.addEventListener("change", paint);
  paint();

  function address() {
    if (!props.value) return;      // nothing decided yet: keep what the visitor came with
    const url = new URL(location.href);
    const [name, id] = props.value.split("=");
    for (const old of ["run", "doc"]) url.searchParams.delete(old);
    if (id) url.searchParams.set(name, id);
    if (url.href !== location.href) history.replaceState(history.state, "", url);
  }
  watch("value", address);
  address();

  // A server that was started anew knows nothing of this page: it is loaded again, with what its address names.
  const away = needed(element.querySelector(".qx-away"), ".qx-away");
  const { root, api_prefix, app_id } = window.gradio_config;
  async function look() {
    if (!element.isConnected) return clearInterval(looking);
    if (document.visibilityState !== "visible") return undefined;
    try {
      const answer = await fetch(`${root}${api_prefix}/app_id`);
      away.hidden = answer.ok;
      if (answer.ok && (await answer.json()).app_id !== app_id) location.reload();
    } catch {
      away.hidden = false;
    }
    return undefined;
  }
  const looking = setInterval(look, 4000);
  document.addEventListener("visibilitychange", look);

  // What opens over the page: panels with a button of their own, and menus. A click elsewhere or Escape closes them.
  /** @param {HTMLElement} button */
  const panelOf = (button) => document.getElementById(button.dataset.toggle || "");
  /** @param {HTMLElement} button @param {boolean} open */
  function toggle(button, open) {
    panelOf(button)?.classList.toggle("qx-open", open);
    button.setAttribute("aria-expanded", String(open));
  }
  /** @param {Node | null} target */
  function closeOthers(target) {
    /** @type {HTMLElement | null} */
    let closed = null;
    for (const button of document.querySelectorAll('[data-toggle][aria-expanded="true"]')) {
      if (button.contains(target) || panelOf(button)?.contains(target)) continue;
      toggle(button, false);
      closed = button;
    }
    for (const menu of document.querySelectorAll("details.qx-menu[open]")) {
      if (menu.contains(target)) continue;
      menu.removeAttribute("open");
      closed = menu.querySelector("summary");
    }
    const share = document.querySelector('[data-act="share"]'); // closes by itself what it has opened
    for (const close of document.querySelectorAll('.qx-over [data-act="keep"], .qx-over .qx-notice:not([hidden]) [data-dismiss]')) {
      if (share?.contains(target) || close.closest(".qx-notice")?.contains(target)) continue;
      close.click();
      closed = share;
    }
    const keep = target ? null : inView("#qx-keep")[0]; // the panel that changes the document holds files and text: a click beside it keeps it
    keep?.click();
    return keep ? opener() : closed;
  }
  const opener = () => one(document, "#qx-change-button");
  /** @param {MouseEvent} event */
  function clickAnywhere(event) {
    if (!element.isConnected) return document.removeEventListener("click", clickAnywhere);
    if (!(event.target instanceof Node && event.target.isConnected)) return undefined; // a redraw has taken it away
    const button = around(event, "[data-toggle]");
    if (button) toggle(button, button.getAttribute("aria-expanded") !== "true");
    const notice = around(event, "[data-dismiss]")?.closest(".qx-notice");
    if (notice) notice.hidden = true;
    if (around(event, "#qx-keep")) opener().focus(); // its panel goes, and the focus with it
    closeOthers(event.target);
    return undefined;
  }
  document.addEventListener("click", clickAnywhere);

  // A reload keeps the question that was typed, as long as the same documents and the same run are in view again.
  const TYPED = "qrag-typed";
  /** @returns {HTMLTextAreaElement | null} */
  const question = () => document.querySelector("#qx-question textarea");
  const openTitle = () => document.querySelector("#qx-header .qx-doc-title")?.textContent;
  addEventListener("pagehide", () => {
    const box = question();
    if (openTitle() && box) sessionStorage.setItem(TYPED, JSON.stringify([location.search, openTitle(), box.value]));
  });
  let touched = false; // whoever has begun to use the page is not written over
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, () => (touched = true), { once: true });
  // What is opened brings its own question, which may come after its title. Ends once there are no words to keep.
  /** @param {string} title @param {() => string} words @param {number} tries */
  function typeAgain(title, words, tries) {
    const [box, kept] = [question(), words()];
    if (!kept || !tries) return;
    if (box && openTitle() && (!title || openTitle() === title)) {
      tries = Math.min(tries, 8);
      if (box.value !== kept) {
        box.value = kept;
        box.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
    setTimeout(() => typeAgain(title, words, tries - 1), 250);
  }
  const [where, title, words] = JSON.parse(sessionStorage.getItem(TYPED) || "[]");
  if (where === location.search && words) typeAgain(title, () => (touched ? "" : words), 240);
  let early = ""; // asked before the first document was there
  document.addEventListener("input", (event) => {
    const box = question();
    if (!event.isTrusted || !box || event.target !== box) return;
    const begins = !early;
    early = openTitle() ? "" : box.value;
    if (begins) typeAgain("", () => early, 240);
  });

  /** @param {string} selector */
  const inView = (selector) => [...document.querySelectorAll(selector)].filter((part) => part.offsetParent !== null); // keys belong to the tab that is open
  /** @param {string} selector */
  const press = (selector) => {
    const [button] = inView(selector);
    if (button && !button.matches(":disabled")) button.click();
  };
  /** @param {number} by */
  function walk(by) {              // through the story, the stop at its end included
    const parts = inView("#qx-story [data-act=look]");
    const now = parts.findIndex((part) => part.closest(".qx-on"));
    const next = parts[Math.min(Math.max((now < 0 ? 0 : now) + by, 0), parts.length - 1)];
    if (next) next.click();
  }
  const QUESTIONS = "#qx-question textarea, #qx-compare-question textarea, #qx-sparc-question textarea, #qx-sets-question textarea";
  const ask = () => inView(QUESTIONS)[0]?.focus();
  /** @type {Keys} */
  const KEYS = {
    r: () => press("#qx-run, #qx-compare-run, #qx-sparc-start, #qx-sets-run"), s: () => press("#qx-step"), b: () => press("#qx-back"),
    c: () => press("#qx-cancel, #qx-compare-cancel, #qx-sparc-cancel, #qx-sets-cancel"),
    "[": () => walk(-1), "]": () => walk(1),
    "/": ask,
    "?": () => (dialog.open ? dialog.close() : dialog.showModal()),
  };
  /** @param {KeyboardEvent} event */
  function key(event) {
    if (!element.isConnected) return document.removeEventListener("keydown", key);
    if (event.key === "Escape" && !event.defaultPrevented && !around(event, '[role=combobox]')) closeOthers(null)?.focus(); // in a list it closes that alone
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    if (around(event, "input, textarea, select, [contenteditable=true]") || (!off.checked && event.key !== "?")) return;
    event.preventDefault();
    KEYS[event.key]();
  }
  document.addEventListener("keydown", key);
  // What is at work is not begun once more, and the press is seen from the first moment on: in Explore what stands there turns pale.
  const STARTS = "#qx-run, #qx-compare-run, #qx-sparc-start, #qx-sets-run, #qx-evaluate-run, #qx-whole-run";
  const HEARD = ["opening", "progress", "notice", "standing", "status"].map((part) => `[id$=-${part}] .qx-tree`).join(", ");
  /** @param {Event} event @param {HTMLElement | null | undefined} button */
  function starts(event, button) {
    const card = button?.closest(".qx-card");
    if (!button || !card) return;
    if (button.matches(":disabled") || card.matches(".qx-sent")) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    until(card, "qx-sent", HEARD);
  }
  /** @param {Element} card @param {string} name @param {string} panels */
  function until(card, name, panels) { // one of the panels changes, or the event ends (see work.py)
    card.classList.add(name);
    const heard = new MutationObserver(over);
    function over() {
      heard.disconnect();
      card.classList.remove(name);
    }
    for (const panel of card.querySelectorAll(panels)) heard.observe(panel, { childList: true });
  }
  document.addEventListener("click", (event) => starts(event, around(event, STARTS)), true);
  document.addEventListener("click", (event) => {
    const card = around(event, ".qx-cancel")?.closest(".qx-card");
    if (card) until(card, "qx-cancelling", "[id$=-notice] .qx-tree");
  });
  document.addEventListener("keydown", (event) => {
    const composes = event.isComposing || event.keyCode === 229; // this Enter takes over what an input method offers
    const box = event.key === "Enter" && !event.shiftKey && !composes ? around(event, QUESTIONS) : null;
    if (box) starts(event, box.closest(".qx-card")?.querySelector(STARTS));
  }, true);
  // Charts measure their place when the window changes its size: one whose tab was hidden then is told again when the tab is shown.
  document.addEventListener("click", (event) => {
    if (around(event, "[role=tab]")) setTimeout(() => dispatchEvent(new Event("resize")), 100);
  });
  one(element, "dialog button").addEventListener("click", () => dialog.close());
  one(element, ".qx-skip").addEventListener("click", (event) => {
    event.preventDefault();
    ask();
  });
}
