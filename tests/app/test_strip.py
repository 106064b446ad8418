"""The strip's server functions."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Locator, Page, Request, Route, expect

from app.components.strip import MAX_WIDTH, server_functions, strip, strip_loading
from core.corpus.tiles import ChunkFacts, Mode
from core.views.draw.strip import strip_value
from tests.app.served import served
from tests.conftest import OpenPage
from tests.settled import settle

ASSETS = Path(__file__).resolve().parents[2] / "assets"
GUTTER, EDGE = 48, 10
"""Pixels beside the plots, as in strip_surface.js."""
HOSTILE = (
    "<img src=x onerror='window.hooked=1'> ${window.hooked=2} {{window.hooked}} {{{value}}}"
    " `${window.hooked=3}` <script>window.hooked=4</script>"
)


class SyntheticRun:
    """A run over `n_chunks` chunks: noise, and at each look one peak, which is chosen."""

    def __init__(self, n_chunks: int, peaks: list[int]) -> None:
        rng = np.random.default_rng(n_chunks)
        self.n_chunks, self.n_looks, self.peaks = n_chunks, len(peaks), peaks
        self.q = rng.uniform(-0.05, 0.2, (len(peaks), n_chunks)).astype(np.float32)
        for look, peak in enumerate(peaks):
            self.q[look, peak] = 0.9

    def values(self, look: int, mode: Mode) -> np.ndarray:
        q = self.q[look - 1]
        free = np.where(np.isin(np.arange(self.n_chunks), self.peaks[: look - 1]), -np.inf, q)
        if mode == "dq":
            return q - self.q[look - 2] if look > 1 else np.full(self.n_chunks, np.nan)
        if mode == "rank":
            return np.where(np.isfinite(free), np.argsort(np.argsort(-free, kind="stable")) + 1.0, np.nan)
        return q if mode == "q" else np.exp(free / 0.03) / np.exp(free / 0.03).sum()

    def describe(self, chunk_id: int, look: int) -> ChunkFacts:
        chosen_at = self.peaks.index(chunk_id) + 1 if chunk_id in self.peaks else None
        q = float(self.q[look - 1, chunk_id])
        return ChunkFacts(
            text=f"{HOSTILE} {chunk_id}",
            title=HOSTILE,
            heading=HOSTILE,
            q=q,
            rank=1,
            p=0.5,
            rho=0.25,
            chosen_at=chosen_at,
        )


RUNS = {
    "small": SyntheticRun(100, [37, 80, 12]),
    "large": SyntheticRun(12_000, [9_000, 3_000, 11_990]),
    "growing": SyntheticRun(100, [37]),
    "long": SyntheticRun(100, list(range(90))),
}


def value_of(token: str, look: int) -> dict[str, Any]:
    run = RUNS[token]
    return strip_value(
        token=token,
        n_chunks=run.n_chunks,
        n_looks=run.n_looks,
        look=look,
        scale=(float(run.q.min()), float(run.q.max())),
        threshold=0.3,
        chosen=[{"step": i + 1, "chunk_id": peak, "by": "agent"} for i, peak in enumerate(run.peaks)],
        gold=run.peaks[:1],
        forbidden=[5],
        documents=[
            {"title": HOSTILE, "first_chunk": 0},
            {"title": "second", "first_chunk": run.n_chunks // 2},
        ],
        intervals=[{"lo": 0, "hi": run.n_chunks, "rho_lo": 0.0, "rho_hi": 9.75}],
    )


def chosen_in_growing(*chosen: int) -> dict[str, Any]:
    """The growing run with these choices; the numbers of a look depend on those before it."""
    run = RUNS["growing"] = SyntheticRun(100, list(chosen))
    for look in range(len(chosen)):
        run.q[look] = np.random.default_rng([*chosen[:look], 0]).uniform(0, 1, 100)
    return value_of("growing", len(chosen))


# ---- server functions

TILES, RUNMAP, POINTS, DESCRIBE, TOP = server_functions(RUNS.get)


def test_a_step_over_ten_million_tokens_brings_a_screen_of_numbers() -> None:
    """To a page of 1,440 pixels that is zoomed in, at the twentieth step: the overview, a lens with as much
    again beside it, and the new row of the run map, less than 100 KB.
    """
    run, width = SyntheticRun(160_000, list(range(5, 160_000, 8_000))), 1_340
    tiles, runmap, *_ = server_functions({"run": run}.get)
    answers = [
        tiles(["run", 20, "q", 0, run.n_chunks, width]),
        tiles(["run", 20, "q", 40_000, 120_000, 2 * width]),
        runmap(["run", 20, width]),
    ]
    assert all("error" not in answer for answer in answers)
    assert 50_000 < len(json.dumps(answers)) < 100_000


def unpacked(text: str, kind: str = "<f4") -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def assert_exact(request: list[Any], answer: dict[str, Any]) -> None:
    """Every entry of a tile against the chunks it covers, one by one."""
    token, look, mode, lo, hi, width = request
    values = RUNS[token].values(look, mode).astype(np.float32)
    first, last = math.floor(lo), math.ceil(hi)
    low, high, best = unpacked(answer["low"]), unpacked(answer["high"]), unpacked(answer["best"], "<i4")
    n = len(best)
    assert (answer["first"], answer["last"], n) == (first, last, min(width, last - first))
    for k in range(n):
        column = values[first + k * (last - first) // n : first + (k + 1) * (last - first) // n]
        np.testing.assert_array_equal([low[k], high[k]], [np.fmin.reduce(column), np.fmax.reduce(column)])
        telling = {"rank": -values, "dq": np.abs(values)}.get(mode, values)
        assert (
            best[k] == -1
            if np.isnan(column).all()
            else telling[best[k]] == np.fmax.reduce(telling[first + k * (last - first) // n :][: len(column)])
        )


@pytest.mark.parametrize("mode", ["q", "dq", "rank", "p"])
@pytest.mark.parametrize("look", [1, 3])
def test_tiles_are_exact(mode: str, look: int) -> None:
    for lo, hi, width in [(0, 100, 40), (10.5, 20.25, 300), (0, 100, 100)]:
        request = ["small", look, mode, lo, hi, width]
        assert_exact(request, TILES(request))


def test_run_map_has_a_row_a_look() -> None:
    for look in (1, 3):
        answer, n_rows = RUNMAP(["large", look, 60]), 4 - look
        assert (answer["n_rows"], answer["n_columns"]) == (n_rows, 60)
        np.testing.assert_array_equal(
            unpacked(answer["cells"]).reshape(n_rows, 60),
            RUNS["large"].q[look - 1 :].reshape(n_rows, 60, 200).max(2),
        )


def test_top_pages_go_down_the_ranking() -> None:
    pages = [TOP(["small", 1, "q", offset]) for offset in (0, 20, 90)]
    ids = [row["chunk_id"] for page in pages for row in page["rows"]]
    order = np.argsort(-RUNS["small"].q[0], kind="stable")
    assert ids == [*order[:40].tolist(), *order[90:].tolist()]
    assert pages[0]["total"] == 100


def test_describe_bounds_the_text() -> None:
    answer = DESCRIBE(["small", 37, 1])
    assert answer["chunk_id"] == 37
    assert answer["q"] == pytest.approx(0.9)
    assert len(answer["text"]) <= 400


@pytest.mark.parametrize(
    ("question", "request_"),
    [
        (TILES, ["small", 1, "q", 0, 100, MAX_WIDTH + 1]),
        (TILES, ["small", 1, "q", math.nan, 100, 10]),
        (TILES, ["small", 1, "q", -1, 100, 10]),
        (TILES, ["small", 1, "q", 50, 50, 10]),
        (TILES, ["small", 4, "q", 0, 100, 10]),
        (TILES, ["small", 1, "cosine", 0, 100, 10]),
        (TILES, ["nobody's", 1, "q", 0, 100, 10]),
        (TILES, [{"token": "small"}, 1, "q", 0, 100, 10]),
        (TILES, "small"),
        (RUNMAP, ["small", 1, 0]),
        (RUNMAP, ["small", 4, 10]),
        (DESCRIBE, ["small", 100, 1]),
        (TOP, ["small", 1, "q", 100]),
    ],
)
def test_bad_requests_are_answered_with_a_sentence(
    question: Callable[[Any], dict[str, Any]], request_: Any
) -> None:
    answer = question(request_)
    assert list(answer) == ["error"]
    assert answer["error"].endswith(".")


JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=8,
)


@given(JUNK)
def test_junk_never_raises(junk: Any) -> None:
    for question in (TILES, RUNMAP, POINTS, DESCRIBE, TOP):
        assert "error" in question(junk)


# ---- theme


def colours_of(block: str) -> dict[str, tuple[float, ...]]:
    """Channels, 0 to 1, of every hexadecimal colour in one rule of theme.css."""
    found = re.findall(r"--qx-([\w-]+): #([0-9a-f]{6})", block)
    return {name: tuple(int(code[i : i + 2], 16) / 255 for i in (0, 2, 4)) for name, code in found}


def luminance(colour: tuple[float, ...]) -> float:
    """Relative luminance of WCAG 2."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("rule", [":root {", ".dark {"])
def test_colours_are_readable(rule: str) -> None:
    css = (ASSETS / "theme.css").read_text(encoding="utf-8")
    colours = colours_of(css.partition(rule)[2].partition("}")[0])
    for name in ("ink", "mut", "acc", "good", "warn", *(f"s{i}" for i in range(1, 9))):
        assert contrast(colours[name], colours["panel"]) >= 4.5, name
    steps = [contrast(colours[f"seq-{i}"], colours["panel"]) for i in range(9)]
    assert steps == sorted(steps)
    assert steps[-1] >= 7


# ---- in the browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A page with a small run, one in a tab that is hidden at first, and strips with nothing to draw."""
    with gr.Blocks() as demo:
        said = gr.Textbox(elem_id="said")
        with gr.Tab("Small"):
            strips = {"small": strip(RUNS.get, value_of("small", 1), elem_id="small")}
        with gr.Tab("Large"):
            strips["large"] = strip(RUNS.get, value_of("large", 1), elem_id="large")
        with gr.Tab("Others"):
            strip(RUNS.get, elem_id="empty")
            strip(RUNS.get, strip_loading(HOSTILE), elem_id="loading")
            strip(RUNS.get, {**value_of("small", 1), "token": "gone"}, elem_id="gone")
            strip(RUNS.get, value_of("long", 90), elem_id="long")
        with gr.Tab("Growing"):
            growing = strip(RUNS.get, chosen_in_growing(37), elem_id="growing")
            for chosen in ((37, 80), (37, 80, 12), (37, 60), (37, 60, 90)):
                choose = partial(chosen_in_growing, *chosen)
                gr.Button(f"Choose {chosen}").click(choose, outputs=growing)
            other = {**value_of("large", 1), "chosen": []}
            gr.Button("Another document").click(lambda: other, outputs=growing)
        for token, shown in strips.items():

            def on_select(event: gr.EventData) -> str:
                return json.dumps(event._data)

            def on_look(event: gr.EventData, token: str = token) -> dict[str, Any]:
                return value_of(token, event._data["look"])

            shown.select(on_select, outputs=said)
            shown.look(on_look, outputs=shown)
    with served(demo, css_paths=[ASSETS / f"{name}.css" for name in ("theme", "app", "strip")]) as url:
        yield url


class Shown:
    """One strip on an open page."""

    def __init__(self, page: Page, name: str) -> None:
        self.page, self.name, self.box = page, name.capitalize(), page.locator(f"#{name} .qx-strip")
        self.requests: list[dict[str, Any]] = []
        page.on("request", self.note)
        self.drawn()

    def note(self, request: Request) -> None:
        if "component_server" in request.url:
            self.requests.append(request.post_data_json)

    def part(self, name: str) -> Locator:
        return self.box.locator(f'[data-part="{name}"]')

    def settled(self) -> None:
        settle(self.page)  # glides, and pauses between two requests
        self.drawn()

    def drawn(self) -> None:
        """As last asked for; an older request may still be on its way."""
        expect(self.box).to_have_attribute("aria-busy", "false")

    def at(self, canvas: str, fraction: float, y: float = 100) -> dict[str, float]:
        """A place in a canvas: `fraction` of the way along its plot."""
        box = self.part(canvas).bounding_box()
        return {"x": GUTTER + fraction * (box["width"] - GUTTER - EDGE), "y": y}

    def press(self, *keys: str) -> None:
        for key in keys:
            self.part("lens").press(key)

    def back_to_start(self) -> None:
        """All chunks, Q, look 1, no table, and nobody listening."""
        self.page.get_by_role("tab", name=self.name).click()
        if self.part("table-panel").is_visible():
            self.part("table-toggle").click()
        self.part("modes").get_by_role("button").first.click()
        self.part("looks").get_by_role("button").first.click()
        expect(self.part("what")).to_contain_text("step 1")
        self.press("0")
        self.drawn()
        self.page.remove_listener("request", self.note)

    def last_range(self) -> list[float]:
        """[lo, hi] of the last tile that the lens asked for."""
        return [request["data"] for request in self.requests if request["fn_name"] == "tiles"][-1][3:5]


@pytest.fixture(scope="module")
def page(open_for_file: OpenPage, address: str) -> Page:
    """One page for most tests: loading it takes longer than all they do on it."""
    return open_for_file(address)


@pytest.fixture
def small(page: Page) -> Iterator[Shown]:
    yield from opened(page, "Small")


@pytest.fixture
def large(page: Page) -> Iterator[Shown]:
    yield from opened(page, "Large")


def opened(page: Page, tab: str) -> Iterator[Shown]:
    """The strip of a tab, as it is when the page is new; put back afterwards."""
    page.get_by_role("tab", name=tab).click()
    strip = Shown(page, tab.lower())
    strip.press("Home")
    yield strip
    page.mouse.move(0, 0)
    strip.back_to_start()


def said(page: Page) -> Locator:
    return page.locator("#said textarea")


def test_a_click_selects_the_chunk_the_pin_or_the_step_under_it(small: Shown) -> None:
    for chunk_id in (0, 37, 62, 99):
        small.part("lens").click(position=small.at("lens", (chunk_id + 0.5) / 100))
        expect(said(small.page)).to_have_value(json.dumps({"chunk_id": chunk_id}))
    small.part("lens").click(position=small.at("lens", 0.805, y=12))
    expect(said(small.page)).to_have_value('{"chunk_id": 80}')
    small.part("map").click(position=small.at("map", 0.5, y=45))
    expect(small.part("what")).to_contain_text("step 3")


def test_keyboard_moves_opens_and_changes_looks(small: Shown) -> None:
    readout = small.part("readout")
    for keys, chunk_id in [
        (["Home"], 0),
        (["ArrowRight", "ArrowRight"], 2),
        (["Shift+ArrowRight"], 12),
        (["End"], 99),
        (["ArrowLeft"], 98),
    ]:
        small.press(*keys)
        expect(readout).to_contain_text(f"chunk {chunk_id},")
    small.press("Enter")
    expect(said(small.page)).to_have_value('{"chunk_id": 98}')
    small.press("]")
    expect(small.part("what")).to_contain_text("step 2")
    expect(readout).to_have_text("chunk 80, Q 0.90, rank 1 of those left, chosen at step 2")
    small.press("[")
    expect(small.part("what")).to_contain_text("step 1")
    expect(readout).to_have_text("chunk 37, Q 0.90, rank 1, chosen at step 1, support")
    expect(small.part("looks").get_by_role("button", name="Step 1")).to_have_attribute("aria-pressed", "true")


def test_a_number_with_its_sign_has_room_beside_the_plot(small: Shown) -> None:
    width = small.part("lens").evaluate("lens => lens.getContext('2d').measureText('+0.010').width")
    assert 20 < width < GUTTER - 6


@pytest.mark.campaign
def test_the_plain_wheel_is_left_to_the_page(small: Shown) -> None:
    small.part("lens").hover(position=small.at("lens", 0.5))
    before = len(small.requests)
    small.page.mouse.wheel(0, 300)
    small.part("modes").get_by_role("button", name="Show rank").click()
    small.settled()
    assert [request["data"][3:5] for request in small.requests[before:] if request["fn_name"] == "tiles"] == [
        [0, 100]
    ]


def test_brush_zooms_and_a_new_value_keeps_it(large: Shown) -> None:
    large.part("overview").hover(position=large.at("overview", 0.25, y=20))
    large.page.mouse.down()
    box = large.part("overview").bounding_box()
    large.page.mouse.move(box["x"] + large.at("overview", 0.5)["x"], box["y"] + 20, steps=4)
    large.page.mouse.up()
    large.settled()
    lo, hi = large.last_range()
    assert (lo, hi) == (
        pytest.approx(1_500, abs=30),
        pytest.approx(7_500, abs=30),
    )  # a quarter to a half, and half of that on either side
    large.part("looks").get_by_role("button", name="Step 2").click()
    expect(large.part("what")).to_contain_text("step 2")
    large.settled()
    assert [request["data"] for request in large.requests if request["fn_name"] == "tiles"][-1][1] == 2
    assert large.last_range() == [lo, hi]
    large.part("lens").dblclick(position=large.at("lens", 0.5))
    with large.page.expect_request(
        lambda request: (
            "component_server" in request.url and request.post_data_json["data"][3:5] == [0, 12_000]
        )
    ):
        large.part("modes").get_by_role("button", name="Show rank").click()


@pytest.mark.campaign
def test_a_step_brings_the_new_row_of_the_run_map_alone(page: Page) -> None:
    page.get_by_role("tab", name="Growing").click()
    shown = Shown(page, "growing")
    steps: list[tuple[tuple[int, ...], list[int]]] = [
        ((37, 80), [2]),
        ((37, 80, 12), [3]),
        ((37, 60), []),  # taken back, and chosen otherwise
        ((37, 60, 90), [3]),
    ]
    for chosen, due in steps:
        before = len(shown.requests)
        page.get_by_role("button", name=f"Choose {chosen}", exact=True).click()
        expect(shown.part("readout")).to_contain_text(f"chunk {chosen[-1]},")
        shown.settled()
        asked = [one["data"][1] for one in shown.requests[before:] if one["fn_name"] == "runmap"]
        assert asked == due
        for row, q in enumerate(RUNS["growing"].q):
            shown.part("map").hover(position=shown.at("map", 0.505, y=16 * row + 8))
            expect(shown.part("tip")).to_contain_text(f"chunk 50, Q {q[50]:.2f}")


@pytest.mark.campaign
def test_overtaken_replies_are_dropped(small: Shown) -> None:
    held: list[Route] = []

    def is_rank(request: Request) -> bool:
        return request.post_data_json["data"][2:3] == ["rank"]

    def hold_rank(route: Route) -> None:
        if is_rank(route.request):
            held.append(route)
        else:
            route.continue_()

    small.press("]")  # a look whose numbers the browser does not have yet
    expect(small.part("what")).to_contain_text("step 2")
    small.page.route(re.compile("component_server"), hold_rank)
    small.part("modes").get_by_role("button", name="Show rank").click()
    small.part("modes").get_by_role("button", name="Show probability").click()
    small.drawn()
    expect(small.part("legend-lo")).to_have_text("0")
    with small.page.expect_response(
        lambda response: "component_server" in response.url and is_rank(response.request)
    ):
        held.pop().continue_()
    settle(small.page)  # it would be drawn by then
    expect(small.part("legend-lo")).to_have_text("0")
    small.page.unroute_all()


def test_hostile_text_stays_text(small: Shown) -> None:
    small.settled()  # a glide takes the tip away
    small.part("lens").hover(position=small.at("lens", 0.625))
    expect(small.part("tip")).to_contain_text(HOSTILE)
    small.part("table-toggle").click()
    expect(small.part("table-rows").locator("bdi").first).to_have_text(f"{HOSTILE} 37")
    small.page.get_by_role("tab", name="Others").click()
    expect(small.page.locator("#loading")).to_contain_text(HOSTILE)
    assert small.page.evaluate("window.hooked") is None
    assert small.page.locator(".qx-strip img, .qx-strip script").count() == 0


@pytest.mark.campaign
def test_table_pages_and_opens_chunks(small: Shown) -> None:
    small.part("table-toggle").click()
    rows = small.part("table-rows").locator("tr")
    expect(rows).to_have_count(20)
    expect(rows.first).to_contain_text("37")
    small.box.get_by_role("button", name="Next").click()
    expect(small.part("table-range")).to_have_text("21 – 40 of 100")
    chunk_id = int(np.argsort(-RUNS["small"].q[0], kind="stable")[20])
    rows.first.get_by_role("button").click()
    expect(said(small.page)).to_have_value(json.dumps({"chunk_id": chunk_id}))


def test_states_without_numbers(page: Page) -> None:
    page.get_by_role("tab", name="Others").click()
    expect(page.locator("#empty")).to_contain_text("Here you will see what every chunk is worth")
    expect(page.locator("#empty canvas").first).to_be_hidden()
    expect(page.locator("#gone [data-part=note]")).to_have_text(
        "This run is no longer here; run the agent again."
    )
    expect(page.locator("#gone .qx-strip")).to_have_attribute("aria-busy", "false")


def test_the_look_that_is_shown_is_in_sight_however_many_there_are(page: Page) -> None:
    page.get_by_role("tab", name="Others").click()
    page.locator("#long [data-part=title]").scroll_into_view_if_needed()
    expect(page.locator("#long [data-part=looks] [aria-pressed=true]")).to_have_text("90")
    expect(page.locator("#long [data-part=looks] [aria-pressed=true]")).to_be_in_viewport(ratio=0.9)


def test_of_the_document_before_no_chunk_is_told(page: Page) -> None:
    page.get_by_role("tab", name="Growing").click()
    shown = Shown(page, "growing")
    page.get_by_role("button", name="Choose (37, 80)", exact=True).click()
    expect(shown.part("readout")).to_contain_text("chunk 80,")
    page.get_by_role("button", name="Another document").click()
    expect(shown.part("readout")).to_be_empty()


def pixel(canvas: Locator, x: int, y: int) -> list[int]:
    found: list[int] = canvas.evaluate(
        "(canvas, [x, y]) => [...canvas.getContext('2d').getImageData(x, y, 1, 1).data]", [x, y]
    )
    return found


@pytest.mark.campaign
def test_dark_theme_repaints(small: Shown) -> None:
    small.press("+", "+")  # the overview outside the lens is covered with the panel's colour
    small.settled()
    light = pixel(small.part("overview"), GUTTER + 5, 5)
    small.page.evaluate("document.body.classList.toggle('dark')")
    small.page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    dark = pixel(small.part("overview"), GUTTER + 5, 5)
    small.page.evaluate("document.body.classList.toggle('dark')")
    assert sum(light[:3]) > 600
    assert sum(dark[:3]) < 200
