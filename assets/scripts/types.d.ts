// What the scripts hand to one another. `StripValue` is what core/views/draw/strip.py makes, `Facts` what core/corpus/tiles.py says of a chunk.

type Mode = "q" | "dq" | "rank" | "p";
interface Columns { first: number; last: number; best: { length: number } }
type Placer = (chunk: number) => number;
type Numbers = ArrayLike<number>;
type Hue = `s${number}` | "mut"; // a step's colour
type Ink = Hue | "panel" | "line" | "ink" | "acc" | "good" | "warn" | "q0";
interface Pin { step: number; chunk_id: number; by: string; colour?: Hue }
interface PlacedPin extends Pin { x: number; y: number; head: number[] }
interface Slope { lo: number; hi: number; rho_lo: number; rho_hi: number }
interface Part { title: string; first_chunk: number }
interface StripValue {
  token: string; n_chunks: number; n_looks: number; look: number; scale: { lo: number; hi: number }; threshold: number | null;
  chosen: Pin[]; gold: number[]; missed: number[]; forbidden: number[]; marks: [number, boolean][]; searched: number[][]; documents: Part[];
  intervals: Slope[]; stopped: boolean; modes: Mode[]; score_name: string; probability_name: string;
  chunk_map: { of: string; least: number } | null;
}
interface Facts { chunk_id: number; text: string; title: string; heading: string; q: number | null; rank: number | null; p: number | null; rho: number | null; chosen_at: number | null }
interface Tile { first: number; last: number; low: Numbers; high: Numbers; best: Numbers }
interface Scale {
  unit: (value: number) => number; tint: (value: number) => number; base: number; ramp: "seq" | "div";
  ticks: { value: number; label: string }[]; ends: string[];
}
interface Cells { n_rows: number; n_columns: number; cells: Float32Array }
// states: what the numbers of each row depend on.
interface RunMap extends Cells { states: string[]; picture: HTMLCanvasElement }
interface Page { total: number; offset: number; rows: Facts[] }
// The tiles on the screen, with the scale and the masked chunks that belong to them.
interface Shown { mode: Mode; overview: Tile; lens: Tile; masked: Set<number>; scale: Scale }
// Values of the chunks that have a point in the map.
interface Points { mode: Mode; chunks: Numbers; values: Float32Array; masked: Set<number> }
// places: two numbers a chunk, 0 to 65535; groups: one a chunk, 255 for none; picture: the points drawn; found: the chunks nearest to a text.
interface ChunkMap {
  of: string; places: Uint16Array; names: string[]; groups: Uint8Array; clusterNames: string[]; clusters: Uint8Array;
  colour: "value" | "documents" | "headings" | "clusters";
  points: Points | null; picture: HTMLCanvasElement | null; found: number[]; seen: number[];
}
interface View {
  value: StripValue; corpus: string; mode: Mode; lo: number; hi: number; cursor: number | null; hover: number | null; map: RunMap | null;
  chunkmap: ChunkMap | null; shown: Shown | null;
}
interface Surface { ctx: CanvasRenderingContext2D; width: number; height: number; ratio: number; left: number; right: number }
type Colours = Record<Ink, string> & {
  dark: boolean; seq: string[]; div: string[]; pin: (pin: Pin) => string; tinted: (scale: Pick<Scale, "ramp" | "tint">, value: number) => string;
};
interface Actions {
  show(lo: number, hi: number): void; glide(lo: number, hi: number): void; zoom(factor: number, around: number, glides?: boolean): void;
  point(chunk: number | null, event: MouseEvent): void; leave(): void; pointAtMap(map: RunMap, row: number, chunk: number, event: MouseEvent): void;
  move(next: (cursor: number) => number): void; open(chunk: number): void; look(look: number): void; mode(mode: Mode): void;
}
type Keys = Record<string, () => void>;

// What Gradio gives to a component's script.
type PartOf = <E extends HTMLElement = HTMLElement>(name: string) => E;
interface Props<V> { value: V }
type Trigger<D> = (name: string, data: D) => void;
type Watch = (name: string, listener: () => void) => void;

// What the strip asks of a server, app/components/strip.py. Numbers come packed; those of a page without a server are not.
type Packed<A> = string | A;
interface Questions {
  tiles: [request: [token: string, look: number, mode: Mode, lo: number, hi: number, width: number],
    answer: { first: number; last: number; low: Packed<Float32Array>; high: Packed<Float32Array>; best: Packed<Int32Array> }];
  runmap: [request: [token: string, look: number, width: number], answer: { n_rows: number; n_columns: number; cells: Packed<Float32Array> }];
  describe: [request: [token: string, chunk: number, look: number], answer: Facts];
  top: [request: [token: string, look: number, mode: Mode, offset: number], answer: Page];
}
interface MapQuestions extends Questions {
  points: [request: [token: string, look: number, mode: Mode], answer: { values: string; chunks: string }];
  piece: [request: [token: string, look: number, mode: Mode, ...borders: number[]], answer: { values: string; chunks: string }];
  chunkmap: [request: [token: string, action: "make" | "look" | "stop"], answer: { done: number; total: number } | MapEnd];
  nearest: [request: [token: string, text: string], answer: { chunks: number[]; texts: string[] }];
}
type MapEnd = { stopped: true } | { refused: string } | { places: string; names: string[]; groups: string; cluster_names: string[]; clusters: string };
type Refusal = { error: string };
type Reply<K extends keyof MapQuestions> = MapQuestions[K][1] | Refusal;
type MapServer = { [K in keyof MapQuestions]: (request: MapQuestions[K][0]) => Promise<Reply<K>> };
type Server = Pick<MapServer, keyof Questions> | MapServer; // an exported page has no map
type Ask = <K extends keyof MapQuestions>(channel: string, state: string, name: K, requests: MapQuestions[K][0][]) => Promise<MapQuestions[K][1][] | null>;

// A node of a tree, core/views/draw/nodes.py.
type TreeNode = string | number | null | [tag: string, attributes: Record<string, string | number | boolean | null>, children: TreeNode[]];
interface Click { act: string; arg: string }

// What core/runs/log puts into pages of its own. `rows`: of all numbers, one a look; `column`, `name`: of a comparison.
interface LoggedRun { value: StripValue; rows: number[]; rulers: Slope[][]; absolute: boolean; top_k: number | null; temperature: number; column?: number; name?: string }
interface ReadingValue { n_chunks: number; chosen: (Pin & { name?: string; kind?: string; said?: string })[]; gold: number[]; documents: Part[]; nobody?: string }
interface PageData { runs: LoggedRun[]; numbers: string; n_rows: number; texts: string; reading?: ReadingValue }
type Texts = Map<number, [heading: string, text: string]>;

// The pages' own elements are HTML, which a selector alone does not say.
interface ParentNode {
  querySelector<K extends keyof HTMLElementTagNameMap>(selectors: K): HTMLElementTagNameMap[K] | null;
  querySelector<E extends Element = HTMLElement>(selectors: string): E | null;
  querySelectorAll<E extends Element = HTMLElement>(selectors: string): NodeListOf<E>;
}
interface Element { closest<E extends Element = HTMLElement>(selectors: string): E | null }

// What Gradio writes into the page.
interface Window { gradio_config: { root: string; api_prefix: string; app_id: string } }
