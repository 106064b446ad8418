// Pointer, wheel and keyboard. Plain wheel and vertical swipes are left to the page.

import { placedPins, rowHeight } from "./strip_marks.js";
import { entryOf } from "./strip_numbers.js";
import { EDGE, GUTTER, LENS } from "./strip_surface.js";

const DRAG_STARTS = 4; // pixels
const HANDLE_REACH = 12; // pixels to either side: a target of 24
const NEAR = 3; // pixels around the pointer within which the most telling chunk is meant, where a chunk is thinner than that

/** @param {HTMLCanvasElement} canvas */
function makePlace(canvas) {
  const ends = () => [GUTTER, canvas.clientWidth - EDGE];
  return {
    /** @param {MouseEvent} event */
    x: (event) => event.clientX - canvas.getBoundingClientRect().left,
    /** @param {number} x @param {number} lo @param {number} hi */
    chunkAt: (x, lo, hi) => lo + ((x - ends()[0]) / (ends()[1] - ends()[0])) * (hi - lo),
    /** @param {number} chunk @param {number} lo @param {number} hi */
    xOf: (chunk, lo, hi) => ends()[0] + ((chunk - lo) / (hi - lo)) * (ends()[1] - ends()[0]),
  };
}

// Does what a key is for.
/** @param {KeyboardEvent} event @param {Keys} keys */
export function press(event, keys) {
  if (!keys[event.key]) return;
  event.preventDefault(); // also tells the page's own shortcuts that the key is spent
  keys[event.key]();
}

// The chunk meant by a pointer in the lens: a pin's, the one under it, or the most telling one nearby.
/** @param {HTMLCanvasElement} canvas @param {View} view @param {number} x @param {number} y */
function chunkMeant(canvas, view, x, y) {
  const place = makePlace(canvas);
  const at = place.chunkAt(x, view.lo, view.hi);
  if (!view.shown || at < view.lo || at > view.hi) return null;
  const s = { left: GUTTER, right: canvas.clientWidth - EDGE };
  if (y < LENS.pins) {
    const pin = placedPins(s, view).find(({ head }) => Math.abs(head - x) <= HANDLE_REACH);
    if (pin) return pin.chunk_id;
  }
  const under = Math.min(view.value.n_chunks - 1, Math.max(0, Math.floor(at)));
  const chunkWidth = (s.right - s.left) / (view.hi - view.lo);
  if (chunkWidth >= NEAR) return under;
  const tile = at >= view.shown.lens.first && at < view.shown.lens.last ? view.shown.lens : view.shown.overview;
  const { scale } = view.shown;
  const [from, to] = [x - NEAR, x + NEAR].map((edge) => Math.min(tile.last - 1, Math.max(tile.first, Math.floor(place.chunkAt(edge, view.lo, view.hi)))));
  let [best, most] = [under, -Infinity];
  for (let k = entryOf(tile, from); k <= entryOf(tile, to); k++) {
    const reach = Math.max(...[tile.low[k], tile.high[k]].map((number) => Math.abs(scale.unit(number) - (scale.ramp === "div" ? scale.base : 0))));
    if (tile.best[k] >= 0 && reach > most) [best, most] = [tile.best[k], reach];
  }
  return best;
}

/** @param {HTMLCanvasElement} canvas @param {View} view @param {Actions} actions */
export function listenToLens(canvas, view, actions) {
  const place = makePlace(canvas);
  /** @type {Map<number, { x: number, start: number }>} */
  const fingers = new Map(); // by the pointer's id
  /** @type {number[]} */
  let grip = []; // chunks under the fingers, or under the mouse, to be kept there
  let moved = false;
  const hold = () => (grip = [...fingers.values()].map((finger) => place.chunkAt(finger.x, view.lo, view.hi)));

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (fingers.size === 0) moved = false;
    fingers.set(event.pointerId, { x: place.x(event), start: place.x(event) });
    canvas.setPointerCapture(event.pointerId);
    hold();
  });

  canvas.addEventListener("pointermove", (event) => {
    const finger = fingers.get(event.pointerId);
    if (!finger) return actions.point(chunkMeant(canvas, view, place.x(event), event.offsetY), event);
    finger.x = place.x(event);
    if (!moved && fingers.size === 1 && Math.abs(finger.x - finger.start) < DRAG_STARTS) return undefined;
    if (!moved) canvas.dataset.busy = "pan";
    moved = true;
    actions.leave();
    const [a, b] = [...fingers.values()];
    const width = canvas.clientWidth - EDGE - GUTTER;
    const span = b && Math.abs(b.x - a.x) > 8 ? (Math.abs(grip[1] - grip[0]) / Math.abs(b.x - a.x)) * width : view.hi - view.lo;
    const lo = grip[0] - ((a.x - GUTTER) / width) * span;
    return actions.show(lo, lo + span);
  });

  const release = (/** @type {PointerEvent} */ event) => {
    fingers.delete(event.pointerId);
    hold();
    if (!fingers.size) delete canvas.dataset.busy;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", actions.leave);

  canvas.addEventListener("click", (event) => {
    if (moved || event.detail > 1) return; // the second click of a double click resets the zoom and opens nothing
    const chunk = chunkMeant(canvas, view, place.x(event), event.offsetY);
    if (chunk !== null) actions.open(chunk);
  });
  canvas.addEventListener("dblclick", () => actions.glide(0, view.value.n_chunks));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const factor = Math.exp(Math.min(1, Math.max(-1, event.deltaY / 100)) * 0.35);
    actions.zoom(factor, place.chunkAt(place.x(event), view.lo, view.hi));
  }, { passive: false });
}

/** @param {HTMLCanvasElement} canvas @param {View} view @param {Actions} actions */
export function listenToKeys(canvas, view, actions) {
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const jump = event.shiftKey ? Math.max(10, Math.round((view.hi - view.lo) / 20)) : 1;
    const middle = view.cursor === null ? (view.lo + view.hi) / 2 : view.cursor + 0.5;
    press(event, {
      ArrowLeft: () => actions.move((cursor) => cursor - jump),
      ArrowRight: () => actions.move((cursor) => cursor + jump),
      ...keysOfChunks(view, actions),
      "+": () => actions.zoom(0.5, middle, true),
      "=": () => actions.zoom(0.5, middle, true),
      "-": () => actions.zoom(2, middle, true),
      0: () => actions.glide(0, view.value.n_chunks),
    });
  });
}

// Keys that strip and map share.
/** @param {View} view @param {Actions} actions @returns {Keys} */
export const keysOfChunks = (view, actions) => ({
  Home: () => actions.move(() => 0),
  End: () => actions.move(() => view.value.n_chunks - 1),
  Enter: () => view.cursor !== null && actions.open(view.cursor),
  Escape: actions.leave,
  "[": () => actions.look(view.value.look - 1),
  "]": () => actions.look(view.value.look + 1),
});

// The brush: a handle is dragged, the window is moved, and anywhere else a new window is drawn.
/** @param {HTMLCanvasElement} canvas @param {View} view @param {Actions} actions */
export function listenToOverview(canvas, view, actions) {
  const place = makePlace(canvas);
  /** @type {{ kind: "lo" | "hi" | "window" | "new", x: number, from: number, lo: number, hi: number, moved: boolean } | null} */
  let drag = null;
  const chunkAt = (/** @type {number} */ x) => Math.min(view.value.n_chunks, Math.max(0, place.chunkAt(x, 0, view.value.n_chunks)));

  const kindAt = (/** @type {number} */ x) => {
    const [x1, x2] = [view.lo, view.hi].map((chunk) => place.xOf(chunk, 0, view.value.n_chunks));
    const whole_range = view.hi - view.lo >= view.value.n_chunks;
    const [d1, d2] = [Math.abs(x - x1), Math.abs(x - x2)];
    const reach = Math.min(HANDLE_REACH, Math.max(4, (x2 - x1) / 3)); // a narrow window keeps a middle to be moved by
    if (Math.min(d1, d2) <= (x > x1 && x < x2 ? reach : HANDLE_REACH)) return d1 < d2 ? "lo" : "hi";
    return !whole_range && x > x1 && x < x2 ? "window" : "new";
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return;
    const x = place.x(event);
    drag = { kind: kindAt(x), x, from: chunkAt(x), lo: view.lo, hi: view.hi, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    if (!event.isPrimary) return;
    const x = place.x(event);
    if (!drag) {
      canvas.style.cursor = { lo: "ew-resize", hi: "ew-resize", window: "grab", new: "crosshair" }[kindAt(x)];
      return;
    }
    if (!drag.moved && Math.abs(x - drag.x) < DRAG_STARTS) return;
    drag.moved = true;
    const by = chunkAt(x) - drag.from;
    if (drag.kind === "window") actions.show(drag.lo + by, drag.hi + by);
    else {
      const fixed = { lo: drag.hi, hi: drag.lo, new: drag.from }[drag.kind];
      actions.show(Math.min(fixed, chunkAt(x)), Math.max(fixed, chunkAt(x)));
    }
  });

  canvas.addEventListener("pointerup", () => {
    const half = (view.hi - view.lo) / 2;
    if (drag && !drag.moved && drag.kind === "new" && 2 * half < view.value.n_chunks) actions.glide(drag.from - half, drag.from + half);
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => (drag = null));
  canvas.addEventListener("dblclick", () => actions.glide(0, view.value.n_chunks));
}

/** @param {HTMLCanvasElement} canvas @param {View} view @param {Actions} actions */
export function listenToMap(canvas, view, actions) {
  const place = makePlace(canvas);
  /** @param {MouseEvent} event @param {RunMap} map */
  const rowOf = (event, { n_rows }) => Math.min(n_rows, Math.max(1, Math.floor(event.offsetY / rowHeight(n_rows)) + 1));
  canvas.addEventListener("click", (event) => view.map && actions.look(rowOf(event, view.map)));
  canvas.addEventListener("pointermove", (event) => {
    const chunk = place.chunkAt(place.x(event), 0, view.value.n_chunks);
    if (view.map && chunk >= 0 && chunk < view.value.n_chunks) actions.pointAtMap(view.map, rowOf(event, view.map), chunk, event);
  });
  canvas.addEventListener("pointerleave", actions.leave);
}
