"""What the scripts compute, in node or else in the shared Chromium, against the same rules in Python."""

from __future__ import annotations

import base64
import json
import math
import re
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

from core.corpus.tiles import Mode, best_chunks, column_starts, run_map, salience, tile
from core.methods.qrag.policy import probabilities
from core.views.draw.scripts import SCRIPTS, bundled, script
from core.views.draw.strip import strip_value

N, TEMPERATURE, TOP_K = 97, 0.3, 12
LOOKS = np.random.default_rng(1).normal(size=(3, N)).astype(np.float32)
LOOKS[:, 5:9] = LOOKS[:, 4:5]  # equal ones
LOOKS[:, 90:] = np.nan  # not searched
CHOSEN, FORBIDDEN = (40, 7), (3,)
RANGES = [(0, N, 20), (10.5, 20.25, 300), (3, 96, 31), (88, 97, 4)]

SPREADS = [([10, 11, 12, 50, 51, 90], 9, 0, 95), ([1, 2, 3], 60, 0, 100), ([50], 5, 0, 100)]

TICKS = [(0, 1, 4), (-0.37, 0.92, 4), (12, 4321, 7), (-1e-4, 3e-4, 3)]
WORDS = [
    (None, "–"), (0, "0"), (0.04, "0.040"), (-0.5, "−0.50"), (12345, "1.2e+4"), (1e-5, "1.0e-5"), (9999, "9999.00"),
]  # fmt: skip
FITTED = [((3, 4, 100), [0, 8]), ((-5, 20, 100), [0, 25]), ((90, 130, 100), [60, 100]), ((0, 9, 5), [0, 5])]
VALUE = strip_value(
    token="",
    n_chunks=N,
    n_looks=3,
    look=3,
    scale=(-0.5, 1.5),
    threshold=2.0,
    chosen=[{"step": i + 1, "chunk_id": chunk, "by": "agent"} for i, chunk in enumerate(CHOSEN)],
    forbidden=FORBIDDEN,
    documents=[{"title": "one", "first_chunk": 0}, {"title": "two", "first_chunk": 50}],
)
ROWS = range(1, 22)

RULER = [
    {"lo": 0, "hi": 40, "rho_lo": 0.0, "rho_hi": 9.0},
    {"lo": 40, "hi": N, "rho_lo": 10.0, "rho_hi": 19.0},
]


INPUT = {
    "run": {
        "value": VALUE,
        "temperature": TEMPERATURE,
        "top_k": TOP_K,
        "absolute": False,
        "rulers": [RULER] * 3,
    },
    "planes": base64.b64encode(LOOKS.view(np.uint8).reshape(-1, 4).T.tobytes()).decode(),
    "ranges": RANGES,
    "spreads": SPREADS,
    "ticks": TICKS,
    "words": [value for value, _ in WORDS],
    "fitted": [range_ for range_, _ in FITTED],
    "rows": list(ROWS),
}

PROGRAM = f"""(async () => {{
  const numbers = {bundled("strip_numbers.js")}, offline = {bundled("offline_numbers.js")};
  const marks = {bundled("strip_marks.js")};
  const given = {json.dumps(INPUT)};
  const looks = offline.looksOf(numbers.unpack(given.planes, Uint8Array).buffer, 3);
  const ask = offline.localServer(given.run, looks, new Map());
  const [tiles, tops, scales] = [{{}}, {{}}, {{}}];
  for (const mode of given.run.value.modes) {{
    for (const look of [1, 2, 3]) {{
      const asked = given.ranges.map(([lo, hi, width]) => ask.tiles(["", look, mode, lo, hi, width]));
      [tiles[mode + look], tops[mode + look]] = [await Promise.all(asked), await ask.top(["", look, mode, 20])];
    }}
    const scale = numbers.makeScale(mode, given.run.value, tiles[mode + 3][0]);
    scales[mode] = {{ ...scale, heights: scale.ticks.map((tick) => scale.unit(tick.value)), ends: [-2, 0, 1, 2, {N}].map(scale.unit) }};
  }}
  const [entries, starts] = [given.ranges.map(() => []), given.ranges.map(() => [])];
  tiles.q1.forEach((tile, i) => {{
    for (let chunk = tile.first; chunk < tile.last; chunk++) entries[i].push(numbers.entryOf(tile, chunk));
    for (let k = 0; k < tile.best.length; k++) starts[i].push(numbers.entryStart(tile, k));
  }});
  const answers = {{
    tiles, tops, scales, entries, starts, map: await ask.runmap(["", 1, 20]), facts: await ask.describe(["", 60, 3]),
    spreads: given.spreads.map((each) => numbers.spread(...each)), ticks: given.ticks.map((each) => numbers.ticks(...each)),
    words: given.words.map(numbers.shown), fitted: given.fitted.map((each) => numbers.fitted(...each)), ramp: numbers.ramp([[0, 0, 0], [255, 100, 0]]),
    rows: given.rows.map(marks.rowHeight),
    reading: offline.readingOf(52, given.run.value, new Map([48, 50, 52, 53].map((chunk) => [chunk, ["", `text ${{chunk}}`]]))),
  }};
  const plain = (_, each) => (ArrayBuffer.isView(each) ? [...each] : typeof each === "number" && !Number.isFinite(each) ? String(each) : each);
  return JSON.stringify(answers, plain);
}})()"""


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest) -> Any:
    if node := shutil.which("node"):
        program = f"{PROGRAM}.then((text) => process.stdout.write(text));"
        done = subprocess.run([node, "-"], input=program, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    page = request.getfixturevalue("browser").new_page()
    text = page.evaluate(PROGRAM)
    page.close()
    return json.loads(text)


def values_of(look: int, mode: Mode) -> np.ndarray:
    q = LOOKS[look - 1]
    available = ~np.isnan(q)
    available[[*CHOSEN[: look - 1], *FORBIDDEN]] = False
    values = np.full(N, np.nan, np.float32)
    if mode == "q":
        return q
    if mode == "dq":
        return q - LOOKS[look - 2] if look > 1 else values
    if mode == "rank":
        ids = np.flatnonzero(available)
        values[ids[np.argsort(-q[ids], kind="stable")]] = np.arange(1, len(ids) + 1)
    else:
        values[available] = probabilities(q, available, TEMPERATURE, TOP_K)[available]
    return values


@pytest.mark.parametrize("mode", ["q", "dq", "rank", "p"])
@pytest.mark.parametrize("look", [1, 2, 3])
def test_an_exported_page_computes_what_the_server_does(answers: Any, mode: Mode, look: int) -> None:
    values = values_of(look, mode)
    for (lo, hi, width), told in zip(RANGES, answers["tiles"][f"{mode}{look}"], strict=True):
        due = tile(values, lo, hi, width, salience=salience(values, mode))
        assert (told["first"], told["last"], told["best"]) == (due.first, due.last, due.best.tolist())
        for name, numbers in (("low", due.minima), ("high", due.maxima)):
            np.testing.assert_allclose([float(each) for each in told[name]], numbers, rtol=1e-6)
    top = answers["tops"][f"{mode}{look}"]
    assert [row["chunk_id"] for row in top["rows"]] == best_chunks(salience(values, mode), 20, 20).tolist()


def test_run_map_and_facts(answers: Any) -> None:
    cells = [float(each) for each in answers["map"]["cells"]]
    np.testing.assert_array_equal(np.reshape(cells, (3, 20)), run_map(list(LOOKS), 20))
    facts = answers["facts"]
    assert (facts["title"], facts["rank"], facts["chosen_at"]) == ("two", values_of(3, "rank")[60], None)
    assert facts["rho"] == pytest.approx(np.interp(60, [40, N - 1], [10, 19]))


def test_a_chunk_is_read_in_its_own_document_and_what_is_left_out_is_said(answers: Any) -> None:
    _, (_, _, spans) = answers["reading"]
    texts = [span if isinstance(span, str) else span[2][-1] for span in spans]
    assert "".join(texts) == "text 50  […] text 52 text 53  […] "


def test_an_entry_begins_where_a_column_does(answers: Any) -> None:
    for (lo, hi, width), starts, entries in zip(RANGES, answers["starts"], answers["entries"], strict=True):
        first, last = math.floor(lo), math.ceil(hi)
        due = first + column_starts(last - first, width)
        assert starts == due.tolist()
        assert entries == (np.searchsorted(due, np.arange(first, last), "right") - 1).tolist()


def test_pins_move_as_little_as_possible(answers: Any) -> None:
    from scipy.optimize import isotonic_regression  # takes a while: not for every worker that collects

    for (centres, gap, lo, hi), places in zip(SPREADS, answers["spreads"], strict=True):
        step = min(gap, (hi - lo) / max(1, len(centres) - 1))
        by = np.arange(len(centres)) * step
        free = isotonic_regression(np.array(centres) - by).x
        assert places == pytest.approx((np.clip(free, lo, hi - by[-1]) + by).tolist())


def test_ticks_are_round_and_within(answers: Any) -> None:
    for (lo, hi, count), ticks in zip(TICKS, answers["ticks"], strict=True):
        assert 2 <= len(ticks) <= count + 1
        assert lo <= ticks[0] <= ticks[-1] <= hi
        step = ticks[1] - ticks[0]
        assert np.diff(ticks) == pytest.approx(step)
        assert f"{step:.3e}"[:5] in ("1.000", "2.000", "5.000")


def test_a_scale_keeps_what_it_must_show_between_bottom_and_top(answers: Any) -> None:
    scales = answers["scales"]
    for mode, scale in scales.items():
        assert all(-0.01 <= height <= 1.01 for height in scale["heights"]), mode
    # Q: from the scale's end to the threshold above it, with 4 % of room; bars begin at zero.
    assert scales["q"]["ends"][2:4] == pytest.approx([1.5 / 2.6, 2.5 / 2.6])
    assert scales["q"]["base"] == pytest.approx(0.5 / 2.6)
    assert scales["dq"]["ends"][1] == scales["dq"]["base"] == 0.5
    assert scales["rank"]["ends"][2] == 1
    assert scales["rank"]["ends"][4] == pytest.approx(0)
    assert (scales["p"]["base"], scales["p"]["ends"][1]) == (0, 0)


def test_words_ranges_and_colours(answers: Any) -> None:
    assert answers["words"] == [words for _, words in WORDS]
    assert answers["fitted"] == [due for _, due in FITTED]
    ramp = answers["ramp"]
    assert (len(ramp), ramp[0], ramp[51]) == (256, "rgb(0,0,0)", "rgb(51,20,0)")


def test_a_run_map_of_many_steps_is_no_taller_than_one_of_eight(answers: Any) -> None:
    assert answers["rows"][:8] == [16] * 8
    assert all(n * height <= 128 for n, height in zip(ROWS, answers["rows"], strict=True))


def test_what_modules_import_is_exported() -> None:
    """A name that is not would be undefined in a page, without a word."""
    for path in SCRIPTS.glob("*.js"):
        for names, other in re.findall(r'^import \{ (.*) \} from "\./([\w.]+)";$', script(path.name), re.M):
            exported = re.findall(r"^export (?:async )?(?:const|function) (\w+)", script(other), re.M)
            assert set(names.split(", ")) <= set(exported), f"{path.name} from {other}"
