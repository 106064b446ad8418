// The picture of the map: density of the chunks that have no point, points with the strip's colours, the agent's path, and who is nearest to a place.

import { cross, drawHead, ring, ringSupport } from "./strip_marks.js";
import { brush, line, surface } from "./strip_surface.js";

const SIDE = 65535; // of the places
const MARGIN = 12; // pixels, room for pins
const [TALLEST, TALLEST_WIDE] = [340, 560];
const WIDEST = 1.6; // to its height: farther apart, neighbours would not look like any
const PIN = 8;
const REACH = 12; // pixels around the pointer within which a chunk is meant
const CELL = 4; // pixels of density
const NO_GROUP = 255;
const MOST_ZOOM = 32;
const ROOM_FOR_NAMES = 560; // pixels of width; in less, the key below is enough

/** @typedef {{ width: number, height: number, plot: number[], pixels: number[], ratio: number, seen: number[] }} Size */

/** @param {HTMLCanvasElement} canvas @param {number[]} seen @returns {Size} */
export function sizeOf(canvas, seen) {
  const [ratio, width] = [window.devicePixelRatio || 1, canvas.clientWidth];
  const height = Math.min(canvas.closest(".qx-wide") ? TALLEST_WIDE : TALLEST, width);
  const tall = height - 2 * MARGIN;
  return { width, height, plot: [Math.min(width - 2 * MARGIN, WIDEST * tall), tall], pixels: [width, height].map((pixels) => Math.round(pixels * ratio)), ratio, seen };
}

/** @param {Size} size */
const corner = (size) => [(size.width - size.plot[0]) / 2, MARGIN];

// What is shown of the map: its left and top as shares of the whole, and how many times it is enlarged; never anything beyond its border.
/** @param {number[]} at @param {number} zoom */
const seenFrom = (at, zoom) => [...at.map((share) => Math.min(1 - 1 / zoom, Math.max(0, share))), zoom];

// Enlarged around a place of the canvas, which stays where it is.
/** @param {Size} size @param {number} factor @param {number[]} around */
export function zoomed(size, factor, around) {
  const [left, top, before] = size.seen;
  const zoom = Math.min(MOST_ZOOM, Math.max(1, before * factor));
  const shares = around.map((pixel, i) => (pixel - corner(size)[i]) / size.plot[i]);
  return seenFrom([left, top].map((share, i) => share + shares[i] / before - shares[i] / zoom), zoom);
}

// Moved by pixels, as a sheet under a hand.
/** @param {Size} size @param {number[]} by */
export function panned(size, by) {
  const [left, top, zoom] = size.seen;
  return seenFrom([left, top].map((share, i) => share - by[i] / (zoom * size.plot[i])), zoom);
}

/** @param {Size} size @param {number[]} place */
const isShown = (size, [x, y]) => x >= 0 && x <= size.width && y >= 0 && y <= size.height;

// With a chunk in the middle, where it is not shown.
/** @param {Size} size @param {Uint16Array} places @param {number} chunk */
export function holding(size, places, chunk) {
  const [x, y] = placeOf(size, places, chunk);
  return isShown(size, [x, y]) ? size.seen : panned(size, [size.width / 2 - x, size.height / 2 - y]);
}

// Around what the keys and buttons zoom: the cursor's chunk where it is shown, else the middle.
/** @param {Size} size @param {Uint16Array} places @param {number | null} chunk */
export function focusOf(size, places, chunk) {
  const place = chunk === null ? [-1, -1] : placeOf(size, places, chunk);
  return isShown(size, place) ? place : [size.width / 2, size.height / 2];
}

// Left, top, right and bottom of what is shown and half as much around it, as places: what a hand or the cursor moves to is there.
/** @param {number[]} seen */
export function bordersOf([left, top, zoom]) {
  const shares = [left - 0.5 / zoom, top - 0.5 / zoom, left + 1.5 / zoom, top + 1.5 / zoom];
  return shares.map((share) => Math.round(SIDE * Math.min(1, Math.max(0, share))));
}

/** @param {Size} size @param {Uint16Array} places @param {number} chunk */
function placeOf(size, places, chunk) {
  const [left, top, zoom] = size.seen;
  const [x, y] = corner(size);
  return [x + (places[2 * chunk] / SIDE - left) * zoom * size.plot[0], y + (places[2 * chunk + 1] / SIDE - top) * zoom * size.plot[1]];
}

// How much a value says: little of it is small and pale, so that the hot places are found first.
/** @param {Scale} scale @param {number} value */
function strength(scale, value) {
  const tint = Math.min(1, Math.max(0, scale.tint(value) || 0));
  return scale.ramp === "div" ? Math.abs(2 * tint - 1) : tint;
}

// Hues in the order of the groups, none of them a step's own.
/** @param {number} n @param {Colours} colours @returns {(group: number) => string} */
const groupColours = (n, colours) => (group) =>
  group < n ? `oklch(${colours.dark ? 0.76 : 0.6} 0.13 ${Math.round(20 + (330 * group) / n)})` : colours.mut;

/** @param {ChunkMap} map @param {Part[]} documents @returns {(chunk: number) => number} */
function groupOf({ colour, groups, clusters }, documents) {
  if (colour === "headings") return (chunk) => groups[chunk];
  if (colour === "clusters") return (chunk) => clusters[chunk];
  return (chunk) => documents.findLastIndex((document) => document.first_chunk <= chunk);
}

// Everything that stays while the pointer moves.
/** @param {Size} size @param {StripValue} value @param {ChunkMap} map @param {Points} points @param {Scale} scale @param {Colours} colours */
export function mapPicture(size, value, map, points, scale, colours) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = size.pixels;
  const ctx = brush(canvas);
  ctx.scale(size.ratio, size.ratio);
  const { places, colour, names, clusterNames } = map;
  const grouped = colour !== "value";
  const colourOf = groupColours({ value: 0, headings: names.length, clusters: clusterNames.length, documents: value.documents.length }[colour], colours);
  const group = groupOf(map, value.documents);
  if (points.chunks.length < value.n_chunks) drawDensity(ctx, size, places, points.chunks, colours);
  const weights = Float32Array.from(points.values, (number) => strength(scale, number));
  const order = Int32Array.from(weights.keys()).sort((a, b) => weights[a] - weights[b]);
  const least = Math.max(1.2, Math.min(size.seen[2] > 1 ? 3.6 : 2.4, (40 * size.seen[2]) / Math.sqrt(value.n_chunks))); // larger where they lie apart
  for (const k of order) {
    const chunk = points.chunks[k];
    const [x, y] = placeOf(size, places, chunk);
    const hasValue = !Number.isNaN(points.values[k]);
    if (grouped) ctx.fillStyle = group(chunk) === NO_GROUP ? colours.line : colourOf(group(chunk));
    else ctx.fillStyle = points.masked.has(chunk) ? colours.mut : hasValue ? colours.tinted(scale, points.values[k]) : colours.line;
    ctx.beginPath();
    ctx.arc(x, y, least + 2.6 * weights[k], 0, 7);
    ctx.fill();
  }
  if (colour === "clusters" && size.width >= ROOM_FOR_NAMES) nameClusters(ctx, size, map, colours);
  return { canvas, colourOf };
}

// Each topic's words in the middle of its chunks that are shown; the later of two that would overlap goes without.
/** @param {CanvasRenderingContext2D} ctx @param {Size} size @param {ChunkMap} map @param {Colours} colours */
function nameClusters(ctx, size, { places, clusters, clusterNames }, colours) {
  ctx.font = '600 12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  [ctx.textAlign, ctx.textBaseline, ctx.lineJoin, ctx.lineWidth] = ["center", "middle", "round", 4];
  [ctx.strokeStyle, ctx.fillStyle] = [colours.panel, colours.ink];
  /** @type {number[][]} */
  const taken = [];
  clusterNames.forEach((name, cluster) => {
    const shown = Array.from(clusters.keys()).filter((chunk) => clusters[chunk] === cluster).map((chunk) => placeOf(size, places, chunk)).filter((place) => isShown(size, place));
    if (!shown.length) return;
    const half = ctx.measureText(name).width / 2 + 4;
    const [x, y] = [0, 1].map((axis) => shown.map((place) => place[axis]).sort((a, b) => a - b)[shown.length >> 1]);
    const at = Math.min(size.width - half, Math.max(half, x));
    if (taken.some(([left, right, line]) => at - half < right && at + half > left && Math.abs(y - line) < 16)) return;
    taken.push([at - half, at + half, y]);
    ctx.strokeText(name, at, y);
    ctx.fillText(name, at, y);
  });
}

// Where chunks lie that have no point.
/** @param {CanvasRenderingContext2D} ctx @param {Size} size @param {Uint16Array} places @param {Numbers} pointed @param {Colours} colours */
function drawDensity(ctx, size, places, pointed, colours) {
  const hasPoint = new Uint8Array(places.length / 2);
  for (let k = 0; k < pointed.length; k++) hasPoint[pointed[k]] = 1;
  const [columns, rows] = [size.width, size.height].map((length) => Math.ceil(length / CELL));
  const counts = new Float32Array(columns * rows);
  for (let chunk = 0; 2 * chunk < places.length; chunk++) {
    if (hasPoint[chunk]) continue;
    const [column, row] = placeOf(size, places, chunk).map((pixel) => Math.floor(pixel / CELL));
    if (column >= 0 && column < columns && row >= 0 && row < rows) counts[row * columns + column]++;
  }
  const most = Math.log1p(counts.reduce((a, b) => Math.max(a, b), 0));
  ctx.fillStyle = colours.mut;
  counts.forEach((count, i) => {
    if (!count) return;
    ctx.globalAlpha = 0.06 + (0.24 * Math.log1p(count)) / most;
    ctx.fillRect((i % columns) * CELL, Math.floor(i / columns) * CELL, CELL, CELL);
  });
  ctx.globalAlpha = 1;
}

// Heads of pins that would touch move apart; a bent stem says where they belong. A pin beyond the piece that is shown stays there: at the
// border it would seem to lie where it doesn't.
/** @param {Size} size @param {Pin[]} chosen @param {Uint16Array} places @returns {PlacedPin[]} */
function placedPins(size, chosen, places) {
  const pins = chosen.map((pin) => {
    const [x, y] = placeOf(size, places, pin.chunk_id);
    return { ...pin, x, y, head: [x, y] };
  });
  const gap = 2 * PIN + 3;
  const shown = pins.filter(({ x, y }) => isShown(size, [x, y]));
  for (let round = 0; round < 12; round++) {
    shown.forEach((pin, i) => shown.slice(0, i).forEach((other) => {
      const [dx, dy] = [pin.head[0] - other.head[0], pin.head[1] - other.head[1]];
      const distance = Math.hypot(dx, dy);
      if (distance >= gap) return;
      const [ux, uy] = distance > 0.01 ? [dx / distance, dy / distance] : [Math.cos(2.4 * i), Math.sin(2.4 * i)];
      const push = (gap - distance) / 2;
      pin.head = [pin.head[0] + ux * push, pin.head[1] + uy * push];
      other.head = [other.head[0] - ux * push, other.head[1] - uy * push];
    }));
    for (const pin of shown) pin.head = [Math.min(size.width - PIN - 1, Math.max(PIN + 1, pin.head[0])), Math.min(size.height - PIN - 1, Math.max(PIN + 1, pin.head[1]))];
  }
  return pins;
}

// Returns the pins with the places of their heads.
/** @param {HTMLCanvasElement} canvas @param {Size} size @param {View} view @param {ChunkMap} map @param {HTMLCanvasElement} picture @param {Colours} colours */
export function drawChunkMap(canvas, size, view, map, picture, colours) {
  const { value } = view;
  const s = surface(canvas, size.height);
  s.ctx.drawImage(picture, 0, 0, size.width, size.height);
  const at = (/** @type {number} */ chunk) => placeOf(size, map.places, chunk);
  for (const chunk of value.gold) ringSupport(s, value, chunk, at(chunk)[0], at(chunk)[1], 5, colours);
  for (const chunk of value.forbidden) cross(s, at(chunk)[0], at(chunk)[1], colours);
  s.ctx.lineWidth = 2;
  const pins = placedPins(size, value.chosen, map.places).sort((a, b) => a.step - b.step);
  pins.slice(1).forEach((pin, i) => line(s, pins[i].head[0], pins[i].head[1], pin.head[0], pin.head[1], colours.pin(pin), pin.step > value.look ? [2, 3] : []));
  s.ctx.lineWidth = 1;
  const [gold, heads] = [new Set(value.gold), new Map(pins.map((pin) => [pin.chunk_id, pin.head]))];
  /** @param {number} chunk @param {number} radius @param {string} colour */
  const point = (chunk, radius, colour) => {
    const [x, y] = heads.get(chunk) || at(chunk);
    ring(s, x, y, heads.has(chunk) ? PIN + 6 : radius, colour);
  };
  for (const chunk of map.found) point(chunk, 4.5, colours.acc);
  if (view.cursor !== null) point(view.cursor, 8, colours.acc);
  s.ctx.font = "600 " + s.ctx.font;
  for (const pin of [...pins].reverse()) {
    line(s, pin.head[0], pin.head[1], pin.x, pin.y, colours.pin(pin));
    drawHead(s, pin, pin.head[0], pin.head[1], PIN, pin.step > value.look, colours);
    if (gold.has(pin.chunk_id)) ring(s, pin.head[0], pin.head[1], PIN + 3, colours.good);
  }
  if (view.hover !== null) point(view.hover, 6, colours.ink);
  return pins;
}

// The chunk meant by a pointer: a pin's, or that of the nearest point.
/** @param {number} x @param {number} y @param {Size} size @param {Uint16Array} places @param {Points} points @param {PlacedPin[]} pins @returns {number | null} */
export function nearestTo(x, y, size, places, points, pins) {
  const pin = pins.find(({ head }) => Math.hypot(head[0] - x, head[1] - y) <= PIN + 2);
  if (pin) return pin.chunk_id;
  /** @type {[number | null, number]} */
  let [nearest, least] = [null, REACH];
  for (let k = 0; k < points.chunks.length; k++) {
    const [px, py] = placeOf(size, places, points.chunks[k]);
    const distance = Math.hypot(px - x, py - y);
    if (distance < least) [nearest, least] = [points.chunks[k], distance];
  }
  return nearest;
}

// The nearest point in a direction, what lies aside counting thrice; the chunk itself where there is none.
/** @param {number} chunk @param {number[]} direction @param {Uint16Array} places @param {Points} points */
export function nextTowards(chunk, [dx, dy], places, points) {
  let [next, least] = [chunk, Infinity];
  for (let k = 0; k < points.chunks.length; k++) {
    const other = points.chunks[k];
    const [x, y] = [0, 1].map((coordinate) => places[2 * other + coordinate] - places[2 * chunk + coordinate]);
    const along = x * dx + y * dy;
    const aside = Math.abs(x * dy) + Math.abs(y * dx);
    if (along > aside / 2 && along + 3 * aside < least) [next, least] = [other, along + 3 * aside];
  }
  return next;
}
