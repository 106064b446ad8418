// The page's address says which tab is in front and what it shows. What a visitor came with stays there until a tab shows something.

const came = location.search;
const keys = new Set(["tab"]);
/** @type {Map<string, [string, () => string]>} */
const shown = new Map(); // by its keys, the tab that shows it and what that is
let front = new URLSearchParams(came).get("tab") || "explore";
let waits = front !== "explore"; // Gradio shows the first tab before the one to begin with

function write() {
  const url = new URL(location.href);
  for (const key of keys) url.searchParams.delete(key);
  if (front !== "explore") url.searchParams.set("tab", front);
  for (const [tab, of] of shown.values()) {
    if (tab === front) for (const [key, value] of new URLSearchParams(of())) url.searchParams.set(key, value);
  }
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

// What a tab shows, as a part of the address: the component's value.
/** @param {string} tab @param {string[]} own @param {Props<string>} props @param {Watch} watch */
export function part(tab, own, props, watch) {
  const kept = new URLSearchParams([...new URLSearchParams(came)].filter(([key]) => own.includes(key))).toString();
  let decided = false;
  for (const key of own) keys.add(key);
  shown.set(own.join(), [tab, () => {
    decided ||= Boolean(props.value);
    return decided ? props.value : kept;
  }]);
  watch("value", write);
}

// What stands behind a link of its own, which is drawn with it: the columns of a comparison come one after another.
document.addEventListener("qx-drawn", (event) => {
  const link = event.target instanceof Element && event.target.querySelector('[data-act="copy-link"][data-arg^="?tab="]')?.dataset.arg;
  if (!link) return;
  const asks = new URLSearchParams(link), tab = asks.get("tab") || "";
  asks.delete("tab");
  for (const key of asks.keys()) keys.add(key);
  shown.set([...asks.keys()].join(), [tab, () => asks.toString()]);
  write();
});

/** @param {string} tab */
export function show(tab) {
  if (waits && tab !== front) return;
  waits = false;
  front = tab;
  write();
}

// The tab to begin with, the address, and whether it asks for one of `wanted`: parts of tabs that are not drawn are not known yet.
/** @param {string[]} tabs @param {string[]} wanted */
export function first(tabs, wanted) {
  if (!tabs.includes(front)) [front, waits] = ["explore", false];
  const asks = new URLSearchParams(came);
  return [{ __type__: "update", selected: front }, came, { __type__: "update", active: wanted.some((key) => asks.has(key)) }];
}
