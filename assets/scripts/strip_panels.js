// The words around the canvases: header buttons, legend, readout, tooltip, table. Text from documents becomes text nodes, nothing else.

import { shown, whole } from "./strip_numbers.js";
import { hue } from "./strip_surface.js";

const MODE_NAMES = { q: null, dq: "change", rank: "rank", p: "probability" }; // q bears the score's own name

/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {string} words @param {string} [className] @returns {HTMLElementTagNameMap[K]} */
export function made(tag, words, className = "") {
  const node = document.createElement(tag);
  node.textContent = words;
  if (className) node.className = className;
  return node;
}

/** @param {StripValue} value @param {number} look */
const isStop = (value, look) => value.stopped && look === value.n_looks;
/** @param {StripValue} value @param {number} look */
export const lookName = (value, look) => (isStop(value, look) ? "stop" : "step " + look);

/** @param {View} view */
function modeSentence(view) {
  const { value, mode } = view;
  const sentences = {
    q: "value of adding each chunk now",
    dq: "what the last choice changed: risen above the line, fallen below it",
    rank: `place of every chunk when sorted by ${value.score_name}, 1 is best; the scale is logarithmic`,
    p: `${value.probability_name}: chance that the policy picks the chunk now`,
  };
  const where = isStop(value, value.look) ? "where the agent stopped" : "step " + value.look;
  return `${where}: ${sentences[mode]}`;
}

// Reuses the buttons that are there, so that a new value does not take the focus away.
/** @param {HTMLElement} box @param {{ words: string, name: string, on: boolean, colour?: string, press: () => void }[]} items */
function fillButtons(box, items) {
  while (box.children.length > items.length) box.lastChild?.remove();
  while (box.children.length < items.length) {
    const button = made("button", "", "qx-btn");
    button.type = "button";
    box.append(button);
  }
  items.forEach(({ words, name, on, colour, press }, i) => {
    const button = /** @type {HTMLButtonElement} */ (box.children[i]);
    button.textContent = words;
    button.setAttribute("aria-pressed", String(on));
    button.setAttribute("aria-label", name);
    button.title = name;
    if (colour) button.style.setProperty("--qx-step", colour);
    button.onclick = press;
  });
}

/** @param {PartOf} part @param {View} view @param {Actions} actions */
export function fillHeader(part, view, actions) {
  const { value, mode } = view;
  part("title").textContent = value.score_name + " along the document" + (value.documents.length > 1 ? "s" : "");
  part("what").textContent = modeSentence(view);
  fillButtons(part("looks"), Array.from({ length: value.n_looks }, (_, i) => ({
    words: isStop(value, i + 1) ? "stop" : String(i + 1),
    name: isStop(value, i + 1) ? "The values at which the agent stopped" : "Step " + (i + 1),
    on: i + 1 === value.look,
    colour: isStop(value, i + 1) ? "var(--qx-good)" : `var(--qx-${hue(value.chosen.find((pin) => pin.step === i + 1) || { step: i + 1 })})`,
    press: () => actions.look(i + 1),
  })));
  showLook(part("looks"));
  fillButtons(part("modes"), value.modes.map((name) => ({
    words: MODE_NAMES[name] || value.score_name,
    name: "Show " + (MODE_NAMES[name] || value.score_name),
    on: name === mode,
    press: () => actions.mode(name),
  })));
}

/** @param {PartOf} part @param {StripValue} value @param {Shown} seen */
export function fillLegends(part, value, { mode, scale }) {
  const legend = part("legend");
  legend.hidden = mode === "q"; // the run map's legend says the same
  legend.dataset.scale = scale.ramp;
  part("legend-lo").textContent = scale.ends[0];
  part("legend-hi").textContent = scale.ends[1];
  part("map-lo").textContent = value.score_name + " " + shown(value.scale.lo);
  part("map-hi").textContent = shown(value.scale.hi);
}

// Brings the button of the look that is shown into sight.
/** @param {HTMLElement} looks */
export function showLook(looks) {
  const button = looks.querySelector("[aria-pressed=true]");
  if (button) looks.scrollLeft = button.offsetLeft - looks.offsetLeft - (looks.clientWidth - button.offsetWidth) / 2;
}

// What the marks mean, as far as there are any.
/** @param {HTMLElement} key @param {StripValue} value */
export function fillKey(key, value) {
  const items = [];
  if (value.gold.length) items.push(["○", "good", "support"]);
  if (value.missed.length) items.push(["◌", "warn", "missed"]);
  if (value.searched.length) items.push(["▨", "mut", "not searched"]);
  if (value.forbidden.length) items.push(["×", "warn", "forbidden"]);
  if (value.marks.some(([, belongs]) => belongs)) items.push(["•", "good", "marked: belongs"]);
  if (value.marks.some(([, belongs]) => !belongs)) items.push(["✗", "mut", "marked: doesn't"]);
  if (value.chosen.some((pin) => pin.by === "person")) items.push(["■", "ink", "chosen by you"]);
  if (value.chosen.some((pin) => pin.step < value.look)) items.push(["▮", "mut", "already chosen"]);
  key.replaceChildren(...items.map(([glyph, colour, words]) => {
    const item = made("span", " " + words);
    const sign = made("b", glyph);
    sign.style.color = `var(--qx-${colour})`;
    item.prepend(sign);
    return item;
  }));
}

// ["Q 0.91", "rank 1", ...] and what has happened to the chunk.
/** @param {View} view @param {Facts} facts */
function factsOf(view, facts) {
  const numbers = [facts.q === null ? "not searched" : `${view.value.score_name} ${shown(facts.q)}`];
  if (facts.rank !== null) numbers.push("rank " + whole(facts.rank) + (view.value.look > 1 ? " of those left" : ""));
  if (facts.p !== null && view.value.modes.includes("p")) numbers.push(`${view.value.probability_name}${view.value.probability_name.includes(" ") ? ":" : ""} ${shown(facts.p)}`);
  if (facts.rho !== null) numbers.push("position ρ " + facts.rho.toFixed(2));
  const pin = view.value.chosen.find((one) => one.chunk_id === facts.chunk_id);
  const notes = [];
  if (pin) notes.push(`chosen at step ${pin.step}` + (pin.by === "person" ? " by you" : ""));
  if (view.value.gold.includes(facts.chunk_id)) notes.push(view.value.missed.includes(facts.chunk_id) ? "missed support" : "support");
  if (view.value.forbidden.includes(facts.chunk_id)) notes.push("forbidden");
  for (const [chunk, belongs] of view.value.marks) if (chunk === facts.chunk_id) notes.push(belongs ? "marked: belongs" : "marked: doesn't belong");
  return { numbers, notes, pin };
}

/** @param {View} view @param {Facts} facts */
function sentenceOf(view, facts) {
  const { numbers, notes } = factsOf(view, facts);
  const spoken = numbers.filter((words) => !words.startsWith(view.value.probability_name));
  return [`chunk ${whole(facts.chunk_id)}`, ...spoken, ...notes].join(", ");
}

/** @param {HTMLElement} readout @param {View} view @param {Facts} facts */
export function fillReadout(readout, view, facts) {
  const [head, ...rest] = sentenceOf(view, facts).split(", ");
  readout.replaceChildren(made("b", head), document.createTextNode(rest.length ? ", " + rest.join(", ") : ""));
}

/** @param {HTMLElement} tip @param {View} view @param {Facts} facts */
export function fillTip(tip, view, facts) {
  const { numbers, notes, pin } = factsOf(view, facts);
  const head = made("div", "");
  head.append(made("b", `chunk ${whole(facts.chunk_id)}`));
  if (notes.length) {
    const note = made("span", " · " + notes.join(" · "));
    if (pin) note.style.color = `var(--qx-${hue(pin)})`;
    head.append(note);
  }
  const where = [facts.title, facts.heading].filter(Boolean).join(" · ");
  tip.replaceChildren(head, made("div", numbers.join(" · ")));
  if (where) tip.append(made("div", where, "qx-mut"));
  if (facts.text) tip.append(made("div", facts.text, "qx-strip-text"));
}

// Beside the pointer, within the plot; over the map it stays within the plot beside that.
/** @param {HTMLElement} tip @param {HTMLElement} plot @param {MouseEvent} event */
export function placeTip(tip, plot, event) {
  const box = plot.getBoundingClientRect();
  const x = event.clientX - box.left;
  const y = event.clientY - box.top;
  tip.hidden = false;
  const right = x + 16 + tip.offsetWidth <= box.width;
  const left = right ? x + 16 : Math.max(0, Math.min(x - 16, box.width) - tip.offsetWidth);
  tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(y + 18)}px)`;
}

/** @param {PartOf} part @param {View} view @param {Page} page @param {Actions} actions */
export function fillTable(part, view, page, actions) {
  const { value, mode } = view;
  const chances = value.modes.includes("p"); // of a greedy agent there are none
  const columns = ["chunk", value.score_name, "rank", ...(chances ? [value.probability_name] : []), "text"];
  const of = { q: "highest " + value.score_name, dq: `largest change of ${value.score_name}`, rank: "best rank", p: "highest probability" }[mode];
  part("table-caption").textContent = `Chunks by ${of}, ${lookName(value, value.look)}`;
  part("table-head").replaceChildren(...columns.map((name) => {
    const cell = made("th", name);
    cell.scope = "col";
    return cell;
  }));
  part("table-rows").replaceChildren(...page.rows.map((facts) => {
    const row = document.createElement("tr");
    const open = made("button", whole(facts.chunk_id), "qx-link");
    open.type = "button";
    open.setAttribute("aria-label", "Open chunk " + whole(facts.chunk_id));
    open.onclick = () => actions.open(facts.chunk_id);
    const first = document.createElement("td");
    first.append(open);
    const { notes } = factsOf(view, facts);
    const last = made("td", notes.length ? `(${notes.join(", ")}) ` : "");
    last.append(made("bdi", facts.text));
    row.append(first, ...[shown(facts.q), facts.rank === null ? "–" : whole(facts.rank), ...(chances ? [shown(facts.p)] : [])].map((cell) => made("td", cell)), last);
    return row;
  }));
  part("table-range").textContent = `${whole(page.offset + 1)} – ${whole(page.offset + page.rows.length)} of ${whole(page.total)}`;
}
