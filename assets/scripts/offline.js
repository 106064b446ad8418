// A run's page without a server: its numbers lie in the page.

import { localServer, looksOf } from "./offline_numbers.js";
import { strip } from "./strip.js";
import { tree } from "./tree.js";

async function inflated(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

// A component as the app has it: its value, and who is told when that changes.
function component(value) {
  const [props, listeners] = [{ value }, []];
  return { props, watch: (_, listener) => listeners.push(listener), set: (next) => ((props.value = next), listeners.forEach((tell) => tell())) };
}

const $ = (id) => document.getElementById(id);

// The chunk in its place, as far as its neighbours' texts are here.
function readingOf(chunk, run, texts) {
  const { value } = run;
  const pins = new Map(value.chosen.map((pin) => [pin.chunk_id, pin.step]));
  const title = value.documents.findLast((part) => part.first_chunk <= chunk)?.title || "";
  const [heading] = texts.get(chunk) || [""];
  const where = [title, heading].filter(Boolean).join(" › ");
  const name = `chunk ${chunk.toLocaleString("en-US")} of ${value.n_chunks.toLocaleString("en-US")}`;
  const crumb = ["div", { class: "qx-crumb" }, [["span", {}, [where]], ["span", { class: "qx-mut" }, [name]]]];
  if (!texts.has(chunk)) return [crumb, ["p", { class: "qx-empty" }, ["The text of this chunk is not in this page."]]];
  const spans = [];
  for (let i = chunk - 6; i <= chunk + 6; i++) {
    if (!texts.has(i)) continue;
    const step = pins.get(i);
    const kinds = ["qx-chunk", ...(step ? ["qx-chosen", `qx-c${((step - 1) % 8) + 1}`] : []), ...(value.gold.includes(i) ? ["qx-gold"] : []), ...(i === chunk ? ["qx-marked"] : [])];
    const pin = step ? [["span", { class: "qx-pin" }, [String(step)]]] : [];
    spans.push(["span", { class: kinds.join(" "), "data-act": "open", "data-arg": String(i), "data-show": i === chunk }, [...pin, texts.get(i)[1]]], " ");
  }
  return [crumb, ["div", { class: "qx-read", tabindex: "0", role: "region", "aria-label": "Document text" }, spans]];
}

function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const follow = () => document.body.classList.toggle("dark", dark.matches);
  dark.addEventListener("change", follow);
  follow();
}

async function start() {
  followTheme();
  for (const node of document.querySelectorAll("[data-x]")) node.style.setProperty("--x", node.dataset.x);
  const run = JSON.parse($("qx-data").textContent);
  const looks = looksOf(await inflated(run.numbers), run.value.n_looks);
  const rows = run.texts ? JSON.parse(new TextDecoder().decode(await inflated(run.texts))) : [];
  const texts = new Map(rows.map(([chunk, heading, text]) => [chunk, [heading, text]]));
  const at = (look) => ({ ...run.value, look, intervals: run.rulers[look - 1] });
  const [shownStrip, reading] = [component(at(run.value.look)), component(JSON.stringify([]))];

  function mark(look) {
    for (const button of document.querySelectorAll("[data-act=look]")) {
      const on = Number(button.dataset.arg) === look;
      button.closest("li, .qx-step")?.classList.toggle("qx-on", on);
      if (button.matches(".qx-part")) on ? button.setAttribute("aria-current", "step") : button.removeAttribute("aria-current");
    }
    const chosen = run.value.chosen.find((pin) => pin.step === look)?.chunk_id;
    for (const span of document.querySelectorAll("#qx-evidence .qx-chunk")) span.classList.toggle("qx-marked", Number(span.dataset.arg) === chosen);
    $("qx-before").disabled = look === 1;
    $("qx-next").disabled = look === run.value.n_looks;
    $("qx-at").textContent = run.value.stopped && look === run.value.n_looks ? "where it stopped" : `step ${look} of ${run.value.chosen.length}`;
  }
  function show(look) {
    if (look < 1 || look > run.value.n_looks || look === shownStrip.props.value.look) return;
    shownStrip.set(at(look));
    mark(look);
  }
  function open(chunk) {
    if (!Number.isInteger(chunk) || chunk < 0 || chunk >= run.value.n_chunks) return;
    $("qx-reading-card").hidden = false;
    reading.set(JSON.stringify(readingOf(chunk, run, texts)));
    $("qx-reading-card").scrollIntoView({ block: "nearest" });
  }
  const act = { look: show, open };
  document.addEventListener("click", (event) => {
    const target = event.target.closest("[data-act]");
    if (target && !$("qx-reading").contains(target)) act[target.dataset.act]?.(Number(target.dataset.arg)); // the tree tells of its own
  });
  document.addEventListener("keydown", (event) => {
    const by = { "[": -1, "]": 1 }[event.key];
    if (!by || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    show(shownStrip.props.value.look + by);
  });
  $("qx-before").onclick = () => show(shownStrip.props.value.look - 1);
  $("qx-next").onclick = () => show(shownStrip.props.value.look + 1);
  for (const id of ["qx-live", "qx-walk"]) $(id).hidden = false;
  tree($("qx-reading"), reading.props, (_, { act: name, arg }) => act[name]?.(Number(arg)), reading.watch);
  strip($("qx-strip"), shownStrip.props, (_, data) => ("look" in data ? show(data.look) : open(data.chunk_id)), shownStrip.watch, localServer(run, looks, texts));
  mark(run.value.look);
}

if ($("qx-data")) start();
else followTheme();
