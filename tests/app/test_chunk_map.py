"""The map beside the strip: making it over a real library."""

from __future__ import annotations

import base64
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, Position, expect

from app.components import strip
from app.components.strip import server_functions
from app.pages.explore import chunk_map
from app.pages.explore.chunk_map import NEAREST, ChunkMaps
from app.pages.explore.strip_source import RunStrip
from app.services import visitors
from app.services.explorer import Explorer
from app.services.shared import Services
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.home import cache_folder
from tests.app.axe import grave_faults_in_both
from tests.app.conftest import RunningApp, upload, wait_ready
from tests.app.explore_page import chosen, excerpt, open_pasted, paste, run, set_number
from tests.app.opened import NAMES, PLACES, ask, pasted
from tests.conftest import CAMPAIGN, OpenPage
from tests.settled import settle

# ---- on the server


@pytest.fixture
def services(services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Services:
    """With caches that nobody else fills."""
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    return services


def run_over(services: Services, n_chunks: int, owner: str | None = None) -> str:
    """Token of a run over a document under headings of its own."""
    explorer = Explorer(services)
    rng = np.random.default_rng(n_chunks)
    told = [
        [f"{rng.choice(NAMES)} travelled to the {rng.choice(PLACES)} ." for _ in range(4)]
        for _ in range(n_chunks)
    ]
    lines = [f"# Part {i % 3}\n\nday {i} : {' '.join(facts)}" for i, facts in enumerate(told)]
    session = pasted(services, "\n\n".join(lines), 60, chunker="structure", owner=owner)
    assert len(explorer.documents(session).corpus) == n_chunks
    return ask(explorer, session, "where is mary ?", EpisodeConfig(step_budget=2))[0].run


def answered(maps: ChunkMaps, token: str, action: str = "make") -> dict[str, Any]:
    until = time.monotonic() + 60
    answer = maps.chunkmap([token, action])
    while "total" in answer and time.monotonic() < until:
        answer = maps.chunkmap([token, "look"])
    return answer


def unpacked(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def test_a_map_has_a_place_and_a_group_for_each_chunk_and_is_kept(services: Services) -> None:
    token = run_over(services, 60)
    maps = ChunkMaps(services.library)
    made = answered(maps, token)
    assert len(np.unique(unpacked(made["places"], "<u2").reshape(60, 2), axis=0)) == 60
    assert made["names"] == ["Part 0", "Part 1", "Part 2"]
    np.testing.assert_array_equal(unpacked(made["groups"], "u1"), np.arange(60) % 3)
    one, other = made["cluster_names"]
    assert one != other, "what all have names none"
    assert set(unpacked(made["clusters"], "u1").tolist()) == {0, 1}
    assert maps.chunkmap([token, "make"]) is made
    (kept,) = cache_folder("layouts").iterdir()
    before = kept.stat().st_mtime_ns
    assert answered(ChunkMaps(services.library), token) == made
    assert kept.stat().st_mtime_ns == before


def test_nothing_is_made_before_somebody_asks(services: Services) -> None:
    token = run_over(services, 60)
    assert ChunkMaps(services.library).chunkmap([token, "look"]) == {"stopped": True}
    assert not cache_folder("layouts").exists()


@pytest.mark.campaign
def test_cancel_ends_the_making_and_it_can_be_begun_again(services: Services) -> None:
    token = run_over(services, 1_200)
    maps = ChunkMaps(services.library)
    answer = maps.chunkmap([token, "make"])
    while answer["done"] == 0:
        answer = maps.chunkmap([token, "look"])
    assert 0 < answer["done"] < answer["total"]
    assert answered(maps, token, "stop") == {"stopped": True}
    assert not list(cache_folder("layouts").glob("*"))
    assert maps.chunkmap([token, "make"])["done"] == 0
    answered(maps, token, "stop")


def test_what_can_t_have_a_map_is_said(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = ChunkMaps(services.library)
    few = run_over(services, 49)
    for _ in range(2):
        words = answered(maps, few)["refused"]
        assert words.startswith("A map is made of 50 to 200,000 chunks, and these are 49; open another")
    with pytest.raises(BadRequest, match="This run is no longer here"):
        maps.chunkmap(["nobody's", "make"])
    for junk in (None, [], ["a"], [["a"], "make"], ["a", "make", 1]):
        with pytest.raises(BadRequest):
            maps.chunkmap(junk)
    in_view = services.library.runs.get(few)
    services.library.corpora.put(in_view.documents.token, replace(in_view.documents, searched=((0, 20),)))
    with pytest.raises(BadRequest, match="once all of the document is embedded"):
        maps.chunkmap([few, "make"])
    monkeypatch.setattr(chunk_map, "MOST_WAITING", 0)
    with pytest.raises(BadRequest, match="0 maps are being made"):
        maps.chunkmap([run_over(services, 50), "make"])


@pytest.mark.campaign
def test_maps_take_of_a_visitor_s_time_of_a_day(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = run_over(services, 60, "a" * 32), run_over(services, 61)
    monkeypatch.setattr(visitors, "READING_SECONDS_PER_DAY", 1e-6)
    words = answered(ChunkMaps(services.library), theirs)["refused"]
    assert words.startswith("Reading your files and making maps of them took the")
    assert "places" in answered(ChunkMaps(services.library), ours)


def test_the_nearest_to_a_text_are_those_of_most_q_to_it(services: Services) -> None:
    token = run_over(services, 60)
    maps, run = ChunkMaps(services.library), services.library.runs.get(token)
    near = maps.nearest([token, " where is mary ? "])["chunks"]
    assert near == np.argsort(-run.q_values(1), kind="stable")[:NEAREST].tolist()
    assert near != maps.nearest([token, "the kitchen"])["chunks"]
    for text, words in (
        ("  ", "The question is empty; type one."),
        ("a" * 100_000, "The question has 100,000"),
        (7, "must be a text"),
    ):
        with pytest.raises(BadRequest, match=words):
            maps.nearest([token, text])
    with pytest.raises(BadRequest, match="no longer here"):
        maps.nearest(["nobody's", "mary"])


@pytest.mark.campaign
def test_maps_are_made_one_at_a_time_in_the_part_of_their_visitor(services: Services) -> None:
    tokens = [run_over(services, 900 + i, owner) for i, owner in enumerate(("a" * 64, "b" * 64))]
    maps = ChunkMaps(services.library)
    first = maps.chunkmap([tokens[0], "make"])
    while "total" in first and not first["done"]:
        first = maps.chunkmap([tokens[0], "look"])
    n_waits = 0
    second = maps.chunkmap([tokens[1], "make"])
    while "total" in (first := maps.chunkmap([tokens[0], "look"])):
        assert second["done"] == 0
        second, n_waits = maps.chunkmap([tokens[1], "look"]), n_waits + 1
    assert n_waits
    assert "places" in first
    assert "places" in answered(maps, tokens[1], "look")
    for owner in ("a" * 64, "b" * 64):
        assert len(list(cache_folder("layouts", owner).iterdir())) == 1


def test_points_are_the_values_of_all_chunks_or_of_the_most_telling_ones(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = services.library.runs.get(run_over(services, 60))
    points = server_functions({run.token: RunStrip(run)}.get)[2]
    assert points.__name__ == "points"
    answer = points([run.token, 2, "q"])
    assert answer["chunks"] == ""
    np.testing.assert_array_equal(unpacked(answer["values"], "<f4"), run.q_values(2))
    monkeypatch.setattr(strip, "MAX_POINTS", 40)
    answer = points([run.token, 1, "q"])
    chunks, values = unpacked(answer["chunks"], "<i4"), unpacked(answer["values"], "<f4")
    assert len(chunks) == 40
    np.testing.assert_array_equal(values, run.q_values(1)[chunks])
    assert int(np.argmax(run.q_values(1))) in chunks
    assert "error" in points([run.token, 9, "q"])


@pytest.mark.campaign
def test_an_enlarged_piece_shows_its_own_points(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_map, "MAX_POINTS", 40)
    token = run_over(services, 60)
    run, maps = services.library.runs.get(token), ChunkMaps(services.library)
    with pytest.raises(BadRequest, match="no map of this document yet"):
        maps.piece([token, 1, "q", 0, 0, 9, 9])
    x, y = unpacked(answered(maps, token)["places"], "<u2").reshape(-1, 2).T.astype(int)

    def piece(*borders: int) -> tuple[np.ndarray, np.ndarray]:
        got = maps.piece([token, 1, "q", *borders])
        return unpacked(got["chunks"], "<i4"), unpacked(got["values"], "<f4")

    chunks, values = piece(0, 0, 30_000, 65_535)
    inside = np.flatnonzero(x <= 30_000)
    assert 0 < len(inside) < 40
    np.testing.assert_array_equal(np.sort(chunks), inside)
    np.testing.assert_array_equal(values, run.q_values(1)[chunks])
    best = np.argsort(-run.q_values(1), kind="stable")[:40]
    np.testing.assert_array_equal(piece(0, 0, 65_535, 65_535)[0], best)
    least = int(np.argmin(run.q_values(1)))
    place = int(x[least]), int(y[least])
    assert least in piece(*place, *place)[0]
    for junk in ([0, 0, 9], [0, 0, 9, 65_536], [0, 0, 9, "9"], [-1, 0, 9, 9], [0.5, 0, 9, 9]):
        with pytest.raises(BadRequest):
            maps.piece([token, 1, "q", *junk])
    with pytest.raises(BadRequest):
        maps.piece(["nobody's", 1, "q", 0, 0, 9, 9])


# ---- in the browser


@pytest.fixture(scope="module")
def page(tiny_app: RunningApp, open_for_file: OpenPage) -> Page:
    page = open_for_file(tiny_app.url, width=1440)
    wait_ready(page)
    open_pasted(page, excerpt(20_000))
    page.locator("#qx-question textarea").fill("Where was the blanket before the chapel?")
    set_number(page, "#qx-budget", 3)
    page.keyboard.press("Escape")
    run(page, n_steps=3)
    expect(part(page, "chunkmap")).to_be_hidden()
    part(page, "chunkmap-toggle").click()
    expect(part(page, "chunkmap-canvas")).to_be_visible(timeout=60_000)
    settle(page)
    return page


def part(page: Page, name: str) -> Locator:
    return page.locator(f'#qx-strip [data-part="{name}"]')


def n_of(canvas: Locator, colour: str) -> int:
    """Pixels of a colour of the theme, or near it."""
    count: int = canvas.evaluate(
        """(canvas, name) => {
          const probe = document.createElement("span");
          probe.style.color = `var(--qx-${name})`;
          canvas.parentElement.append(probe);
          const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
          probe.remove();
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let n = 0;
          for (let i = 0; i < data.length; i += 4) n += data[i + 3] > 200 && [0, 1, 2].every((c) => Math.abs(data[i + c] - wanted[c]) < 3);
          return n;
        }""",
        colour,
    )
    return count


def point_near(canvas: Locator, x: float, y: float) -> Position:
    """Of what is drawn, the place nearest to these fractions: where the chunks lie depends on the machine."""
    place: Position = canvas.evaluate(
        """(canvas, [x, y]) => {
          const { width, height } = canvas;
          const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
          const wanted = [x * width, y * height];
          let [nearest, least] = [[0, 0], Infinity];
          for (let i = 3; i < data.length; i += 4) {
            const at = [((i - 3) / 4) % width, Math.floor((i - 3) / 4 / width)];
            const distance = data[i] > 200 ? Math.hypot(at[0] - wanted[0], at[1] - wanted[1]) : Infinity;
            if (distance < least) [nearest, least] = [at, distance];
          }
          return { x: nearest[0] / devicePixelRatio, y: nearest[1] / devicePixelRatio };
        }""",
        [x, y],
    )
    return place


def drawn(canvas: Locator) -> str:
    picture: str = canvas.evaluate("canvas => canvas.toDataURL()")
    return picture


def chunk_said(page: Page) -> int:
    found = re.match(r"chunk ([\d,]+)", part(page, "readout").inner_text())
    assert found
    return int(found[1].replace(",", ""))


def test_the_map_stands_beside_the_line_and_below_it_where_that_is_narrow(page: Page) -> None:
    line, beside = part(page, "plot").bounding_box(), part(page, "chunkmap").bounding_box()
    assert beside["width"] == pytest.approx(340, abs=1)
    assert beside["x"] >= line["x"] + line["width"]
    for width in (1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        settle(page)
        line, below = part(page, "plot").bounding_box(), part(page, "chunkmap").bounding_box()
        assert below["y"] >= line["y"] + line["height"]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert n_of(part(page, "chunkmap-canvas"), "s1") > 50
    page.set_viewport_size({"width": 1440, "height": 900})
    settle(page)


def test_points_have_the_values_of_the_step_and_the_path_grows_with_it(page: Page) -> None:
    canvas = part(page, "chunkmap-canvas")
    pictures, heads = [], []
    for step in (1, 2, 3):
        part(page, "looks").get_by_role("button", name=f"Step {step}").click()
        expect(part(page, "what")).to_contain_text(f"step {step}")
        settle(page)
        pictures.append(drawn(canvas))
        heads.append([n_of(canvas, f"s{pin}") for pin in (1, 2, 3)])
    assert len(set(pictures)) == 3
    filled = [[n > 60 for n in row] for row in heads]  # a step to come is hollow
    assert [row[2] for row in filled][-1]
    assert heads[0][2] < heads[2][2]
    assert heads[0][1] < heads[1][1]
    part(page, "modes").get_by_role("button", name="Show rank").click()
    settle(page)
    assert drawn(canvas) not in pictures
    part(page, "modes").get_by_role("button", name="Show Q").click()
    settle(page)
    assert drawn(canvas) == pictures[-1]


def test_what_is_pointed_at_in_either_shows_in_both(page: Page) -> None:
    canvas, lens = part(page, "chunkmap-canvas"), part(page, "lens")
    page.mouse.move(0, 0)
    settle(page)
    at_rest = drawn(canvas), drawn(lens)
    canvas.hover(position=point_near(canvas, 0.5, 0.5))
    expect(part(page, "tip")).to_be_visible()
    settle(page)
    assert drawn(canvas) != at_rest[0]
    assert drawn(lens) != at_rest[1]
    page.mouse.move(0, 0)
    settle(page)
    assert (drawn(canvas), drawn(lens)) == at_rest
    lens.hover(position={"x": 300, "y": 100})
    expect(part(page, "tip")).to_be_visible()
    settle(page)
    assert drawn(canvas) != at_rest[0]
    page.mouse.move(0, 0)


def test_a_click_opens_the_chunk(page: Page) -> None:
    canvas = part(page, "chunkmap-canvas")
    canvas.hover(position=point_near(canvas, 0.6, 0.45))
    expect(part(page, "tip")).to_be_visible()
    settle(page)
    pointed = re.match(r"chunk ([\d,]+)", part(page, "tip").inner_text())
    assert pointed
    page.mouse.down()
    page.mouse.up()
    expect(page.locator("#qx-reading .qx-marked")).to_be_visible()
    expect(part(page, "readout")).to_contain_text(pointed[0])
    expect(page.locator("#qx-reading .qx-marked")).to_have_attribute("data-arg", pointed[1].replace(",", ""))
    page.mouse.move(0, 0)


def test_the_map_is_reached_and_walked_by_keyboard(page: Page) -> None:
    toggle, canvas = part(page, "chunkmap-toggle"), part(page, "chunkmap-canvas")
    toggle.focus()
    page.keyboard.press("Enter")
    expect(part(page, "chunkmap")).to_be_hidden()
    expect(toggle).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Enter")
    expect(canvas).to_be_visible()
    canvas.focus()
    page.keyboard.press("Home")
    expect(part(page, "readout")).to_contain_text("chunk 0,")
    seen = {0}
    for key in ("ArrowRight", "ArrowRight", "ArrowUp", "ArrowLeft", "ArrowDown"):
        page.keyboard.press(key)
        settle(page)
        seen.add(chunk_said(page))
    assert len(seen) > 3
    chunk = chunk_said(page)
    page.keyboard.press("Enter")
    expect(page.locator("#qx-reading .qx-marked")).to_have_attribute("data-arg", str(chunk))
    for _ in range(5 if CAMPAIGN else 1):  # a key may come before the event of the last one is over
        page.keyboard.press("[")
        expect(part(page, "what")).to_contain_text("step 2")
        page.keyboard.press("]")
        expect(part(page, "what")).to_contain_text("step 3")
    first = f"{chosen(page)[0]:,}"
    expect(canvas).to_have_attribute("aria-label", re.compile(rf"^Map of \d+ chunks.*step 1 chunk {first}"))


def test_the_map_is_enlarged_moved_and_shown_whole_again(page: Page) -> None:
    canvas, whole = part(page, "chunkmap-canvas"), part(page, "chunkmap-all")
    page.mouse.move(0, 0)
    settle(page)
    at_rest, opened = drawn(canvas), page.locator("#qx-reading .qx-marked").get_attribute("data-arg")
    box = canvas.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def shown() -> str:
        """Without what the pointer is on."""
        page.mouse.move(0, 0)
        settle(page)
        return drawn(canvas)

    page.mouse.move(x, y)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    larger = shown()
    assert larger != at_rest
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 90, y + 40, steps=5)
    page.mouse.up()
    moved = shown()
    assert moved not in (at_rest, larger)
    assert page.locator("#qx-reading .qx-marked").get_attribute("data-arg") == opened, "a drag opens nothing"
    for name, by, is_first in (("pointerdown", 0, True), ("pointermove", 90, False), ("pointerup", 0, True)):
        of = {"clientX": x + by, "clientY": y, "button": 0, "pointerId": 1, "isPrimary": is_first}
        canvas.dispatch_event(name, of)
    assert shown() == moved, "a second finger does not throw it about"
    whole.click()
    assert shown() == at_rest
    part(page, "chunkmap-in").click()
    part(page, "chunkmap-out").click()
    assert shown() == at_rest

    canvas.focus()
    for _ in range(4):
        page.keyboard.press("+")
    page.keyboard.press("Home")
    settle(page)
    assert n_of(canvas, "acc") > 20, "the cursor is brought into view"
    page.keyboard.press("0")
    settle(page)
    assert n_of(canvas, "acc") > 20


def test_a_text_finds_its_nearest_chunks(page: Page) -> None:
    canvas, text = part(page, "chunkmap-canvas"), part(page, "chunkmap-text")
    settle(page)
    n_before = n_of(canvas, "acc")
    text.fill("Ruth headed to the chapel.")
    text.press("Enter")
    expect(part(page, "chunkmap-found")).to_have_text("The 10 nearest, ringed in the map:")
    nearest = part(page, "chunkmap-list").get_by_role("button")
    expect(nearest).to_have_count(10)
    first = (nearest.first.get_attribute("title") or "").split()[-1]
    expect(part(page, "readout")).to_contain_text(f"chunk {first},")
    settle(page)
    n_ringed = n_of(canvas, "acc")
    assert n_ringed > n_before + 50
    text.fill("")
    text.press("Enter")
    expect(part(page, "chunkmap-found")).to_be_empty()
    settle(page)
    assert n_of(canvas, "acc") < n_ringed - 50


@pytest.mark.campaign
def test_headings_have_colours_and_a_short_document_has_no_map(page: Page, tmp_path: Path) -> None:
    parts = [f"# {'Sea' if i < 30 else 'Land'}\n\n## Day {i}\n\nIt rained on day {i}." for i in range(60)]
    file = tmp_path / "days.md"
    file.write_text("\n\n".join(parts), encoding="utf-8")
    upload(page, file)
    expect(page.locator("#qx-header")).to_contain_text("60 chunks", timeout=60_000)
    page.locator("#qx-question textarea").fill("When did it rain?")
    page.locator("#qx-run").click()
    expect(page.locator("#qx-steps .qx-stop")).to_contain_text("Stopped", timeout=60_000)
    canvas = part(page, "chunkmap-canvas")
    expect(canvas).to_have_attribute("aria-label", re.compile("^Map of 60 chunks"), timeout=60_000)
    expect(canvas).to_be_visible()
    settle(page)
    by_value = drawn(canvas)
    part(page, "chunkmap-colour").select_option(label="heading")
    expect(part(page, "chunkmap-key").locator("li")).to_have_text(["Sea", "Land"])
    settle(page)
    assert drawn(canvas) != by_value
    part(page, "chunkmap-in").click()
    plain = [tmp_path / f"{name}.txt" for name in ("rain", "snow")]
    for file in plain:
        file.write_text("\n\n".join(f"{file.stem} fell on day {i}." * 9 for i in range(40)), encoding="utf-8")
    upload(page, *plain)
    page.locator("#qx-question textarea").fill("When did it snow?")
    page.locator("#qx-run").click()
    colours = part(page, "chunkmap-colour")
    expect(colours).to_contain_text("document", timeout=60_000)
    expect(colours).not_to_contain_text("heading")
    expect(part(page, "chunkmap-back")).to_be_disabled()
    paste(page, "It rained. Nobody came.")
    expect(page.locator("#qx-header")).to_contain_text("1 chunk", timeout=60_000)
    page.locator("#qx-question textarea").fill("Who came?")
    page.locator("#qx-run").click()
    expect(part(page, "chunkmap-none")).to_have_text("No map: fewer than 50 chunks", timeout=60_000)
    expect(part(page, "chunkmap-none")).to_be_visible()
    expect(part(page, "chunkmap-toggle")).to_be_hidden()
    expect(part(page, "chunkmap")).to_be_hidden()


@pytest.mark.campaign
def test_everybody_can_use_it_light_and_dark(page: Page) -> None:
    assert grave_faults_in_both(page) == []
