// A page of runs without a server: its numbers lie in the page.

import { around, needed } from "./elements.js";
import { localServer, looksOf, readingOf } from "./offline_numbers.js";
import { strip } from "./strip.js";
import { go, lightUp, tree } from "./tree.js";

/** @param {string} packed */
async function inflated(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

// A component as the app has it: its value, and who listens to changes of it.
/** @template V @param {V} value */
function component(value) {
  const props = { value };
  /** @type {(() => void)[]} */
  const listeners = [];
  /** @type {Watch} */
  const watch = (_, listener) => listeners.push(listener);
  /** @param {V} next */
  function set(next) {
    props.value = next;
    for (const listener of listeners) listener();
  }
  return { props, watch, set };
}

/** @param {string} id */
const $ = (id) => needed(document.getElementById(id), id);

function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.body.classList.toggle("dark", dark.matches);
  dark.addEventListener("change", follow);
  follow();
}

// What runs with Q of all chunks have: the strip, which shows one of them, and steps to walk. Gives what buttons may ask for.
/** @param {LoggedRun[]} runs @param {Float32Array[]} rows @param {Texts} texts @param {(chunk: number) => void} open */
function stepping(runs, rows, texts, open) {
  const servers = new Map(runs.map((run) => [run.value.token, localServer(run, run.rows.map((row) => rows[row]), texts)]));
  /** @param {[string, ...unknown[]]} request */
  const serverOf = ([token]) => needed(servers.get(token), token);
  /** @type {Server} */
  const server = {
    tiles: (request) => serverOf(request).tiles(request),
    runmap: (request) => serverOf(request).runmap(request),
    describe: (request) => serverOf(request).describe(request),
    top: (request) => serverOf(request).top(request),
  };
  const looks = runs.map((run) => run.value.look); // where each of them was left
  let at = 0;
  const valueOf = () => ({ ...runs[at].value, look: looks[at], intervals: runs[at].rulers[looks[at] - 1] });
  const shown = component(valueOf());

  function mark() {
    const [{ value, column, name }, look] = [runs[at], looks[at]];
    for (const button of document.querySelectorAll("[data-act=look]")) {
      const on = Number(button.dataset.arg) === look;
      button.closest("li, .qx-step")?.classList.toggle("qx-on", on);
      if (button.matches(".qx-part")) on ? button.setAttribute("aria-current", "step") : button.removeAttribute("aria-current");
    }
    const chosen = value.chosen.find((pin) => pin.step === look)?.chunk_id;
    for (const span of document.querySelectorAll("#qx-evidence .qx-chunk")) span.classList.toggle("qx-marked", Number(span.dataset.arg) === chosen);
    for (const button of document.querySelectorAll("[data-act=column]")) button.setAttribute("aria-pressed", String(Number(button.dataset.arg) === column));
    const columns = document.querySelectorAll(".qx-columns > .qx-column");
    columns.forEach((section, i) => section.querySelectorAll(".qx-found > li").forEach((card, k) => card.classList.toggle("qx-on", i === column && k + 1 === look)));
    $("qx-before").toggleAttribute("disabled", look === 1);
    $("qx-next").toggleAttribute("disabled", look === value.n_looks);
    const where = value.stopped && look === value.n_looks ? "where it stopped" : `step ${look} of ${value.chosen.length}`;
    $("qx-at").textContent = name ? `${name}: ${where}` : where;
  }
  /** @param {number} look @param {number} [run] */
  function show(look, run = at) {
    if (run < 0 || look < 1 || look > runs[run].value.n_looks || (look === looks[at] && run === at)) return;
    [at, looks[run]] = [run, look];
    shown.set(valueOf());
    mark();
  }
  document.addEventListener("keydown", (event) => {
    const by = { "[": -1, "]": 1 }[event.key];
    if (!by || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    show(looks[at] + by);
  });
  $("qx-before").onclick = () => show(looks[at] - 1);
  $("qx-next").onclick = () => show(looks[at] + 1);
  for (const id of ["qx-live", "qx-walk"]) $(id).hidden = false;
  strip($("qx-strip"), shown.props, (_, data) => ("look" in data ? show(data.look) : open(data.chunk_id)), shown.watch, server);
  mark();

  /** @param {number} column */
  const ofColumn = (column) => runs.findIndex((run) => run.column === column);
  /** @param {number} chunk @param {number} column */
  function choose(chunk, column) { // a card or a pin of a column: the step at which it was chosen
    const run = ofColumn(column);
    const step = runs[run]?.value.chosen.find((pin) => pin.chunk_id === chunk)?.step;
    if (step) show(step, run);
  }
  /** @type {Record<string, (arg: string) => void>} */
  const walks = { look: (arg) => show(Number(arg)), column: (arg) => show(looks[ofColumn(Number(arg))], ofColumn(Number(arg))) };
  return { walks, choose };
}

async function start() {
  followTheme();
  for (const node of document.querySelectorAll("[data-x]")) node.style.setProperty("--x", node.dataset.x || "");
  /** @type {PageData} */
  const page = JSON.parse($("qx-data").textContent || "");
  /** @type {[number, string, string][]} */
  const rows = page.texts ? JSON.parse(new TextDecoder().decode(await inflated(page.texts))) : [];
  /** @type {Texts} */
  const texts = new Map(rows.map(([chunk, heading, text]) => [chunk, [heading, text]]));
  const place = page.reading || page.runs[0].value;
  const reading = component(JSON.stringify([]));
  /** @param {number} chunk */
  function open(chunk) {
    if (!Number.isInteger(chunk) || chunk < 0 || chunk >= place.n_chunks) return;
    $("qx-reading-card").hidden = false;
    reading.set(JSON.stringify(readingOf(chunk, place, texts)));
    for (const link of document.querySelectorAll("[data-act=open][aria-pressed]")) link.setAttribute("aria-pressed", String(Number.parseInt(link.dataset.arg || "", 10) === chunk));
    $("qx-reading-card").scrollIntoView({ block: "nearest" });
  }
  const steps = page.runs.length ? stepping(page.runs, looksOf(await inflated(page.numbers), page.n_rows), texts, open) : null;
  /** @param {string} arg */
  function openAt(arg) {
    const [chunk, column] = arg.split(" ").map(Number);
    open(chunk);
    if (column !== undefined) steps?.choose(chunk, column);
  }
  const close = () => ($("qx-reading-card").hidden = true);
  /** @type {Record<string, (arg: string) => void>} */
  const acts = { open: openAt, show: openAt, close, goto: go, ...steps?.walks };
  document.addEventListener("click", (event) => {
    const target = around(event, "[data-act]");
    if (target && !$("qx-reading").contains(target)) acts[target.dataset.act || ""]?.(target.dataset.arg || ""); // the tree tells of its own
  });
  tree($("qx-reading"), reading.props, (_, { act, arg }) => acts[act]?.(arg), reading.watch);
  lightUp(document.body);
}

if (document.getElementById("qx-data")) start();
else followTheme();
