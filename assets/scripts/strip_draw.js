// The two pictures of the numbers themselves: the overview of the whole document and the lens on the zoomed range.

import { drawMarks, drawOverviewFlags, drawOverviewStems, drawPins, drawPointers, drawStems, ringSupport } from "./strip_marks.js";
import { entryStart, extent, shown, ticks, whole } from "./strip_numbers.js";
import { brush, clipped, crisp, label, LENS, LENS_HEIGHT, line, OVERVIEW_HEIGHT, placer, surface, text } from "./strip_surface.js";

// Bars of the entries of a tile: from the base line to the greatest value, and below it to the least where that lies lower.
// Where a column holds several chunks, the part that all of them reach is shaded.
/** @param {Surface} s @param {Tile} tile @param {Placer} at @param {Scale} scale @param {number} top @param {number} height @param {Colours} colours @param {Set<number>} masked */
function drawBars(s, tile, at, scale, top, height, colours, masked) {
  const { ctx } = s;
  const n = tile.best.length;
  const base = top + height * (1 - scale.base);
  const chunkWidth = at(1) - at(0);
  const gap = n === tile.last - tile.first && chunkWidth >= 4 ? Math.min(2, chunkWidth * 0.15) : 0;
  const clamp = (/** @type {number} */ unit) => Math.min(1, Math.max(0, unit));
  for (let k = 0; k < n; k++) {
    if (tile.best[k] < 0) continue;
    const x = crisp(s, at(entryStart(tile, k)));
    const end = crisp(s, at(entryStart(tile, k + 1)));
    if (end < s.left || x > s.right) continue;
    const width = Math.max(1 / s.ratio, end - x - gap);
    const grey = masked.has(tile.best[k]);
    const [a, b] = [clamp(scale.unit(tile.high[k])), clamp(scale.unit(tile.low[k]))];
    const [upper, lower] = a >= b ? [tile.high[k], tile.low[k]] : [tile.low[k], tile.high[k]];
    const [high, low] = [Math.max(a, b), Math.min(a, b)];
    if (high >= scale.base) {
      const y = top + height * (1 - high);
      ctx.fillStyle = grey ? colours.mut : colours.tinted(scale, upper);
      ctx.fillRect(x, Math.min(y, base - 1), width, Math.max(1, base - y));
    }
    if (low < scale.base) {
      ctx.fillStyle = grey ? colours.mut : colours.tinted(scale, lower);
      ctx.fillRect(x, base, width, Math.max(1, top + height * (1 - low) - base));
    }
    if (low > scale.base && low < high && end - x >= 1) {
      ctx.globalAlpha = 0.22;
      ctx.fillStyle = colours.ink;
      ctx.fillRect(x, top + height * (1 - low), width, height * (low - scale.base));
      ctx.globalAlpha = 1;
    }
  }
}

// What was not searched has no bars, and hatching, so that nobody takes it for little Q.
/** @param {Surface} s @param {View} view @param {Placer} at @param {number} top @param {number} height @param {Colours} colours */
function drawUnsearched(s, view, at, top, height, colours) {
  const { searched, n_chunks } = view.value;
  if (!searched.length) return;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const ctx = brush(tile);
  ctx.globalAlpha = 0.55;
  for (const x of [-6, 0, 6]) line({ ctx }, x, 6, x + 6, 0, colours.mut);
  s.ctx.fillStyle = s.ctx.createPattern(tile, "repeat") || colours.mut;
  const edges = [0, ...searched.flat(), n_chunks];
  for (let i = 0; i < edges.length; i += 2) {
    const [x, end] = [Math.max(s.left, at(edges[i])), Math.min(s.right, at(edges[i + 1]))];
    if (end > x) s.ctx.fillRect(x, top, end - x, height);
  }
}

/** @param {HTMLCanvasElement} canvas @param {View} view @param {Colours} colours */
export function drawOverview(canvas, view, colours) {
  const s = surface(canvas, OVERVIEW_HEIGHT);
  const { value, shown: seen } = view;
  const at = placer(s, 0, value.n_chunks);
  s.ctx.fillStyle = colours.q0;
  s.ctx.fillRect(s.left, 0, s.right - s.left, s.height);
  drawUnsearched(s, view, at, 0, s.height, colours);
  drawOverviewStems(s, view, at, colours); // below the bars: a line must not hide the height it points to
  if (seen) clipped(s, s.left, 0, s.right - s.left, s.height, () => drawBars(s, seen.overview, at, seen.scale, 4, s.height - 5, colours, seen.masked));
  for (const chunk of value.gold) ringSupport(s, value, chunk, at(chunk + 0.5), s.height - 7, 3, colours);
  for (const { first_chunk } of value.documents.slice(1)) line(s, crisp(s, at(first_chunk)), 0, crisp(s, at(first_chunk)), s.height, colours.mut, [2, 2]);
  const [x1, x2] = [at(view.lo), at(view.hi)];
  s.ctx.globalAlpha = 0.72;
  s.ctx.fillStyle = colours.panel;
  s.ctx.fillRect(s.left, 0, x1 - s.left, s.height);
  s.ctx.fillRect(x2, 0, s.right - x2, s.height);
  s.ctx.globalAlpha = 1;
  drawWindow(s, x1, Math.max(x1 + 2, x2), view.hi - view.lo < value.n_chunks ? colours.acc : colours.mut);
  drawOverviewFlags(s, view, at, colours);
}

// The brush: a frame with a handle at either side; quiet while it holds everything.
/** @param {Surface} s @param {number} x1 @param {number} x2 @param {string} colour */
function drawWindow(s, x1, x2, colour) {
  s.ctx.strokeStyle = colour;
  s.ctx.strokeRect(crisp(s, x1) + 0.5, 0.5, x2 - x1 - 1, s.height - 1);
  s.ctx.fillStyle = colour;
  for (const x of [x1, x2]) {
    s.ctx.beginPath();
    s.ctx.roundRect(x - 3, s.height / 2 - 6, 6, 12, 3);
    s.ctx.fill();
  }
}

/** @param {HTMLCanvasElement} canvas @param {View} view @param {Colours} colours */
export function drawLens(canvas, view, colours) {
  const s = surface(canvas, LENS_HEIGHT);
  const { value, shown: seen } = view;
  const at = placer(s, view.lo, view.hi);
  const [top, height] = [LENS.pins, LENS.plot];
  if (!seen) {
    text(s, "Reading the values…", (s.left + s.right) / 2, top + height / 2, colours.mut, "center");
    return;
  }
  const { scale } = seen;
  const y = (/** @type {number} */ number) => crisp(s, top + height * (1 - scale.unit(number))) + 0.5 / s.ratio;
  for (const tick of scale.ticks) {
    if (scale.unit(tick.value) < -0.01 || scale.unit(tick.value) > 1.01) continue;
    line(s, s.left, y(tick.value), s.right, y(tick.value), colours.line);
    text(s, tick.label, s.left - 6, y(tick.value), colours.mut, "right");
  }
  const base = crisp(s, top + height * (1 - scale.base)) + 0.5 / s.ratio;
  clipped(s, s.left, 0, s.right - s.left, s.height, () => {
    drawUnsearched(s, view, at, top, height, colours);
    drawDocuments(s, view, at, top, height, colours);
    drawStems(s, view, top, base, colours);
    drawBarsOfView(s, seen, at, top, height, colours);
  });
  line(s, s.left, base, s.right, base, colours.mut);
  if (seen.mode === "q" && value.threshold !== null) {
    line(s, s.left, y(value.threshold), s.right, y(value.threshold), colours.warn, [4, 4]);
    label(s, "stop below " + shown(value.threshold), s.left + 4, y(value.threshold) - 8, colours.warn, colours.panel);
  }
  if (!extent(seen.overview)) {
    const why = seen.mode === "dq" ? "Nothing was chosen before step 1, so there is no change to show" : "There are no values to show here";
    text(s, why, (s.left + s.right) / 2, top + height / 3, colours.mut, "center");
  }
  drawMarks(s, view, at, colours);
  drawPointers(s, view, at, top, height, colours);
  drawPins(s, view, top, colours);
  drawAxis(s, view, at, colours);
}

// While the tile of a new range is on its way, the old one is drawn as far as it goes and the overview beside it.
/** @param {Surface} s @param {Shown} seen @param {Placer} at @param {number} top @param {number} height @param {Colours} colours */
function drawBarsOfView(s, { lens, overview, scale, masked }, at, top, height, colours) {
  const [from, to] = [Math.max(s.left, at(lens.first)), Math.min(s.right, at(lens.last))];
  /** @param {Tile} tile @param {number} x @param {number} end */
  const part = (tile, x, end) => end > x && clipped(s, x, 0, end - x, s.height, () => drawBars(s, tile, at, scale, top, height, colours, masked));
  part(overview, s.left, Math.min(from, s.right));
  part(overview, Math.max(to, s.left), s.right);
  part(lens, from, to);
}

/** @param {Surface} s @param {View} view @param {Placer} at @param {number} top @param {number} height @param {Colours} colours */
function drawDocuments(s, view, at, top, height, colours) {
  const { documents, n_chunks } = view.value;
  if (documents.length < 2) return;
  documents.forEach(({ title, first_chunk }, d) => {
    const x = crisp(s, at(first_chunk));
    const [start, end] = [Math.max(x, s.left), Math.min(s.right, at(d + 1 < documents.length ? documents[d + 1].first_chunk : n_chunks))];
    if (d > 0) line(s, x, top, x, top + height, colours.mut, [2, 2]);
    if (end - start > 48) clipped(s, start, top, end - start - 6, 16, () => label(s, title, start + 5, top + 8, colours.mut, colours.panel));
  });
}

/** @param {Surface} s @param {View} view @param {Placer} at @param {Colours} colours */
function drawAxis(s, view, at, colours) {
  const y = LENS.pins + LENS.plot + LENS.marks + LENS.axis / 2 + 1;
  const count = Math.max(3, Math.floor((s.right - s.left) / 110)); // of fewer, rounding may leave but one
  let free = 0;
  for (const chunk of ticks(view.lo, Math.min(view.hi, view.value.n_chunks - 1), count, 1)) {
    const words = whole(chunk);
    const half = s.ctx.measureText(words).width / 2;
    const x = Math.min(s.width - half, Math.max(s.left, at(chunk + 0.5)));
    if (at(chunk + 0.5) < s.left || x - half < free) continue;
    line(s, at(chunk + 0.5), y - 8, at(chunk + 0.5), y - 5, colours.mut);
    text(s, words, x, y + 2, colours.mut, "center");
    free = x + half + 12;
  }
}
