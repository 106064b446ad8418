// What the strip asks of a server (app/components/strip.py), answered from the numbers of one run by the same rules: columns as in
// core/corpus/tiles.py, rank and probability as in app/pages/explore/strip_source.py. And a chunk in its place, from the texts of the page.

// Bytes of one significance lie together.
/** @param {ArrayBuffer} planes @param {number} n_looks */
export function looksOf(planes, n_looks) {
  const bytes = new Uint8Array(planes);
  const count = bytes.length / 4;
  const joined = new Uint8Array(bytes.length);
  for (let plane = 0; plane < 4; plane++) for (let i = 0; i < count; i++) joined[4 * i + plane] = bytes[plane * count + i];
  const numbers = new Float32Array(joined.buffer);
  return Array.from({ length: n_looks }, (_, look) => numbers.subarray((look * count) / n_looks, ((look + 1) * count) / n_looks));
}

/** @param {LoggedRun} run @param {Float32Array[]} looks @param {Texts} texts */
export function localServer(run, looks, texts) {
  const { value } = run;
  const n = value.n_chunks;
  /** @type {Map<string, Float32Array>} */
  const kept = new Map();
  /** @param {number} look */
  const unavailable = (look) => [...value.chosen.filter((pin) => pin.step < look).map((pin) => pin.chunk_id), ...value.forbidden];

  // Ids of what can be chosen, the best first, equals in document order.
  /** @param {number} look */
  function candidates(look) {
    const [q, gone] = [looks[look - 1], new Set(unavailable(look))];
    return Array.from(q.keys()).filter((i) => !Number.isNaN(q[i]) && !gone.has(i)).sort((a, b) => q[b] - q[a] || a - b);
  }

  /** @type {Record<Mode, (look: number) => Float32Array>} */
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
  /** @param {number} look @param {Mode} mode */
  function values(look, mode) {
    const numbers = kept.get(mode + look) || MADE[mode](look);
    kept.set(mode + look, numbers);
    return numbers;
  }
  /** @param {number} number @param {Mode} mode */
  const salience = (number, mode) => (mode === "rank" ? -number : mode === "dq" ? Math.abs(number) : number);

  /** @param {Float32Array} numbers @param {number} first @param {number} last @param {number} width @param {Mode} mode */
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

  const number = (/** @type {number} */ measured) => (Number.isNaN(measured) ? null : measured);
  /** @param {number} chunk @param {number} look */
  function rhoAt(chunk, look) {
    if (run.absolute) return chunk;
    const slope = run.rulers[look - 1].find(({ lo, hi }) => lo <= chunk && chunk < hi);
    return slope ? slope.rho_lo + ((slope.rho_hi - slope.rho_lo) * (chunk - slope.lo)) / Math.max(1, slope.hi - 1 - slope.lo) : null;
  }
  /** @param {number} chunk @param {number} look @returns {Facts} */
  function facts(chunk, look) {
    const pin = value.chosen.find((chosen) => chosen.chunk_id === chunk && chosen.step < look);
    const [heading, text] = texts.get(chunk) || ["", ""];
    return {
      chunk_id: chunk, text: text.slice(0, 280), title: value.documents.findLast((part) => part.first_chunk <= chunk)?.title || "", heading,
      q: number(values(look, "q")[chunk]), rank: number(values(look, "rank")[chunk]),
      p: value.modes.includes("p") ? number(values(look, "p")[chunk]) : null,
      rho: rhoAt(chunk, pin ? pin.step : look), chosen_at: pin ? pin.step : null,
    };
  }

  /** @type {Pick<MapServer, keyof Questions>} */
  const server = {
    tiles: async ([, look, mode, lo, hi, width]) => folded(values(look, mode), Math.floor(lo), Math.ceil(hi), width, mode),
    runmap: async ([, look, width]) => {
      const rows = looks.slice(look - 1).map((q) => folded(q, 0, n, width, "q").high);
      const cells = new Float32Array(rows.length * rows[0].length);
      rows.forEach((row, i) => cells.set(row, i * row.length));
      return { n_rows: rows.length, n_columns: rows[0].length, cells };
    },
    describe: async ([, chunk, look]) => facts(chunk, look),
    top: async ([, look, mode, offset]) => {
      const numbers = values(look, mode);
      const worth = (/** @type {number} */ i) => (Number.isNaN(numbers[i]) ? -Infinity : salience(numbers[i], mode));
      const ids = Array.from({ length: n }, (_, i) => i).sort((a, b) => worth(b) - worth(a) || a - b || 0);
      return { total: n, offset, rows: ids.slice(offset, offset + 20).map((chunk) => facts(chunk, look)) };
    },
  };
  return server;
}

const LEFT_OUT = " […] ";

// The chunk in its place in its document, as far as its neighbours' texts are here.
/** @param {number} chunk @param {ReadingValue} value @param {Texts} texts */
export function readingOf(chunk, value, texts) {
  const pins = new Map(value.chosen.map((pin) => [pin.chunk_id, pin]));
  const at = value.documents.findLastIndex((part) => part.first_chunk <= chunk);
  const title = value.documents[at]?.title || "";
  const [heading] = texts.get(chunk) || [""];
  const where = [title, heading].filter(Boolean).join(" › ");
  const name = `chunk ${chunk.toLocaleString("en-US")} of ${value.n_chunks.toLocaleString("en-US")}`;
  const said = pins.get(chunk)?.said || value.nobody;
  const crumb = ["div", { class: "qx-crumb" }, [["span", {}, [where]], ["span", { class: "qx-mut" }, [name]], ...(said ? [["span", { class: "qx-sm" }, [said]]] : [])]];
  if (!texts.has(chunk)) return [crumb, ["p", { class: "qx-empty" }, ["The text of this chunk is not in this page."]]];
  /** @type {TreeNode[]} */
  const spans = [];
  const [first, end] = [value.documents[at]?.first_chunk ?? 0, value.documents[at + 1]?.first_chunk ?? value.n_chunks];
  for (let i = Math.max(first, chunk - 6); i < Math.min(end, chunk + 7); i++) {
    const [, text] = texts.get(i) || [];
    if (text === undefined) {
      if (spans.at(-1) !== LEFT_OUT) spans.push(LEFT_OUT);
      continue;
    }
    const pin = pins.get(i);
    const kinds = ["qx-chunk", ...(pin ? ["qx-chosen", pin.kind || `qx-c${((pin.step - 1) % 8) + 1}`] : []), ...(value.gold.includes(i) ? ["qx-gold"] : []), ...(i === chunk ? ["qx-marked"] : [])];
    /** @type {TreeNode[]} */
    const sign = pin ? [["span", { class: "qx-pin" }, [pin.name || String(pin.step)]]] : [];
    spans.push(["span", { class: kinds.join(" "), "data-act": "open", "data-arg": String(i), "data-show": i === chunk }, [...sign, text]], " ");
  }
  return [crumb, ["div", { class: "qx-read", tabindex: "0", role: "region", "aria-label": "Document text" }, spans]];
}
