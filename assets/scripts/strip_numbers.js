// Numbers, scales, colours and places of the strip: pure helpers without state, drawing or network.

const GROUPED = new Intl.NumberFormat("en-US");
/** @param {number} number */
export const whole = (number) => GROUPED.format(number);
/** @param {number} number @param {string} noun */
export const counted = (number, noun) => `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;

/** @param {number | null} value */
export function shown(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  const size = Math.abs(value);
  if (size === 0) return "0";
  const text = (size < 0.001 || size >= 10000) ? size.toExponential(1) : size.toFixed(size < 0.1 ? 3 : 2);
  return value < 0 && Number(text) !== 0 ? "−" + text : text;
}

/** @param {number} value */
const signed = (value) => (value > 0 ? "+" : "") + shown(value);

// Numbers from a server are packed, those of a page without one are not.
/** @template {object} A @param {Packed<A>} text @param {new (bytes: ArrayBuffer) => A} Kind @returns {A} */
export function unpack(text, Kind) {
  if (typeof text !== "string") return text;
  return new Kind(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

/** @param {Questions["tiles"][1]} answer @returns {Tile} */
export const decodeTile = ({ first, last, low, high, best }) =>
  ({ first, last, low: unpack(low, Float32Array), high: unpack(high, Float32Array), best: unpack(best, Int32Array) });

// Entry k of a tile begins at this chunk: the rule of core.corpus.tiles.Tile, and its inverse.
/** @param {Columns} tile @param {number} k */
export const entryStart = (tile, k) => tile.first + Math.floor((k * (tile.last - tile.first)) / tile.best.length);
/** @param {Columns} tile @param {number} chunk */
export const entryOf = (tile, chunk) => Math.ceil(((chunk - tile.first + 1) * tile.best.length) / (tile.last - tile.first)) - 1;

/** @param {Tile} tile */
export function extent(tile) {
  let [lo, hi] = [Infinity, -Infinity];
  for (let k = 0; k < tile.best.length; k++) {
    if (Number.isFinite(tile.low[k])) lo = Math.min(lo, tile.low[k]);
    if (Number.isFinite(tile.high[k])) hi = Math.max(hi, tile.high[k]);
  }
  return lo <= hi ? [lo, hi] : null;
}

/** @param {number} lo @param {number} hi @param {number} count @param {number} [least] */
export function ticks(lo, hi, count, least = 0) {
  const raw = Math.max((hi - lo) / Math.max(1, count), least, 1e-12);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(least, ([1, 2, 5].find((factor) => factor * power >= raw * 0.999) ?? 10) * power);
  const found = [];
  for (let at = Math.ceil(lo / step - 1e-9); at * step <= hi + step * 1e-9; at++) found.push(at * step + 0);
  return found;
}

// How a mode turns numbers into heights (0 bottom, 1 top) and colours (0 to 1 on a ramp). `tile` is the overview of the look shown.
/** @param {Mode} mode @param {StripValue} value @param {Tile} tile @returns {Scale} */
export function makeScale(mode, value, tile) {
  const range = extent(tile) || [0, 1];
  if (mode === "rank") {
    const depth = Math.log(Math.max(2, value.n_chunks));
    const powers = [];
    for (let rank = 1; rank <= value.n_chunks; rank *= 10) powers.push({ value: rank, label: rank < 10000 ? whole(rank) : rank / 1000 + "k" });
    const unit = (/** @type {number} */ rank) => 1 - Math.log(Math.max(1, rank)) / depth;
    return { unit, tint: unit, base: 0, ramp: "seq", ticks: powers, ends: ["rank " + whole(value.n_chunks), "rank 1"] };
  }
  if (mode === "dq") {
    const most = Math.max(Math.abs(range[0]), Math.abs(range[1])) || 1;
    const unit = (/** @type {number} */ change) => (change / most + 1) / 2;
    const marks = ticks(-most, most, 4).map((at) => ({ value: at, label: signed(at) }));
    return { unit: (change) => 0.04 + 0.92 * unit(change), tint: unit, base: 0.5, ramp: "div", ticks: marks, ends: [signed(-most), signed(most)] };
  }
  const [lo, hi] = mode === "p" ? [0, range[1] || 1] : [value.scale.lo, value.scale.hi];
  const tint = (/** @type {number} */ score) => (score - lo) / (hi - lo || 1);
  const all = mode === "q" && value.threshold !== null ? [lo, hi, value.threshold] : [lo, hi];
  const bottom = Math.min(...all);
  const height = (Math.max(...all) - bottom || 1) * 1.04;
  const unit = (/** @type {number} */ score) => (score - bottom) / height;
  const marks = ticks(bottom, bottom + height, 4).map((at) => ({ value: at, label: shown(at) }));
  return { unit, tint, base: Math.min(1, Math.max(0, unit(0))), ramp: "seq", ticks: marks, ends: [shown(lo), shown(hi)] };
}

const LEAST_SPAN = 8; // chunks

// The range nearest to [lo, hi) that is not too narrow and lies within the document.
/** @param {number} lo @param {number} hi @param {number} n_chunks */
export function fitted(lo, hi, n_chunks) {
  const span = Math.min(n_chunks, Math.max(hi - lo, Math.min(LEAST_SPAN, n_chunks)));
  const start = Math.min(n_chunks - span, Math.max(0, (lo + hi - span) / 2));
  return [start, start + span];
}

// Moves centres (ascending) as little as possible (least squares) so that neighbours are `gap` apart within [lo, hi].
/** @param {number[]} centres @param {number} gap @param {number} lo @param {number} hi */
export function spread(centres, gap, lo, hi) {
  if (!centres.length) return [];
  const step = Math.min(gap, (hi - lo) / Math.max(1, centres.length - 1));
  /** @type {{ mean: number, size: number }[]} */
  const pools = [];
  centres.forEach((centre, i) => {
    let pool = { mean: centre - i * step, size: 1 };
    for (let left = pools.at(-1); left && left.mean > pool.mean; left = pools.at(-1)) {
      const size = left.size + pool.size;
      pool = { mean: (left.mean * left.size + pool.mean * pool.size) / size, size };
      pools.pop();
    }
    pools.push(pool);
  });
  const flat = pools.flatMap((pool) => Array(pool.size).fill(pool.mean));
  return flat.map((mean, i) => Math.min(hi - (centres.length - 1) * step, Math.max(lo, mean)) + i * step);
}

/** @param {number[][]} stops */
export function ramp(stops) {
  return Array.from({ length: 256 }, (_, i) => {
    const at = (i / 255) * (stops.length - 1);
    const k = Math.min(stops.length - 2, Math.floor(at));
    return `rgb(${stops[k].map((a, c) => Math.round(a + (stops[k + 1][c] - a) * (at - k))).join(",")})`;
  });
}
