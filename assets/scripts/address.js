// The page's address says which tab is in front and what it shows. What a visitor came with stays there until a tab shows something.

const came = location.search;
const keys = new Set(["tab"]);
/** @type {Map<string, () => string>} */
const shown = new Map();
let front = new URLSearchParams(came).get("tab") || "explore";
let waits = front !== "explore"; // Gradio shows the first tab before the one to begin with

function write() {
  const url = new URL(location.href);
  for (const key of keys) url.searchParams.delete(key);
  if (front !== "explore") url.searchParams.set("tab", front);
  for (const [key, value] of new URLSearchParams(shown.get(front)?.() || "")) url.searchParams.set(key, value);
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}

// What a tab shows, as a part of the address: the component's value.
/** @param {string} tab @param {string[]} own @param {Props<string>} props @param {Watch} watch */
export function part(tab, own, props, watch) {
  const kept = new URLSearchParams([...new URLSearchParams(came)].filter(([key]) => own.includes(key))).toString();
  let decided = false;
  for (const key of own) keys.add(key);
  shown.set(tab, () => {
    decided ||= Boolean(props.value);
    return decided ? props.value : kept;
  });
  watch("value", write);
}

// A comparison's columns come one after another; its link is drawn with each.
const LOOK = 1000; // milliseconds
let linked = "";
setInterval(() => {
  const link = document.querySelector("#qx-compare-heading [data-act=copy-link]")?.dataset.arg || "";
  if (!link || link === linked) return;
  linked = link;
  keys.add("compare");
  shown.set("compare", () => link);
  write();
}, LOOK);

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
