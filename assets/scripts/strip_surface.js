// Canvases with one gutter, so that what lies above one another is the same chunk, and what is drawn on them: lines, words, colours.

import { needed } from "./elements.js";
import { ramp } from "./strip_numbers.js";

export const GUTTER = 48; // room for a number with its sign
export const EDGE = 10;
export const OVERVIEW_HEIGHT = 24;
export const LENS = { pins: 24, plot: 88, marks: 14, axis: 16 };
export const LENS_HEIGHT = LENS.pins + LENS.plot + LENS.marks + LENS.axis;
/** @type {Ink[]} */
const INKS = ["panel", "line", "ink", "mut", "acc", "good", "warn", "q0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"];

/** @param {HTMLCanvasElement} canvas */
export const brush = (canvas) => needed(canvas.getContext("2d"), "canvas to draw on");

/** @param {HTMLCanvasElement} canvas @param {number} height @returns {Surface} */
export function surface(canvas, height) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const size = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
  canvas.style.height = height + "px";
  const ctx = brush(canvas);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, width, height);
  ctx.font = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
  ctx.textBaseline = "middle";
  ctx.lineWidth = 1;
  return { ctx, width, height, ratio, left: GUTTER, right: width - EDGE };
}

/** @param {Pick<Surface, "left" | "right">} s @param {number} lo @param {number} hi @returns {Placer} */
export const placer = (s, lo, hi) => (chunk) => s.left + ((chunk - lo) / (hi - lo)) * (s.right - s.left);
/** @param {Surface} s @param {number} x */
export const crisp = (s, x) => Math.round(x * s.ratio) / s.ratio;

/** @param {Surface} s @param {number} x @param {number} y @param {number} width @param {number} height @param {() => void} draw */
export function clipped(s, x, y, width, height, draw) {
  s.ctx.save();
  s.ctx.beginPath();
  s.ctx.rect(x, y, width, height);
  s.ctx.clip();
  draw();
  s.ctx.restore();
}

/** @param {Pick<Surface, "ctx">} s @param {number} x1 @param {number} y1 @param {number} x2 @param {number} y2 @param {string} colour @param {number[]} [dash] */
export function line(s, x1, y1, x2, y2, colour, dash = []) {
  const { ctx } = s;
  ctx.strokeStyle = colour;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
  ctx.setLineDash([]);
}

/** @param {Surface} s @param {string} words @param {number} x @param {number} y @param {string} colour @param {CanvasTextAlign} [align] */
export function text(s, words, x, y, colour, align = "left") {
  s.ctx.textAlign = align;
  s.ctx.fillStyle = colour;
  s.ctx.fillText(words, x, y);
}

// On a patch of the panel's colour: readable over bars.
/** @param {Surface} s @param {string} words @param {number} x @param {number} y @param {string} colour @param {string} panel */
export function label(s, words, x, y, colour, panel) {
  s.ctx.globalAlpha = 0.85;
  s.ctx.fillStyle = panel;
  s.ctx.fillRect(x - 2, y - 7, s.ctx.measureText(words).width + 4, 14);
  s.ctx.globalAlpha = 1;
  text(s, words, x, y, colour);
}

// Name of a choice's colour in the theme: its step's, unless it brings one.
/** @param {Pick<Pin, "step" | "colour">} pin @returns {Hue} */
export const hue = (pin) => pin.colour || `s${((pin.step - 1) % 8) + 1}`;

// The theme's colours as the browser resolves them: custom properties alone would give system colours and mixes unresolved.
/** @param {HTMLElement} root @returns {Colours} */
export function readColours(root) {
  const probe = document.createElement("span");
  probe.style.cssText = "display:none;forced-color-adjust:none";
  root.append(probe);
  /** @param {string} name */
  const channels = (name) => {
    probe.style.color = `var(--qx-${name})`;
    const text = getComputedStyle(probe).color;
    const numbers = Array.from(text.matchAll(/-?[\d.]+(?:e-?\d+)?/g), ([digits]) => Number(digits)).slice(0, 3);
    return text.startsWith("color(") ? numbers.map((part) => part * 255) : numbers;
  };
  /** @param {string} name @param {number} length */
  const stops = (name, length) => ramp(Array.from({ length }, (_, i) => channels(`${name}-${i}`)));
  const ramps = { seq: stops("seq", 9), div: stops("div", 7) };
  const inks = /** @type {Record<Ink, string>} */ (Object.fromEntries(INKS.map((name) => [name, `rgb(${channels(name).map(Math.round).join(",")})`])));
  const dark = channels("panel")[1] < 128;
  probe.remove();
  return {
    ...inks, ...ramps, dark,
    pin: (pin) => inks[hue(pin)],
    tinted: (scale, value) => ramps[scale.ramp][Math.round(255 * Math.min(1, Math.max(0, scale.tint(value) || 0)))],
  };
}
