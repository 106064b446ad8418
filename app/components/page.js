// What belongs to the page rather than to a panel: the run id in the address, keys, and their help.
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

// A narrow screen begins with the settings folded, so that the strip is near the buttons.
const folded = new Set(); // who opens them again wants them open
function fold(id, tries) {
  if (innerWidth >= 640 || folded.has(id)) return;
  const open = document.querySelector(`#${id} button.label-wrap.open`);
  if (open) {
    folded.add(id);
    open.click();
  } else if (tries) setTimeout(() => fold(id, tries - 1), 200);
}
fold("qx-settings", 20);

const isShown = (part) => part && part.offsetParent !== null;      // keys belong to the tab that is open
const press = (...ids) => {
  const button = ids.map((id) => document.getElementById(id)).find(isShown);
  if (button && !button.disabled) button.click();
};
function look(by) {
  const cards = [...document.querySelectorAll("#qx-steps [data-act=look]")].filter(isShown);
  const now = cards.findIndex((card) => card.closest(".qx-on"));
  const next = cards[Math.min(Math.max((now < 0 ? 0 : now) + by, 0), cards.length - 1)];
  if (next) next.click();
}
const KEYS = {
  r: () => press("qx-run", "qx-compare-run", "qx-sparc-start"), s: () => press("qx-step"), b: () => press("qx-back"), c: () => press("qx-cancel", "qx-compare-cancel", "qx-sparc-cancel"),
  "[": () => look(-1), "]": () => look(1),
  "/": () => [...document.querySelectorAll("#qx-question textarea, #qx-compare-question textarea, #qx-sparc-question textarea")].find(isShown)?.focus(),
  "?": () => (dialog.open ? dialog.close() : dialog.showModal()),
};
function key(event) {
  if (!element.isConnected) return document.removeEventListener("keydown", key);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  if (event.target.closest("input, textarea, select, [contenteditable=true]") || (!off.checked && event.key !== "?")) return;
  event.preventDefault();
  KEYS[event.key]();
}
document.addEventListener("keydown", key);
// Charts measure their place when the window changes its size: one whose tab was hidden then is told again when the tab is shown.
document.addEventListener("click", (event) => {
  if (!event.target.closest("[role=tab]")) return;
  setTimeout(() => dispatchEvent(new Event("resize")), 100);
  fold("qx-sparc-settings", 5);
});
element.querySelector("button").addEventListener("click", () => dialog.close());
