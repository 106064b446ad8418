// A run's page without a server. Its numbers lie in the page; what the strip asks of a server (app/components/strip.py) is answered
// here, by the same rules: columns as in core/tiles.py, rank and probability as in app/pages/explore/strip_source.py.

async function inflated(packed) {
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

// Bytes of one significance lie together.
function looksOf(planes, n_looks) {
  const bytes = new Uint8Array(planes);
  const count = bytes.length / 4;
  const joined = new Uint8Array(bytes.length);
  for (let plane = 0; plane < 4; plane++) for (let i = 0; i < count; i++) joined[4 * i + plane] = bytes[plane * count + i];
  const numbers = new Float32Array(joined.buffer);
  return Array.from({ length: n_looks }, (_, look) => numbers.subarray((look * count) / n_looks, ((look + 1) * count) / n_looks));
}

function localServer(run, looks, texts) {
  const { value } = run;
  const n = value.n_chunks;
  const kept = new Map();
  const unavailable = (look) => [...value.chosen.filter((pin) => pin.step < look).map((pin) => pin.chunk_id), ...value.forbidden];

  // Ids of what can be chosen, the best first, equals in document order.
  function candidates(look) {
    const [q, gone] = [looks[look - 1], new Set(unavailable(look))];
    return Array.from(q.keys()).filter((i) => !Number.isNaN(q[i]) && !gone.has(i)).sort((a, b) => q[b] - q[a] || a - b);
  }

  const MADE = {
    q: (look) => looks[look - 1],
    dq: (look) => looks[look - 1].map((q, i) => (look > 1 ? q - looks[look - 2][i] : NaN)),
    rank: (look) => {
      const ranks = new Float32Array(n).fill(NaN);
      candidates(look).forEach((chunk, i) => (ranks[chunk] = i + 1));
      return ranks;
    },
    p: (look) => {
      const chances = new Float32Array(n).fill(NaN);
      const all = candidates(look);
      for (const chunk of all) chances[chunk] = 0;
      const ids = run.top_k === null ? all : all.slice(0, run.top_k);
      const q = looks[look - 1];
      const weights = ids.map((chunk) => Math.exp((q[chunk] - q[ids[0]]) / run.temperature));
      const sum = weights.reduce((a, b) => a + b, 0);
      ids.forEach((chunk, i) => (chances[chunk] = weights[i] / sum));
      return chances;
    },
  };
  function values(look, mode) {
    const key = mode + look;
    if (!kept.has(key)) kept.set(key, MADE[mode](look));
    return kept.get(key);
  }
  const salience = (number, mode) => (mode === "rank" ? -number : mode === "dq" ? Math.abs(number) : number);

  function folded(numbers, first, last, width, mode) {
    const entries = Math.min(width, last - first);
    const [low, high, best] = [new Float32Array(entries).fill(NaN), new Float32Array(entries).fill(NaN), new Int32Array(entries).fill(-1)];
    for (let k = 0; k < entries; k++) {
      const end = first + Math.floor(((k + 1) * (last - first)) / entries);
      for (let i = first + Math.floor((k * (last - first)) / entries); i < end; i++) {
        const number = numbers[i];
        if (Number.isNaN(number)) continue;
        if (!(low[k] <= number)) low[k] = number;
        if (!(high[k] >= number)) high[k] = number;
        if (best[k] < 0 || salience(number, mode) > salience(numbers[best[k]], mode)) best[k] = i;
      }
    }
    return { first, last, low, high, best };
  }

  const number = (one) => (Number.isNaN(one) ? null : one);
  const startOf = (chunk) => value.documents.findLast((part) => part.first_chunk <= chunk);
  function rhoAt(chunk, look) {
    if (run.absolute) return chunk;
    const slope = run.rulers[look - 1].find((one) => one.lo <= chunk && chunk < one.hi);
    return slope ? slope.rho_lo + ((slope.rho_hi - slope.rho_lo) * (chunk - slope.lo)) / Math.max(1, slope.hi - 1 - slope.lo) : null;
  }
  function facts(chunk, look) {
    const pin = value.chosen.find((one) => one.chunk_id === chunk && one.step < look);
    const [heading, text] = texts.get(chunk) || ["", ""];
    return {
      chunk_id: chunk, text: text.slice(0, 280), title: startOf(chunk)?.title || "", heading,
      q: number(values(look, "q")[chunk]), rank: number(values(look, "rank")[chunk]),
      p: value.modes.includes("p") ? number(values(look, "p")[chunk]) : null,
      rho: rhoAt(chunk, pin ? pin.step : look), chosen_at: pin ? pin.step : null,
    };
  }

  const answers = {
    tiles: ([, look, mode, lo, hi, width]) => folded(values(look, mode), Math.floor(lo), Math.ceil(hi), width, mode),
    runmap: ([, width]) => {
      const rows = looks.map((q) => folded(q, 0, n, width, "q").high);
      const cells = new Float32Array(rows.length * rows[0].length);
      rows.forEach((row, i) => cells.set(row, i * row.length));
      return { n_rows: rows.length, n_columns: rows[0].length, cells };
    },
    describe: ([, chunk, look]) => facts(chunk, look),
    top: ([, look, mode, offset]) => {
      const numbers = values(look, mode);
      const worth = (i) => (Number.isNaN(numbers[i]) ? -Infinity : salience(numbers[i], mode));
      const ids = Array.from({ length: n }, (_, i) => i).sort((a, b) => worth(b) - worth(a) || a - b || 0);
      return { total: n, offset, rows: ids.slice(offset, offset + 20).map((chunk) => facts(chunk, look)) };
    },
  };
  return Object.fromEntries(Object.entries(answers).map(([name, answer]) => [name, async (request) => answer(request)]));
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
  const [strip, reading] = [component(at(run.value.look)), component(JSON.stringify([]))];

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
    if (look < 1 || look > run.value.n_looks || look === strip.props.value.look) return;
    strip.set(at(look));
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
    show(strip.props.value.look + by);
  });
  $("qx-before").onclick = () => show(strip.props.value.look - 1);
  $("qx-next").onclick = () => show(strip.props.value.look + 1);
  for (const id of ["qx-live", "qx-walk"]) $(id).hidden = false;
  qx.tree($("qx-reading"), reading.props, (_, { act: name, arg }) => act[name]?.(Number(arg)), reading.watch);
  runStrip($("qx-strip"), strip.props, (_, data) => ("look" in data ? show(data.look) : open(data.chunk_id)), strip.watch, localServer(run, looks, texts));
  mark(run.value.look);
}

if ($("qx-data")) start();
else followTheme();
