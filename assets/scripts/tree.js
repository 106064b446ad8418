// Draws a tree of plain data as DOM. Text only ever becomes text nodes and whitelisted attributes: nothing in it can turn into
// markup, template or script. A node is a string or [tag, attributes, children]. Clicks on [data-act] are sent to Python.
// Every panel of a page runs it; the page's head holds it once, as `qx.tree`.

import { around, one } from "./elements.js";

const TAGS = new Set(("div span p b strong em del mark small code pre h2 h3 h4 ul ol li table thead tbody tr th td button details summary " +
  "progress section header nav a label hr dl dt dd blockquote").split(" "));
const SHAPES = new Set(["svg", "path"]); // in a namespace of their own, with attributes that load and run nothing
const ATTRIBUTES = new Set(("class title role tabindex value max disabled hidden open id lang dir scope colspan " +
  "viewBox preserveAspectRatio height d").split(" "));

/** @param {TreeNode} node */
function build(node) {
  if (!Array.isArray(node)) return document.createTextNode(String(node ?? ""));
  const [tag, attributes, children] = node;
  const made = SHAPES.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(TAGS.has(tag) ? tag : "span");
  for (const [name, value] of Object.entries(attributes || {})) {
    const words = value === true ? "" : String(value);
    if (name === "--c") made.style.setProperty("--c", /^var\(--qx-[a-z0-9]+\)$/.test(words) ? words : "");
    else if (name === "--x" || name === "--y") made.style.setProperty(name, /^\d{1,3}(\.\d+)?%$/.test(words) ? words : ""); // how far across, how far down
    else if (name === "href") { if (/^(#|\?run=)[\w=-]*$/.test(words)) made.setAttribute("href", words); }
    else if (value === false || value === null) continue;
    else if (ATTRIBUTES.has(name) || /^(aria|data)-[a-z-]+$/.test(name)) made.setAttribute(name, words);
  }
  if (made instanceof HTMLButtonElement) made.type = "button";
  for (const child of children || []) made.appendChild(build(child));
  return made;
}

// To a part of the page.
/** @param {string} id */
export function go(id) {
  const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  document.getElementById(id)?.scrollIntoView({ behavior, block: "start" });
}

// What is the same thing in several places lights up in all of them, while one of them is pointed at or has the focus.
/** @param {HTMLElement} root */
export function lightUp(root) {
  /** @type {{ pointer?: string, focus?: string }} */
  const lit = {};
  /** @param {"pointer" | "focus"} by @param {HTMLElement | null} at */
  function light(by, at) {
    lit[by] = at?.dataset.same;
    for (const node of root.querySelectorAll("[data-same]")) node.classList.toggle("qx-lit", Object.values(lit).includes(node.dataset.same || ""));
  }
  root.addEventListener("pointerover", (event) => light("pointer", around(event, "[data-same]")));
  root.addEventListener("pointerleave", () => light("pointer", null));
  root.addEventListener("focusin", (event) => light("focus", around(event, "[data-same]")));
  root.addEventListener("focusout", () => light("focus", null));
}

/** @param {HTMLElement} element @param {Props<string>} props @param {Trigger<Click>} trigger @param {Watch} watch */
export function tree(element, props, trigger, watch) {
  const root = one(element, ".qx-tree");

  function focused() {              // where the focus is, so that a redraw can put it back
    const [toggle, act] = ["[data-toggle]", "[data-act]"].map((selector) => document.activeElement?.closest(selector));
    if (toggle && root.contains(toggle)) return `[data-toggle="${CSS.escape(toggle.dataset.toggle || "")}"]`;
    return act && root.contains(act) ? `[data-act="${CSS.escape(act.dataset.act || "")}"][data-arg="${CSS.escape(act.dataset.arg || "")}"]` : null;
  }

  function draw() {
    if (Array.isArray(props.value)) throw new Error("nodes came unpacked: wrap the handler that sends them in packs()");
    const value = JSON.parse(props.value || "[]");
    const focus = focused();
    const before = root.querySelector("[data-keep-scroll]");
    const scrolled = before?.scrollTop;
    root.replaceChildren(...value.map(build));
    if (focus) root.querySelector(focus)?.focus({ preventScroll: true });
    for (const toggle of root.querySelectorAll("[data-toggle]")) { // what it opens has not changed, see page.js
      toggle.setAttribute("aria-expanded", String(Boolean(document.getElementById(toggle.dataset.toggle || "")?.classList.contains("qx-open"))));
    }
    const next = root.querySelector("[data-keep-scroll]");
    const [news, known] = [next, before].map((part) => part?.querySelector("[data-news]")); // shown once, as it comes
    const shown = root.querySelector("[data-show]");
    if (next && news && news.dataset.news !== known?.dataset.news) show(next, news);
    else if (next && scrolled !== undefined && next.dataset.keepScroll === before?.dataset.keepScroll) next.scrollTop = scrolled;
    else if (next && shown) show(next, shown);
    root.dispatchEvent(new Event("qx-drawn", { bubbles: true }));
  }

  /** @type {ResizeObserver | undefined} */
  let waits;
  /** @param {HTMLElement} pane @param {HTMLElement} part */
  function show(pane, part) {       // a pane that is hidden has nothing to scroll: once it is seen
    waits?.disconnect();
    const scroll = () => {
      if (!pane.clientHeight) return;
      waits?.disconnect();
      pane.scrollTop += part.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
    };
    waits = new ResizeObserver(scroll); // tells of a size at once
    waits.observe(pane);
  }

  /** @param {HTMLElement} button @param {string} text */
  function copy(button, text) {
    navigator.clipboard?.writeText(text);
    button.classList.add("qx-copied");
    setTimeout(() => button.classList.remove("qx-copied"), 1200);
  }

  /** @param {string} name @param {string} text */
  function download(name, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: /\.csv$/.test(name) ? "text/csv" : "application/json" }));
    link.download = name || "download.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  root.addEventListener("click", (event) => {
    const target = around(event, "[data-act]");
    if (!target || target.matches(":disabled")) return;
    target.closest("details.qx-menu")?.removeAttribute("open");
    const { act = "", arg = "", name = "" } = target.dataset;
    if (act === "copy") copy(target, arg);
    else if (act === "copy-link") copy(target, new URL(arg, location.origin + location.pathname).href);
    else if (act === "goto") go(arg);
    else if (act === "download") download(name, arg);
    else trigger("select", { act, arg });
  });
  lightUp(root);
  watch("value", draw);
  draw();
}
