// The strip itself: what is shown, what is asked of the server, and how its parts work together.
// Zoom, mode and cursor live here and survive new values; only another set of documents resets them.

import { makeChunkMap } from "./chunk_map.js";
import { one } from "./elements.js";
import { debounced, makeData, throttled } from "./strip_data.js";
import { drawLens, drawOverview } from "./strip_draw.js";
import { listenToKeys, listenToLens, listenToMap, listenToOverview } from "./strip_input.js";
import { drawMap, drawRuler, pictureOf } from "./strip_marks.js";
import { counted, decodeTile, entryOf, fitted, makeScale, shown, unpack, whole } from "./strip_numbers.js";
import { fillHeader, fillKey, fillLegends, fillReadout, fillTable, fillTip, lookName, made, placeTip, showLook } from "./strip_panels.js";
import { EDGE, GUTTER, readColours } from "./strip_surface.js";

const TABLE_PAGE = 20;
const MOST_COLUMNS = 4096;
const STEP_SHOWN = 900; // milliseconds
/** @type {StripValue} */
const NOTHING = {
  token: "", n_chunks: 0, n_looks: 0, look: 0, scale: { lo: 0, hi: 1 }, threshold: null, chosen: [], gold: [], missed: [], forbidden: [], marks: [], searched: [],
  documents: [], intervals: [], stopped: false, modes: [], score_name: "", probability_name: "", chunk_map: null,
};

/** @typedef {StripValue | { loading: string } | null} Sent */
/** @param {HTMLElement} element @param {Props<Sent | string>} props @param {Trigger<{ chunk_id: number } | { look: number }>} trigger @param {Watch} watch @param {Server} server */
export function strip(element, props, trigger, watch, server) {
  const root = one(element, ".qx-strip");
  /** @type {PartOf} */
  const part = (name) => one(root, `[data-part="${name}"]`);
  const invitation = one(root, ".qx-strip-invitation");
  const INVITATION = invitation.textContent;

  /** @type {View} */
  const view = {
    value: NOTHING, // the last one that can be drawn
    corpus: "",
    mode: "q",
    lo: 0, // range of the lens, in chunks
    hi: 1,
    cursor: null,
    hover: null,
    shown: null,
    map: null,
    chunkmap: null,
  };
  let colours = readColours(root);
  let tableOffset = 0;

  const data = makeData(server, (sentence) => {
    part("note").textContent = sentence;
    part("note").hidden = !sentence;
    if (sentence) root.setAttribute("aria-busy", "false");
  });
  /** @param {StripValue} value @param {number} look */
  const stateOf = (value, look) => [value.token, ...value.chosen.filter((pin) => pin.step < look).map((pin) => pin.chunk_id)].join(",");
  const reducedMotion = window.matchMedia("(prefers-reduced-motion: reduce)");

  // ---- drawing

  let waits = false;
  function paint() {
    if (!waits) requestAnimationFrame(draw);
    waits = true;
  }

  function draw() {
    waits = false;
    if (root.dataset.state !== "shown" || !part("plot").clientWidth) return;
    drawOverview(part("overview"), view, colours);
    drawLens(part("lens"), view, colours);
    for (const name of ["ruler", "ruler-words"]) part(name).hidden = !view.value.intervals.length;
    if (view.value.intervals.length) drawRuler(part("ruler"), view, colours);
    drawMap(part("map"), view, colours);
    chunkMap?.draw(colours);
  }

  // ---- numbers

  /** @param {HTMLElement} canvas */
  function columnsOf(canvas) {
    return Math.round((canvas.clientWidth - GUTTER - EDGE) * (window.devicePixelRatio || 1));
  }

  // The lens asks for half its span more on either side, so that dragging does not run out of bars.
  async function load() {
    const { value, mode } = view;
    const width = columnsOf(part("lens"));
    if (!value.n_chunks || width < 1) return;
    const span = view.hi - view.lo;
    const [lo, hi] = [Math.max(0, Math.floor(view.lo - span / 2)), Math.min(value.n_chunks, Math.ceil(view.hi + span / 2))];
    const columns = Math.min(MOST_COLUMNS, Math.max(1, Math.round((width * (hi - lo)) / span)));
    root.setAttribute("aria-busy", "true");
    const answers = await data("tiles", stateOf(value, value.look), "tiles", [
      [value.token, value.look, mode, 0, value.n_chunks, Math.min(MOST_COLUMNS, width)],
      [value.token, value.look, mode, lo, hi, columns],
    ]);
    if (!answers) return;
    root.setAttribute("aria-busy", "false");
    const [overview, lens] = answers.map(decodeTile);
    const masked = new Set(value.chosen.filter((pin) => pin.step < value.look).map((pin) => pin.chunk_id));
    view.shown = { mode, overview, lens, masked, scale: makeScale(mode, value, overview) };
    chunkMap?.repaint();
    fillLegends(part, value, view.shown);
    paint();
  }
  const loadSoon = throttled(load, 80);

  // Rows that are here stay, so that a step brings one row, and a run shown for the first time all of them.
  async function loadMap() {
    const { value } = view;
    const width = Math.min(MOST_COLUMNS, columnsOf(part("map")));
    if (!value.n_chunks || width < 1) return;
    const states = Array.from({ length: value.n_looks }, (_, row) => stateOf(value, row + 1));
    const [n_rows, n_columns] = [states.length, Math.min(width, value.n_chunks)];
    const before = view.map?.n_columns === n_columns ? view.map : null;
    const missing = states.findIndex((state, row) => before?.states[row] !== state);
    const kept = n_columns * (missing < 0 ? n_rows : missing);
    const cells = new Float32Array(n_rows * n_columns);
    if (before) cells.set(before.cells.subarray(0, kept));
    if (missing >= 0) {
      const answers = await data("runmap", states[n_rows - 1], "runmap", [[value.token, missing + 1, width]]);
      const isLate = view.value !== value || width !== Math.min(MOST_COLUMNS, columnsOf(part("map")));
      if (!answers || isLate) return; // a newer value, or another width, has asked for itself
      cells.set(unpack(answers[0].cells, Float32Array).subarray(0, cells.length - kept), kept);
    }
    const map = { n_rows, n_columns, cells, states };
    view.map = { ...map, picture: pictureOf(map, value, colours) };
    paint();
  }

  /** @param {string} channel @param {number} chunk @param {(facts: Facts) => void} use */
  async function describe(channel, chunk, use) {
    const { value } = view;
    const answers = await data(channel, stateOf(value, value.look), "describe", [[value.token, chunk, value.look]]);
    if (answers) use(answers[0]);
  }

  async function loadTable() {
    const { value, mode } = view;
    if (!value.n_chunks || part("table-panel").hidden) return;
    const answers = await data("top", stateOf(value, value.look), "top", [[value.token, value.look, mode, tableOffset]]);
    if (!answers) return;
    fillTable(part, view, answers[0], actions);
    one(root, '[data-page="back"]').toggleAttribute("disabled", tableOffset === 0);
    one(root, '[data-page="on"]').toggleAttribute("disabled", tableOffset + TABLE_PAGE >= answers[0].total);
  }

  // ---- what a person can do

  const announce = debounced(() => {
    if (view.cursor !== null) describe("cursor", view.cursor, (facts) => fillReadout(part("readout"), view, facts));
  }, 150);

  /** @type {MouseEvent | null} */
  let pointer = null;
  const describeHover = debounced(() => {
    if (view.hover === null) return;
    describe("hover", view.hover, (facts) => {
      if (facts.chunk_id !== view.hover || !pointer) return;
      fillTip(part("tip"), view, facts);
      placeTip(part("tip"), part("plot"), pointer);
    });
  }, 60);

  let gliding = 0;
  /** @type {Actions} */
  const actions = {
    show(lo, hi) {
      cancelAnimationFrame(gliding);
      actions.leave();
      [view.lo, view.hi] = fitted(lo, hi, view.value.n_chunks);
      paint();
      loadSoon();
    },
    glide(lo, hi) {
      const [from, to] = [[view.lo, view.hi], fitted(lo, hi, view.value.n_chunks)];
      if (reducedMotion.matches) return actions.show(to[0], to[1]);
      const began = performance.now();
      const advance = (/** @type {number} */ now) => {
        const t = Math.min(1, Math.max(0, (now - began) / 150));
        const eased = t * (2 - t);
        const [first, last] = from.map((edge, i) => edge + (to[i] - edge) * eased);
        actions.show(first, last);
        if (t < 1) gliding = requestAnimationFrame(advance);
      };
      cancelAnimationFrame(gliding);
      gliding = requestAnimationFrame(advance);
      return undefined;
    },
    zoom(factor, around, glides = false) {
      const [lo, hi] = [view.lo, view.hi].map((edge) => around + (edge - around) * factor);
      (glides ? actions.glide : actions.show)(lo, hi);
    },
    point(chunk, event) {
      if (chunk === null) return actions.leave();
      pointer = event;
      if (chunk === view.hover) {
        if (!part("tip").hidden) placeTip(part("tip"), part("plot"), event);
        return undefined;
      }
      view.hover = chunk;
      part("tip").hidden = true;
      paint();
      return describeHover();
    },
    leave() {
      part("tip").hidden = true;
      if (view.hover !== null) paint();
      view.hover = null;
    },
    pointAtMap(map, row, chunk, event) {
      const k = entryOf({ first: 0, last: view.value.n_chunks, best: { length: map.n_columns } }, Math.floor(chunk));
      const [from, to] = [k, k + 1].map((at) => Math.floor((at * view.value.n_chunks) / map.n_columns));
      const chunks = to - from > 1 ? `chunks ${whole(from)} – ${whole(to - 1)}, highest` : `chunk ${whole(from)},`;
      const words = `${chunks} ${view.value.score_name} ${shown(map.cells[(row - 1) * map.n_columns + k])}`;
      part("tip").replaceChildren(made("b", lookName(view.value, row)), made("div", words));
      placeTip(part("tip"), part("plot"), event);
    },
    move(next) {
      const last = view.value.n_chunks - 1;
      const now = view.value.chosen.find((pin) => pin.step === view.value.look);
      const start = now ? now.chunk_id : Math.floor((view.lo + view.hi) / 2);
      view.cursor = Math.min(last, Math.max(0, view.cursor === null ? Math.min(last, start) : next(view.cursor)));
      const span = view.hi - view.lo;
      if (view.cursor < view.lo || view.cursor + 1 > view.hi) actions.show(view.cursor + 0.5 - span / 2, view.cursor + 0.5 + span / 2);
      paint();
      announce();
    },
    open(chunk) {
      view.cursor = chunk;
      paint();
      announce();
      trigger("select", { chunk_id: chunk });
    },
    look(look) { // also the one that is shown: another may be on its way
      if (look >= 1 && look <= view.value.n_looks) trigger("look", { look });
    },
    mode(mode) {
      view.mode = mode;
      tableOffset = 0;
      refresh();
    },
  };

  // ---- the steps one after another

  let player = 0;
  const lastChoice = () => view.value.n_looks - Number(view.value.stopped);
  function stopPlaying() {
    clearInterval(player);
    player = 0;
    part("play").setAttribute("aria-pressed", "false");
  }
  part("play").onclick = () => {
    if (player) return stopPlaying();
    const { token } = view.value;
    let [before, step] = [view.value.look, 1];
    part("play").setAttribute("aria-pressed", "true");
    player = setInterval(() => {
      const { look } = view.value;
      if (view.value.token !== token || (look !== step && look !== before)) return stopPlaying(); // somebody looks elsewhere
      if (look !== step) return undefined; // it is on its way
      if (step >= lastChoice()) return stopPlaying();
      [before, step] = [step, step + 1];
      return actions.look(step);
    }, STEP_SHOWN);
    return actions.look(step);
  };

  // ---- new values, sizes and themes

  function refresh() {
    const { value } = view;
    fillHeader(part, view, actions);
    part("play").hidden = lastChoice() < 2 || reducedMotion.matches;
    fillKey(part("key"), value);
    part("overview").setAttribute("aria-label", `Overview of all ${counted(value.n_chunks, "chunk")}`);
    part("lens").setAttribute("aria-label", `${value.score_name} of ${counted(value.n_chunks, "chunk")} at ${lookName(value, value.look)}. ` +
      "Arrow keys move the cursor, Enter opens the chunk, plus and minus zoom.");
    part("ruler").setAttribute("aria-label", `Positions in ${counted(value.intervals.length, "interval")}`);
    part("map").setAttribute("aria-label", `Run map: ${value.score_name} along the document, a row for each of ${counted(value.n_looks, "step")}`);
    load();
    loadTable();
    chunkMap?.refresh();
    paint();
  }

  function receive() {
    /** @type {Sent} */
    const sent = typeof props.value === "string" ? JSON.parse(props.value || "null") : props.value; // packed, see tree.py
    const value = sent && "n_chunks" in sent && sent.n_chunks > 0 && sent.n_looks > 0 ? sent : null;
    const loading = sent && "loading" in sent && sent.loading;
    root.dataset.state = value ? "shown" : loading ? "loading" : "empty";
    invitation.textContent = loading || INVITATION;
    if (!value) return;
    const before = view.value;
    const corpus = JSON.stringify([value.n_chunks, value.documents]);
    if (corpus !== view.corpus) {
      Object.assign(view, { corpus, lo: 0, hi: value.n_chunks, cursor: null, shown: null, map: null });
      part("readout").replaceChildren();
    }
    view.value = value;
    view.hover = null;
    part("tip").hidden = true;
    if (!value.modes.includes(view.mode)) view.mode = value.modes[0];
    const newLook = before.token !== value.token || before.look !== value.look;
    if (newLook) tableOffset = 0;
    const pin = value.chosen.find(({ step }) => step === value.look);
    if (newLook && pin) view.cursor = pin.chunk_id; // one announcement a step: the chunk that was chosen
    announce();
    refresh();
    loadMap();
  }

  function restyle() {
    colours = readColours(root);
    if (view.map) view.map.picture = pictureOf(view.map, view.value, colours);
    chunkMap?.repaint();
    paint();
  }

  const chunkMap = "chunkmap" in server ? makeChunkMap(part, view, actions, server, data, stateOf, paint) : null;
  listenToLens(part("lens"), view, actions);
  listenToKeys(part("lens"), view, actions);
  listenToOverview(part("overview"), view, actions);
  listenToMap(part("map"), view, actions);

  for (const button of root.querySelectorAll("[data-zoom]")) {
    button.onclick = () => {
      if (button.dataset.zoom === "all") return actions.glide(0, view.value.n_chunks);
      const { cursor } = view;
      const inside = cursor !== null && cursor >= view.lo && cursor < view.hi;
      return actions.zoom(button.dataset.zoom === "in" ? 0.5 : 2, inside ? cursor + 0.5 : (view.lo + view.hi) / 2, true);
    };
  }
  part("table-toggle").onclick = () => {
    const opens = part("table-panel").hidden;
    part("table-panel").hidden = !opens;
    part("table-toggle").setAttribute("aria-expanded", String(opens));
    loadTable();
  };
  for (const button of root.querySelectorAll("[data-page]")) {
    button.onclick = () => {
      tableOffset = Math.max(0, tableOffset + (button.dataset.page === "on" ? TABLE_PAGE : -TABLE_PAGE));
      loadTable();
    };
  }

  // Also tells when a hidden tab is shown: its canvases have no size before.
  new ResizeObserver(() => {
    if (!view.value.n_chunks || !part("plot").clientWidth) return;
    showLook(part("looks"));
    paint();
    loadSoon();
    loadMap();
  }).observe(part("plot"));
  new MutationObserver(restyle).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  for (const query of ["(forced-colors: active)", "(prefers-color-scheme: dark)"]) window.matchMedia(query).addEventListener("change", restyle);

  watch("value", receive);
  receive();
}
