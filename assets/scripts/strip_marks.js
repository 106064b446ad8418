// What is laid over the numbers and below them: pins, support, forbidden chunks, cursor, the ruler of positions, the run map.

import { shown, spread } from "./strip_numbers.js";
import { brush, clipped, crisp, LENS, line, placer, surface, text } from "./strip_surface.js";

const PIN_RADIUS = 9;
const RULER_HEIGHT = 26;

/** @param {StripValue} value */
const pinsInOrder = (value) => [...value.chosen].sort((a, b) => a.chunk_id - b.chunk_id);

// Pins of the chunks inside the lens with the places where their heads are drawn; also used to find the pin under a pointer.
/** @param {Pick<Surface, "left" | "right">} s @param {View} view */
export function placedPins(s, view) {
  const at = placer(s, view.lo, view.hi);
  const inside = pinsInOrder(view.value).filter((pin) => pin.chunk_id + 1 > view.lo && pin.chunk_id < view.hi);
  const centres = inside.map((pin) => Math.min(s.right, Math.max(s.left, at(pin.chunk_id + 0.5))));
  const heads = spread(centres, 2 * PIN_RADIUS + 3, s.left - 2, s.right);
  return inside.map((pin, i) => ({ ...pin, x: centres[i], head: heads[i] }));
}

// A person's choice is square; a step that lies after the look shown is hollow.
/** @param {Surface} s @param {Pin} pin @param {number} x @param {number} y @param {number} radius @param {boolean} later @param {Colours} colours */
export function drawHead(s, pin, x, y, radius, later, colours) {
  const { ctx } = s;
  const colour = colours.pin(pin);
  ctx.beginPath();
  if (pin.by === "person") ctx.roundRect(x - radius, y - radius, 2 * radius, 2 * radius, 3);
  else ctx.arc(x, y, radius, 0, 7);
  ctx.fillStyle = later ? colours.panel : colour;
  ctx.fill();
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5;
  ctx.stroke();
  ctx.lineWidth = 1;
  text(s, String(pin.step), x, y + 0.5, later ? colour : colours.panel, "center");
}

/** @param {Surface} s @param {View} view @param {number} top @param {number} base @param {Colours} colours */
export function drawStems(s, view, top, base, colours) {
  for (const pin of placedPins(s, view)) {
    const x = crisp(s, pin.x) + 0.5 / s.ratio;
    line(s, x, top, x, base, colours.pin(pin), pin.step > view.value.look ? [2, 3] : []);
  }
}

/** @param {Surface} s @param {View} view @param {number} top @param {Colours} colours */
export function drawPins(s, view, top, colours) {
  const gold = new Set(view.value.gold);
  const y = PIN_RADIUS + 3;
  const pins = placedPins(s, view);
  for (const pin of pins) line(s, pin.head, y, crisp(s, pin.x) + 0.5 / s.ratio, top, colours.pin(pin));
  s.ctx.font = "600 " + s.ctx.font;
  for (const pin of pins) {
    drawHead(s, pin, pin.head, y, PIN_RADIUS - 1, pin.step > view.value.look, colours);
    if (gold.has(pin.chunk_id)) ring(s, pin.head, y, PIN_RADIUS + 2, colours.good);
  }
  s.ctx.font = s.ctx.font.replace(/^600 /, "");
}

/** @param {Surface} s @param {number} x @param {number} y @param {number} radius @param {string} colour */
export function ring(s, x, y, radius, colour) {
  s.ctx.strokeStyle = colour;
  s.ctx.lineWidth = 2;
  s.ctx.beginPath();
  s.ctx.arc(x, y, radius, 0, 7);
  s.ctx.stroke();
  s.ctx.lineWidth = 1;
}

// What belongs to the answer: missed where a run has ended without it.
/** @param {Surface} s @param {StripValue} value @param {number} chunk @param {number} x @param {number} y @param {number} radius @param {Colours} colours */
export function ringSupport(s, value, chunk, x, y, radius, colours) {
  const missed = value.missed.includes(chunk);
  if (missed) s.ctx.setLineDash([3, 2]);
  ring(s, x, y, missed ? radius + 1 : radius, missed ? colours.warn : colours.good);
  s.ctx.setLineDash([]);
}

// On what may never be chosen.
/** @param {Surface} s @param {number} x @param {number} y @param {Colours} colours */
export function cross(s, x, y, colours) {
  s.ctx.lineWidth = 2;
  line(s, x - 4, y - 4, x + 4, y + 4, colours.warn);
  line(s, x - 4, y + 4, x + 4, y - 4, colours.warn);
  s.ctx.lineWidth = 1;
}

// In the overview every choice has its line; those outside the lens also their number, which the lens can't show.
/** @param {Surface} s @param {View} view @param {Placer} at @param {Colours} colours */
export function drawOverviewStems(s, view, at, colours) {
  for (const pin of view.value.chosen) {
    const x = crisp(s, at(pin.chunk_id + 0.5));
    line(s, x, 0, x, s.height, colours.pin(pin), pin.step > view.value.look ? [2, 3] : []);
  }
}

/** @param {Surface} s @param {View} view @param {Placer} at @param {Colours} colours */
export function drawOverviewFlags(s, view, at, colours) {
  const outside = pinsInOrder(view.value).filter((pin) => pin.chunk_id + 1 <= view.lo || pin.chunk_id >= view.hi);
  const heads = spread(outside.map((pin) => at(pin.chunk_id + 0.5)), 17, s.left, s.right);
  s.ctx.font = s.ctx.font.replace("11px", "10px");
  outside.forEach((pin, i) => drawHead(s, pin, heads[i], 9, 7, pin.step > view.value.look, colours));
}

// The lane below the bars: hollow rings for the support of a labelled question, crosses for what may never be chosen, and what a person marked.
/** @param {Surface} s @param {View} view @param {Placer} at @param {Colours} colours */
export function drawMarks(s, view, at, colours) {
  const y = LENS.pins + LENS.plot + LENS.marks / 2 + 1;
  const inside = (/** @type {number} */ chunk) => chunk + 1 > view.lo && chunk < view.hi;
  for (const chunk of view.value.gold.filter(inside)) ringSupport(s, view.value, chunk, at(chunk + 0.5), y, 4, colours);
  for (const chunk of view.value.forbidden.filter(inside)) cross(s, at(chunk + 0.5), y, colours);
  for (const [chunk, belongs] of view.value.marks.filter(([chunk]) => inside(chunk))) {
    if (belongs) ring(s, at(chunk + 0.5), y, 1, colours.good);
    else text(s, "✗", at(chunk + 0.5), y + 0.5, colours.mut, "center");
  }
}

/** @param {Surface} s @param {View} view @param {Placer} at @param {number} top @param {number} height @param {Colours} colours */
export function drawPointers(s, view, at, top, height, colours) {
  /** @param {number} chunk @param {string} colour @param {number} fill */
  const band = (chunk, colour, fill) => {
    const [x, end] = [at(chunk), at(chunk + 1)];
    if (end < s.left || x > s.right) return;
    s.ctx.globalAlpha = fill;
    s.ctx.fillStyle = colour;
    s.ctx.fillRect(x, top, end - x, height + LENS.marks);
    s.ctx.globalAlpha = 1;
    line(s, (x + end) / 2, top, (x + end) / 2, top + height + LENS.marks, colour, [1, 2]);
  };
  if (view.hover !== null) band(view.hover, colours.mut, 0.18);
  if (view.cursor === null) return;
  band(view.cursor, colours.acc, 0.22);
  const x = at(view.cursor + 0.5);
  if (x < s.left || x > s.right) return;
  const y = top + height + LENS.marks;
  s.ctx.fillStyle = colours.acc;
  s.ctx.beginPath();
  s.ctx.moveTo(x, y - 7);
  s.ctx.lineTo(x - 5, y + 2);
  s.ctx.lineTo(x + 5, y + 2);
  s.ctx.fill();
}

// One slope an interval, on the range of the lens; a jump stands where a chosen chunk begins the next one.
/** @param {HTMLCanvasElement} canvas @param {View} view @param {Colours} colours */
export function drawRuler(canvas, view, colours) {
  const s = surface(canvas, RULER_HEIGHT);
  const at = placer(s, view.lo, view.hi);
  const pins = new Map(view.value.chosen.map((pin) => [pin.chunk_id, pin]));
  const [high, low] = [15, s.height - 3];
  text(s, "ρ", s.left - 6, (high + low) / 2, colours.mut, "right");
  let free = s.left;
  clipped(s, s.left, 0, s.right - s.left, s.height, () => {
    for (const { lo, hi, rho_lo, rho_hi } of view.value.intervals) {
      const [x, end] = [at(lo), at(hi)];
      if (end < s.left || x > s.right) continue;
      const pin = pins.get(lo);
      if (lo > 0) line(s, x, high - 4, x, low, pin ? colours.pin(pin) : colours.mut, pin ? [] : [2, 2]);
      s.ctx.lineWidth = 2;
      line(s, x, low, end, high, colours.acc);
      s.ctx.lineWidth = 1;
      const rho = (/** @type {number} */ chunk) => rho_lo + ((rho_hi - rho_lo) * (chunk - lo)) / Math.max(1, hi - 1 - lo);
      const [a, b] = [Math.max(lo, Math.floor(view.lo)), Math.min(hi - 1, Math.ceil(view.hi) - 1)];
      const part = a > lo || b < hi - 1 ? `${shown(rho(a))} – ${shown(rho(b))} of ` : "";
      const words = `${part}${shown(rho_lo)} – ${shown(rho_hi)}`;
      const start = Math.max(x + 5, free);
      if (start + s.ctx.measureText(words).width > Math.min(end, s.right)) continue;
      text(s, words, start, 7, colours.mut);
      free = start + s.ctx.measureText(words).width + 8;
    }
  });
}

const RUN_MAP = 128; // pixels, unless it has rows by the dozen: what a run ended in stays above the fold
/** @param {number} n_rows */
export const rowHeight = (n_rows) => Math.max(6, Math.min(16, Math.floor(RUN_MAP / Math.max(1, n_rows))));

/** @param {HTMLCanvasElement} canvas @param {View} view @param {Colours} colours */
export function drawMap(canvas, view, colours) {
  const { value, map } = view;
  if (!map) return;
  const pitch = rowHeight(map.n_rows);
  const s = surface(canvas, map.n_rows * pitch);
  const at = placer(s, 0, value.n_chunks);
  s.ctx.imageSmoothingEnabled = false;
  for (let row = 0; row < map.n_rows; row++) {
    s.ctx.drawImage(map.picture, 0, row, map.n_columns, 1, s.left, row * pitch + 1, s.right - s.left, pitch - 2);
    const name = value.stopped && row === map.n_rows - 1 ? "stop" : String(row + 1);
    const on = row + 1 === value.look;
    if (pitch >= 11 || on) text(s, name, s.left - 8, (row + 0.5) * pitch, on ? colours.ink : colours.mut, "right");
  }
  for (const pin of value.chosen) {
    const x = at(pin.chunk_id + 0.5);
    s.ctx.fillStyle = colours.mut; // masked from the next look on
    s.ctx.fillRect(crisp(s, x - 0.5), pin.step * pitch + 1, 1, Math.max(0, (map.n_rows - pin.step) * pitch - 2));
    const radius = Math.max(1, Math.min(5, pitch / 2 - 3));
    ring(s, x, (pin.step - 0.5) * pitch, radius + 1, colours.panel);
    ring(s, x, (pin.step - 0.5) * pitch, radius, colours.pin(pin));
  }
  const last = Math.max(1, value.chosen.length);
  for (const chunk of value.missed) ringSupport(s, value, chunk, at(chunk + 0.5), (last - 0.5) * pitch, Math.min(4, pitch / 2 - 4), colours);
  s.ctx.strokeStyle = colours.acc;
  s.ctx.lineWidth = 2;
  s.ctx.strokeRect(s.left, (value.look - 1) * pitch + 1, s.right - s.left, pitch - 2);
}

// The cells of the run map as a picture of one pixel a cell, to be stretched when drawn.
/** @param {Cells} map @param {StripValue} value @param {Colours} colours */
export function pictureOf(map, value, colours) {
  const picture = document.createElement("canvas");
  [picture.width, picture.height] = [map.n_columns, map.n_rows];
  const ctx = brush(picture);
  /** @type {Pick<Scale, "ramp" | "tint">} */
  const scale = { ramp: "seq", tint: (score) => (score - value.scale.lo) / (value.scale.hi - value.scale.lo || 1) };
  for (let i = 0; i < map.cells.length; i++) {
    if (Number.isNaN(map.cells[i])) continue;
    ctx.fillStyle = colours.tinted(scale, map.cells[i]);
    ctx.fillRect(i % map.n_columns, Math.floor(i / map.n_columns), 1, 1);
  }
  return picture;
}
