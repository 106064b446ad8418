// The map of the chunks beside the strip: asked for when it is first opened, and made by the server meanwhile. What the pointer or the cursor
// is on there, it is on in the strip as well: both draw one view.

import { bordersOf, drawChunkMap, focusOf, holding, mapPicture, nearestTo, nextTowards, panned, sizeOf, zoomed } from "./chunk_map_draw.js";
import { debounced } from "./strip_data.js";
import { keysOfChunks, press } from "./strip_input.js";
import { unpack, whole } from "./strip_numbers.js";
import { made } from "./strip_panels.js";

const PAUSE = 250; // milliseconds between two questions how far it is
/** @type {[key: string, x: number, y: number][]} */
const ARROWS = [["ArrowLeft", -1, 0], ["ArrowRight", 1, 0], ["ArrowUp", 0, -1], ["ArrowDown", 0, 1]];
const MOST_NAMED = 8; // documents
const LEAST_DRAG = 4; // pixels, fewer are a click

/** @param {PartOf} part @param {View} view @param {Actions} actions @param {MapServer} server @param {Ask} ask @param {(value: StripValue, look: number) => string} stateOf @param {() => void} paint */
export function makeChunkMap(part, view, actions, server, ask, stateOf, paint) {
  const [panel, canvas, toggle] = [part("chunkmap"), /** @type {HTMLCanvasElement} */ (part("chunkmap-canvas")), part("chunkmap-toggle")];
  const colouring = /** @type {HTMLSelectElement} */ (part("chunkmap-colour"));
  const progress = /** @type {HTMLProgressElement} */ (part("chunkmap-progress"));
  /** @type {PlacedPin[]} */
  let pins = []; // where the chosen chunks were drawn
  let making = ""; // of which documents a map is on its way
  /** @type {number | null} */
  let followed = null; // the cursor that was last brought into view
  /** @type {number[] | null} */
  let held = null; // where the pointer holds the map
  let moved = false; // it was dragged since
  const back = /** @type {HTMLButtonElement} */ (part("chunkmap-back"));
  /** @type {number[][]} */
  let before = []; // the pieces that were shown
  const offered = () => { // the vectors of which there can be a map
    const { chunk_map, n_chunks } = view.value;
    return chunk_map && n_chunks >= chunk_map.least ? chunk_map.of : null;
  };
  const current = () => (view.chunkmap?.of === offered() ? view.chunkmap : null);

  // ---- making

  /** @param {string} words @param {number | null} share @param {string} action @param {(() => void) | null} act */
  function say(words, share, action, act) {
    part("chunkmap-making").hidden = !words;
    canvas.hidden = Boolean(words);
    for (const name of ["colouring", "zoom", "find", "found", "key"]) part("chunkmap-" + name).hidden = Boolean(words);
    if (part("chunkmap-note").textContent !== words) part("chunkmap-note").textContent = words;
    progress.hidden = share === null;
    if (share) progress.value = share;
    else progress.removeAttribute("value");
    part("chunkmap-act").textContent = action;
    part("chunkmap-act").onclick = act;
  }

  async function make() {
    const of = offered();
    if (of === null || making === of) return;
    making = of;
    const answer = await lastWord(of);
    if (making === of) making = "";
    if (!answer || offered() !== of) return;
    if (!("places" in answer)) {
      const why = "error" in answer ? answer.error : "refused" in answer ? answer.refused : "No map was made.";
      say(why, null, "Make the map", make);
      return;
    }
    view.chunkmap = {
      of, names: answer.names, places: unpack(answer.places, Uint16Array), groups: unpack(answer.groups, Uint8Array),
      clusterNames: answer.cluster_names, clusters: unpack(answer.clusters, Uint8Array), points: null, picture: null, colour: "value", found: [], seen: [0, 0, 1],
    };
    part("chunkmap-found").textContent = "";
    before = [];
    back.disabled = true;
    list([], []);
    refresh();
  }

  // The server's last word on a map; nothing where other documents came meanwhile or the panel was closed, which does not end the making.
  /** @param {string} of @returns {Promise<MapEnd | Refusal | null>} */
  async function lastWord(of) {
    /** @type {"make" | "look" | "stop"} */
    let action = "make";
    for (;;) {
      const reply = await server.chunkmap([view.value.token, action]).catch(() => undefined);
      if (panel.hidden || offered() !== of) return null;
      if (!reply) return { error: "The server did not answer; try again in a moment." };
      if (!("total" in reply)) return reply;
      say("Making the map…", reply.done / reply.total, "Cancel", () => (action = "stop"));
      if (action === "make") action = "look";
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }

  // ---- showing

  // The same look and mode as in the strip, one value a point: of all chunks, or of the most telling ones where they are too many, which in
  // an enlarged piece are those of the piece.
  async function loadPoints() {
    const { value, mode } = view;
    const { seen, points } = current() || { seen: [0, 0, 1], points: null };
    const [state, asked] = [stateOf(value, value.look), /** @type {const} */ ([value.token, value.look, mode])];
    const answers = seen[2] > 1 && points && points.chunks.length < value.n_chunks
      ? await ask("points", state, "piece", [[...asked, ...bordersOf(seen)]])
      : await ask("points", state, "points", [[...asked]]);
    const map = current();
    if (!answers || !map) return;
    const values = unpack(answers[0].values, Float32Array);
    const chunks = answers[0].chunks ? unpack(answers[0].chunks, Int32Array) : Int32Array.from(values.keys());
    map.points = { mode, values, chunks, masked: new Set(value.chosen.filter((pin) => pin.step < value.look).map((pin) => pin.chunk_id)) };
    repaint();
  }

  const loadPiece = debounced(() => {
    const points = current()?.points;
    if (points && points.chunks.length < view.value.n_chunks) loadPoints();
  }, 100);

  // The chunks nearest to a text, ringed; the cursor goes to the first of them.
  async function find() {
    const text = /** @type {HTMLInputElement} */ (part("chunkmap-text")).value.trim();
    const of = offered();
    const reply = text ? await server.nearest([view.value.token, text]).catch(() => undefined) : { chunks: [], texts: [] };
    const map = current();
    if (!map || map.of !== of) return;
    /** @type {{ chunks?: number[], texts?: string[], error?: string }} */
    const { chunks = [], texts = [], error = "" } = reply || { error: "The server did not answer; try again in a moment." };
    map.found = chunks;
    part("chunkmap-found").textContent = error || (chunks.length ? `The ${chunks.length} nearest, ringed in the map:` : "");
    list(chunks, texts);
    if (chunks.length) actions.move(() => chunks[0]);
    paint();
  }

  /** @param {number[]} chunks @param {string[]} texts */
  function list(chunks, texts) {
    part("chunkmap-list").replaceChildren(...chunks.map((chunk, i) => {
      const [item, button] = [made("li", ""), made("button", texts[i], "qx-link")];
      button.title = `Open chunk ${whole(chunk)}`;
      button.onclick = () => actions.open(chunk);
      item.append(button);
      return item;
    }));
  }

  /** @param {ChunkMap} map */
  function fillColouring({ names, clusterNames, colour }) {
    const { documents, score_name } = view.value;
    const kinds = [["value", score_name], ...(documents.length > 1 && documents.length <= MOST_NAMED ? [["documents", "document"]] : []), ...(names.length ? [["headings", "heading"]] : []),
      ...(clusterNames.length ? [["clusters", "topic"]] : [])];
    part("chunkmap-colouring").hidden = kinds.length < 2;
    const offers = [...colouring.options].map((option) => option.text);
    if (String(offers) !== String(kinds.map(([, name]) => name))) colouring.replaceChildren(...kinds.map(([kind, name]) => new Option(name, kind)));
    colouring.value = colour;
  }

  /** @param {ChunkMap} map @param {(group: number) => string} colourOf */
  function fillKey({ colour, names, clusterNames }, colourOf) {
    const words = { value: [], documents: view.value.documents.map((document) => document.title), headings: names, clusters: clusterNames }[colour];
    part("chunkmap-key").hidden = !words.length;
    part("chunkmap-key").replaceChildren(...words.map((name, group) => {
      const item = made("li", name);
      item.title = name;
      item.style.setProperty("--qx-group", colourOf(group));
      return item;
    }));
  }

  function repaint() {
    if (view.chunkmap) view.chunkmap.picture = null;
    paint();
  }

  /** @param {Colours} colours */
  function draw(colours) {
    const map = current();
    if (panel.hidden || !map?.points || !view.shown || !canvas.clientWidth) return;
    if (view.cursor !== followed && view.cursor !== null) show(map, holding(sizeOf(canvas, map.seen), map.places, view.cursor));
    followed = view.cursor;
    const size = sizeOf(canvas, map.seen);
    if (map.picture?.width !== size.pixels[0]) map.picture = null;
    if (!map.picture) {
      const picture = mapPicture(size, view.value, map, map.points, view.shown.scale, colours);
      map.picture = picture.canvas;
      fillKey(map, picture.colourOf);
    }
    pins = drawChunkMap(canvas, size, view, map, map.picture, colours);
  }

  function refresh() {
    toggle.hidden = offered() === null;
    part("chunkmap-none").hidden = !view.value.chunk_map || !toggle.hidden;
    if (view.value.chunk_map) part("chunkmap-none").textContent = `No map: fewer than ${view.value.chunk_map.least} chunks`;
    panel.hidden = toggle.hidden || toggle.getAttribute("aria-expanded") !== "true";
    if (panel.hidden) return;
    const map = current();
    if (!map) {
      make();
      return;
    }
    say("", null, "", null);
    fillColouring(map);
    const path = view.value.chosen.map((pin) => `step ${pin.step} chunk ${whole(pin.chunk_id)}`).join(", ");
    canvas.setAttribute("aria-label", `Map of ${whole(view.value.n_chunks)} chunks, alike ones close together. ${path ? `Path: ${path}. ` : ""}` +
      "Arrow keys move the cursor to the nearest chunk in that direction, Enter opens the chunk, plus and minus zoom.");
    loadPoints();
  }

  toggle.onclick = () => {
    toggle.setAttribute("aria-expanded", String(toggle.getAttribute("aria-expanded") !== "true"));
    refresh();
  };
  part("chunkmap-find").onsubmit = (event) => {
    event.preventDefault();
    if (current()) find();
  };
  colouring.onchange = () => {
    if (view.chunkmap) view.chunkmap.colour = /** @type {ChunkMap["colour"]} */ (colouring.value);
    repaint();
  };

  // ---- pointer and keys

  /** @param {MouseEvent} event */
  function meant(event) {
    const map = current();
    return map?.points ? nearestTo(event.offsetX, event.offsetY, sizeOf(canvas, map.seen), map.places, map.points, pins) : null;
  }

  // Another piece of the map; a finger scrolls the page while all of it is shown.
  /** @param {ChunkMap} map @param {number[]} seen @param {boolean} [goesOn] it is one movement with the last one */
  function show(map, seen, goesOn) {
    if (seen.every((number, i) => number === map.seen[i])) return;
    if (!goesOn) before = [...before.slice(-50), map.seen];
    back.disabled = !before.length;
    [map.seen, map.picture] = [seen, null];
    loadPiece();
    canvas.style.touchAction = seen[2] > 1 ? "none" : "";
  }
  back.onclick = () => {
    const [map, seen] = [current(), before.pop()];
    if (!map || !seen) return;
    show(map, seen, true);
    paint();
  };
  part("chunkmap-wide").onclick = () => {
    const wide = panel.classList.toggle("qx-wide");
    part("chunkmap-wide").setAttribute("aria-pressed", String(wide));
  };
  /** @param {number} factor @param {number[]} [around] */
  function zoom(factor, around) {
    const map = current();
    if (!map) return;
    const size = sizeOf(canvas, map.seen);
    show(map, zoomed(size, factor, around || focusOf(size, map.places, view.cursor)));
    paint();
  }
  for (const [name, factor] of /** @type {[string, number][]} */ ([["in", 2], ["out", 0.5], ["all", 0]])) part(`chunkmap-${name}`).onclick = () => zoom(factor);

  canvas.addEventListener("wheel", (event) => { // the plain wheel scrolls the page, as over the strip
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 300), [event.offsetX, event.offsetY]);
  }, { passive: false });
  canvas.addEventListener("dblclick", () => zoom(0));
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !event.isPrimary) return; // a second finger would throw it to and fro
    held = [event.offsetX, event.offsetY];
    moved = false;
  });
  for (const end of /** @type {const} */ (["pointerup", "pointercancel"])) canvas.addEventListener(end, () => (held = null));
  canvas.addEventListener("pointermove", (event) => {
    if (!event.isPrimary) return undefined;
    const map = current();
    if (map && held && map.seen[2] > 1) {
      const by = [event.offsetX - held[0], event.offsetY - held[1]];
      if (!moved && Math.hypot(...by) < LEAST_DRAG) return undefined;
      if (!moved) canvas.setPointerCapture(event.pointerId);
      show(map, panned(sizeOf(canvas, map.seen), by), moved);
      [moved, held] = [true, [event.offsetX, event.offsetY]];
      return paint();
    }
    const chunk = meant(event);
    canvas.style.cursor = chunk === null ? "default" : "pointer";
    return actions.point(chunk, event);
  });
  canvas.addEventListener("pointerleave", actions.leave);
  canvas.addEventListener("click", (event) => {
    if (moved || event.detail > 1) return;
    const chunk = meant(event);
    if (chunk !== null) actions.open(chunk);
  });
  canvas.addEventListener("keydown", (event) => {
    const map = current();
    const points = map?.points;
    if (!points || event.ctrlKey || event.metaKey || event.altKey) return;
    const towards = ARROWS.map(([key, x, y]) => [key, () => actions.move((cursor) => nextTowards(cursor, [x, y], map.places, points))]);
    const zooms = { "+": () => zoom(2), "=": () => zoom(2), "-": () => zoom(0.5), 0: () => zoom(0) };
    press(event, { ...Object.fromEntries(towards), ...zooms, ...keysOfChunks(view, actions) });
  });
  new ResizeObserver(repaint).observe(canvas);

  return { refresh, repaint, draw };
}
