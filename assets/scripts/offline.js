// A run's page without a server: its numbers lie in the page.

import { localServer, looksOf } from "./offline_numbers.js";
import { strip } from "./strip.js";
import { go, lightUp, tree } from "./tree.js";

/** @param {string} packed */
async function inflated(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

// A component as the app has it: its value, and who is told when that changes.
/** @template V @param {V} value */
function component(value) {
  const [props, listeners] = [{ value }, []];
  return { props, watch: (_, listener) => listeners.push(listener), set: (next) => ((props.value = next), listeners.forEach((tell) => tell())) };
}

/** @param {string} id */
const $ = (id) => document.getElementById(id);

// The chunk in its place, as far as its neighbours' texts are here.
/** @param {number} chunk @param {LoggedRun} run @param {Map<number, [string, string]>} texts */
function readingOf(chunk, run, texts) {
  const { value } = run;
  const pins = new Map(value.chosen.map((pin) => [pin.chunk_id, pin]));
  const title = value.documents.findLast((part) => part.first_chunk <= chunk)?.title || "";
  const [heading] = texts.get(chunk) || [""];
  const where = [title, heading].filter(Boolean).join(" › ");
  const name = `chunk ${chunk.toLocaleString("en-US")} of ${value.n_chunks.toLocaleString("en-US")}`;
  const crumb = ["div", { class: "qx-crumb" }, [["span", {}, [where]], ["span", { class: "qx-mut" }, [name]]]];
  if (!texts.has(chunk)) return [crumb, ["p", { class: "qx-empty" }, ["The text of this chunk is not in this page."]]];
  const spans = [];
  for (let i = chunk - 6; i <= chunk + 6; i++) {
    if (!texts.has(i)) continue;
    const pin = pins.get(i);
    const kinds = ["qx-chunk", ...(pin ? ["qx-chosen", `qx-c${((pin.step - 1) % 8) + 1}`] : []), ...(value.gold.includes(i) ? ["qx-gold"] : []), ...(i === chunk ? ["qx-marked"] : [])];
    const sign = pin ? [["span", { class: "qx-pin" }, [pin.name || String(pin.step)]]] : [];
    spans.push(["span", { class: kinds.join(" "), "data-act": "open", "data-arg": String(i), "data-show": i === chunk }, [...sign, texts.get(i)[1]]], " ");
  }
  return [crumb, ["div", { class: "qx-read", tabindex: "0", role: "region", "aria-label": "Document text" }, spans]];
}

function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.body.classList.toggle("dark", dark.matches);
  dark.addEventListener("change", follow);
  follow();
}

// What a run with Q of all chunks has: the strip, and steps to walk. Gives what buttons may ask for.
/** @param {LoggedRun} run @param {Map<number, [string, string]>} texts @param {(chunk: number) => void} open */
async function stepping(run, texts, open) {
  const looks = looksOf(await inflated(run.numbers), run.value.n_looks);
  const at = (look) => ({ ...run.value, look, intervals: run.rulers[look - 1] });
  const shown = component(at(run.value.look));

  function mark(look) {
    for (const button of document.querySelectorAll("[data-act=look]")) {
      const on = Number(button.dataset.arg) === look;
      button.closest("li, .qx-step")?.classList.toggle("qx-on", on);
      if (button.matches(".qx-part")) on ? button.setAttribute("aria-current", "step") : button.removeAttribute("aria-current");
    }
    const chosen = run.value.chosen.find((pin) => pin.step === look)?.chunk_id;
    for (const span of document.querySelectorAll("#qx-evidence .qx-chunk")) span.classList.toggle("qx-marked", Number(span.dataset.arg) === chosen);
    $("qx-before").toggleAttribute("disabled", look === 1);
    $("qx-next").toggleAttribute("disabled", look === run.value.n_looks);
    $("qx-at").textContent = run.value.stopped && look === run.value.n_looks ? "where it stopped" : `step ${look} of ${run.value.chosen.length}`;
  }
  function show(look) {
    if (look < 1 || look > run.value.n_looks || look === shown.props.value.look) return;
    shown.set(at(look));
    mark(look);
  }
  document.addEventListener("keydown", (event) => {
    const by = { "[": -1, "]": 1 }[event.key];
    if (!by || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    show(shown.props.value.look + by);
  });
  $("qx-before").onclick = () => show(shown.props.value.look - 1);
  $("qx-next").onclick = () => show(shown.props.value.look + 1);
  for (const id of ["qx-live", "qx-walk"]) $(id).hidden = false;
  strip($("qx-strip"), shown.props, (_, data) => ("look" in data ? show(data.look) : open(data.chunk_id)), shown.watch, localServer(run, looks, texts));
  mark(run.value.look);
  return { look: (arg) => show(Number(arg)) };
}

async function start() {
  followTheme();
  for (const node of document.querySelectorAll("[data-x]")) node.style.setProperty("--x", node.dataset.x);
  /** @type {LoggedRun} */
  const run = JSON.parse($("qx-data").textContent);
  const rows = run.texts ? JSON.parse(new TextDecoder().decode(await inflated(run.texts))) : [];
  const texts = new Map(rows.map(([chunk, heading, text]) => [chunk, [heading, text]]));
  const reading = component(JSON.stringify([]));
  function open(chunk) {
    if (!Number.isInteger(chunk) || chunk < 0 || chunk >= run.value.n_chunks) return;
    $("qx-reading-card").hidden = false;
    reading.set(JSON.stringify(readingOf(chunk, run, texts)));
    $("qx-reading-card").scrollIntoView({ block: "nearest" });
  }
  const act = { open: (arg) => open(Number(arg)), goto: go, ...(run.numbers ? await stepping(run, texts, open) : {}) };
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target).closest("[data-act]");
    if (target && !$("qx-reading").contains(target)) act[target.dataset.act]?.(target.dataset.arg); // the tree tells of its own
  });
  tree($("qx-reading"), reading.props, (_, { act: name, arg }) => act[name]?.(arg), reading.watch);
  lightUp(document.body);
}

if ($("qx-data")) start();
else followTheme();
