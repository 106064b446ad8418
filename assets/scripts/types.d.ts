// What the scripts hand to one another. `StripValue` is what core/draw/strip.py makes, `Facts` what core/tiles.py says of a chunk.

type Mode = "q" | "dq" | "rank" | "p";
interface Columns { first: number; last: number; best: { length: number } }
type Placer = (chunk: number) => number;
type Numbers = ArrayLike<number>;
interface Pin { step: number; chunk_id: number; by: string; colour?: string }
interface Slope { lo: number; hi: number; rho_lo: number; rho_hi: number }
interface StripValue {
  token: string; n_chunks: number; n_looks: number; look: number; scale: { lo: number; hi: number }; threshold: number | null;
  chosen: Pin[]; gold: number[]; forbidden: number[]; searched: number[][]; documents: { title: string; first_chunk: number }[];
  intervals: Slope[]; stopped: boolean; modes: Mode[]; score_name: string; score_sentence: string; probability_name: string; zero: number;
  chunk_map: { of: string; least: number } | null;
}
interface Facts { chunk_id: number; text: string; title: string; heading: string; q: number | null; rank: number | null; p: number | null; rho: number | null; chosen_at: number | null }
interface Tile { first: number; last: number; low: Numbers; high: Numbers; best: Numbers }
interface Scale {
  unit: (value: number) => number; tint: (value: number) => number; base: number; ramp: "seq" | "div";
  ticks: { value: number; label: string }[]; ends: string[];
}
interface RunMap { n_rows: number; n_columns: number; cells: Float32Array; picture?: HTMLCanvasElement }
// places: two numbers a chunk, 0 to 65535; groups: one a chunk, 255 for none; points: values of the chunks that are drawn;
// picture: them drawn; found: the chunks nearest to a text.
interface ChunkMap {
  of: string; places: Uint16Array; names: string[]; groups: Uint8Array; colour: "value" | "documents" | "headings";
  points: { mode: Mode; chunks: Numbers; values: Float32Array; masked: Set<number> } | null; picture: HTMLCanvasElement | null; found: number[];
}
interface View {
  value: StripValue | null; corpus: string; mode: Mode; lo: number; hi: number; cursor: number | null; hover: number | null; map: RunMap | null;
  chunkmap: ChunkMap | null;
  shown: { mode: Mode; overview: Tile; lens: Tile; masked: Set<number>; scale: Scale } | null;
}
interface Surface { ctx: CanvasRenderingContext2D; width: number; height: number; ratio: number; left: number; right: number }
interface Colours {
  [name: string]: any; panel: string; line: string; ink: string; mut: string; acc: string; good: string; warn: string; q0: string;
  seq: string[]; div: string[]; pin: (pin: Pin) => string; tinted: (scale: Pick<Scale, "ramp" | "tint">, value: number) => string;
}
interface Actions {
  show(lo: number, hi: number): void; glide(lo: number, hi: number): void; zoom(factor: number, around: number, glides?: boolean): void;
  point(chunk: number | null, event?: MouseEvent): void; pointAtMap(row: number, chunk: number, event: MouseEvent): void;
  move(next: (cursor: number) => number): void; open(chunk: number): void; look(look: number): void; mode(mode: Mode): void;
}
type Part = <E extends HTMLElement = HTMLElement>(name: string) => E;
type Props = { value: any };
type Trigger = (name: string, data: any) => void;
type Watch = (name: string, listener: () => void) => void;
type Ask = (channel: string, state: string, questions: [string, any[]][]) => Promise<any[] | null>;
type Server = { [name: string]: (request: any[]) => Promise<any> };
// What core/log puts into pages of its own. `rows`: of all numbers, one a look; `column`, `name`: of a comparison.
interface LoggedRun { value: StripValue; rows: number[]; rulers: Slope[][]; absolute: boolean; top_k: number | null; temperature: number; column?: number; name?: string }
interface ReadingValue { n_chunks: number; chosen: (Pin & { name?: string; kind?: string; said?: string })[]; gold: number[]; documents: { title: string; first_chunk: number }[]; nobody?: string }
interface PageData { runs: LoggedRun[]; numbers: string; n_rows: number; texts: string; reading?: ReadingValue }

// The pages' own elements are HTML, which a selector alone does not say.
interface ParentNode {
  querySelector<K extends keyof HTMLElementTagNameMap>(selectors: K): HTMLElementTagNameMap[K] | null;
  querySelector<E extends Element = HTMLElement>(selectors: string): E | null;
  querySelectorAll<E extends Element = HTMLElement>(selectors: string): NodeListOf<E>;
}
interface Element { closest<E extends Element = HTMLElement>(selectors: string): E | null }
