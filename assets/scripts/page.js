// What belongs to the page rather than to a panel: the run id in the address, keys, and their help.

/** @param {HTMLElement} element @param {Props} props @param {Watch} watch */
export function page(element, props, watch) {
  const dialog = element.querySelector("dialog");
  const off = element.querySelector("input");
  const STORED = "qrag-keys-off";
  off.checked = !(localStorage.getItem(STORED) === "1");
  off.addEventListener("change", () => localStorage.setItem(STORED, off.checked ? "0" : "1"));

  function address() {
    if (!props.value) return;      // nothing decided yet: keep what the visitor came with
    const runId = props.value === "none" ? "" : props.value;
    const url = new URL(location.href);
    if ((url.searchParams.get("run") || "") === runId) return;
    if (runId) url.searchParams.set("run", runId); else url.searchParams.delete("run");
    history.replaceState(history.state, "", url);
  }
  watch("value", address);
  address();

  // What opens over the page: panels with a button of their own, and menus. A click elsewhere or Escape closes them.
  const panelOf = (button) => document.getElementById(button.dataset.toggle);
  function toggle(button, open) {
    panelOf(button)?.classList.toggle("qx-open", open);
    button.setAttribute("aria-expanded", String(open));
  }
  function closeOthers(target) {
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
    return closed;
  }
  function clickAnywhere(event) {
    if (!element.isConnected) return document.removeEventListener("click", clickAnywhere);
    if (!event.target.isConnected) return undefined; // a redraw has taken it away
    const button = event.target.closest("[data-toggle]");
    if (button) toggle(button, button.getAttribute("aria-expanded") !== "true");
    if (event.target.closest("[data-dismiss]")) event.target.closest(".qx-notice").hidden = true;
    closeOthers(event.target);
    return undefined;
  }
  document.addEventListener("click", clickAnywhere);

  // A reload keeps the question that was typed, as long as the same documents and the same run are in view again.
  const TYPED = "qrag-typed";
  /** @returns {HTMLTextAreaElement} */
  const question = () => document.querySelector("#qx-question textarea");
  const openTitle = () => document.querySelector("#qx-header .qx-doc-title")?.textContent;
  addEventListener("pagehide", () => {
    if (openTitle() && question()) sessionStorage.setItem(TYPED, JSON.stringify([location.search, openTitle(), question().value]));
  });
  let touched = false; // whoever has begun to use the page is not written over
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, () => (touched = true), { once: true });
  function typeAgain([title, words], tries) { // what is opened brings its own question, which may come after its title
    if (touched || !tries) return;
    if (openTitle() === title && question()?.value) {
      tries = Math.min(tries, 8);
      if (question().value !== words) {
        question().value = words;
        question().dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
    setTimeout(() => typeAgain([title, words], tries - 1), 250);
  }
  const [where, ...typed] = JSON.parse(sessionStorage.getItem(TYPED) || "[]");
  if (where === location.search && typed[1]) typeAgain(typed, 240);

  const isShown = (part) => part && part.offsetParent !== null;      // keys belong to the tab that is open
  const press = (...ids) => {
    const button = ids.map((id) => document.getElementById(id)).find(isShown);
    if (button && !button.matches(":disabled")) button.click();
  };
  function look(by) {              // through the story, the stop at its end included
    const parts = [...document.querySelectorAll("#qx-story [data-act=look]")].filter(isShown);
    const now = parts.findIndex((part) => part.closest(".qx-on"));
    const next = parts[Math.min(Math.max((now < 0 ? 0 : now) + by, 0), parts.length - 1)];
    if (next) next.click();
  }
  /** @type {Record<string, () => void>} */
  const KEYS = {
    r: () => press("qx-run", "qx-compare-run", "qx-sparc-start", "qx-sets-run"), s: () => press("qx-step"), b: () => press("qx-back"), c: () => press("qx-cancel", "qx-compare-cancel", "qx-sparc-cancel", "qx-sets-cancel"),
    "[": () => look(-1), "]": () => look(1),
    "/": () => [...document.querySelectorAll("#qx-question textarea, #qx-compare-question textarea, #qx-sparc-question textarea, #qx-sets-question textarea")].find(isShown)?.focus(),
    "?": () => (dialog.open ? dialog.close() : dialog.showModal()),
  };
  function key(event) {
    if (!element.isConnected) return document.removeEventListener("keydown", key);
    if (event.key === "Escape" && !event.defaultPrevented) closeOthers(null)?.focus();
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    if (event.target.closest("input, textarea, select, [contenteditable=true]") || (!off.checked && event.key !== "?")) return;
    event.preventDefault();
    KEYS[event.key]();
  }
  document.addEventListener("keydown", key);
  // Charts measure their place when the window changes its size: one whose tab was hidden then is told again when the tab is shown.
  document.addEventListener("click", (event) => {
    if (!(/** @type {Element} */ (event.target).closest("[role=tab]"))) return;
    setTimeout(() => dispatchEvent(new Event("resize")), 100);
  });
  element.querySelector("button").addEventListener("click", () => dialog.close());
}
