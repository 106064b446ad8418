"""A run as a page of its own: what stands in it, what does not, and that nothing of it loads or runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bs4 import BeautifulSoup, Tag

from core.base.config import EpisodeConfig
from core.base.errors import LogError, RunNotFound
from core.base.events import StepScores
from core.base.types import ChunkTable, Document
from core.methods.sparc.trace import fold_sparc
from core.runs.again.records import log_sparc_end
from core.runs.export import live
from core.runs.export.live import SCRIPT, STYLE
from core.runs.export.logged import MAX_PICTURES, settings_of
from core.runs.export.page import MAX_WHOLE, run_page
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog, LoggedRun, RunRecord
from core.runs.log.records import support_of
from tests.app.sparc_story import story
from tests.core.runs.log.recording import (
    DOCUMENT,
    N_CHUNKS,
    chunk_table,
    log_run,
    make_record,
    q_values,
    step_taken,
    stopped,
)

HOSTILE = """<script>alert(1)</script><img src=x onerror=alert(2)>"'><a href="javascript:alert(3)">&lt; {{7*7}} ${8} \ud800"""


def page_of(log: ExperimentLog, record: RunRecord, *, with_text: bool = False) -> BeautifulSoup:
    return BeautifulSoup(
        run_page(log.get(record.run_id), log.documents(record.run_id), with_text=with_text), "html.parser"
    )


ELEMENTS = set(
    re.findall(
        r"\w+",
        "html head meta title style body main header section footer noscript script div h1 h2 h3 h4 p dl dt dd ol ul li"
        " strong b em i span blockquote details summary pre mark button svg path g text circle table caption thead tbody"
        " tr th td canvas label select progress",
    )
)


def is_inert(page: BeautifulSoup) -> bool:
    """No element that could load anything, no address, no handler, no style of its own; one script, of its own."""
    elements = [tag for tag in page.find_all(True) if isinstance(tag, Tag)]
    attributes = {name for tag in elements for name in tag.attrs}
    scripts = [tag for tag in elements if tag.name == "script" and tag.get("type") != "application/json"]
    return (
        {tag.name for tag in elements} <= ELEMENTS
        and not {name for name in attributes if name.startswith("on")}
        and not attributes & {"href", "src", "srcset", "action", "style"}
        and [tag.string for tag in scripts] == [SCRIPT]
    )


def data_of(page: BeautifulSoup) -> dict[str, Any]:
    return json.loads(page.find("script", id="qx-data").string)


def looks_of(data: dict[str, Any]) -> np.ndarray:
    """(L, N) Q, as the script unpacks them."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(data["numbers"])), np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<f4").reshape(data["n_rows"], -1)


def texts_of(data: dict[str, Any]) -> list[list[Any]]:
    return json.loads(zlib.decompress(base64.b64decode(data["texts"]))) if data["texts"] else []


def long_document(n: int) -> tuple[Document, ChunkTable]:
    """`n` chunks of 40 words that nobody could guess."""
    words = np.random.default_rng(1).choice([f"word{i}" for i in range(3_000)], 40 * n)
    texts = [" ".join(words[40 * i : 40 * i + 40]) for i in range(n)]
    ends = np.cumsum([len(text) + 1 for text in texts])
    table = replace(chunk_table(n), start=np.concatenate([[0], ends[:-1]]), end=ends - 1)
    return Document("Long", " ".join(texts), "text"), table


def test_the_page_tells_the_run(log: ExperimentLog) -> None:
    config = EpisodeConfig(step_budget=8, stop_threshold=0.4, forbidden=(7,))
    record = log_run(log, make_record(label={"support": [49]}, config=config.to_json()))
    page, run = page_of(log, record), log.get(record.run_id)
    text = page.get_text(" ")
    assert page.h1.get_text() == "Where is the milk?"
    stop = f"step; {len(run.trace.steps) + 1}: where it stopped"
    for words in ("Handbook", "of 1 support chunk found", "chunk 7", DOCUMENT.sha256, stop):
        assert words in text
    for step in run.trace.steps:
        assert f"Q {step.q_value:.2f}" in text.replace("  ", " ")
        assert page.find("button", attrs={"data-act": "look", "data-arg": str(step.step)})
    ends = re.findall(r"Nothing left is worth 0.40: best Q is -?[\d.]+\.", text)
    assert len(ends) == 3, "the line, aloud and card"
    assert len(page.find_all("svg", role="img")) == 2, "the map, for browsers without scripts, and best Q"
    assert is_inert(page)


def test_one_of_anything_is_one_and_a_part_is_not_all(log: ExperimentLog) -> None:
    run = log.get(log_run(log, make_record()).run_id)
    child = replace(
        run, record=replace(run.record, parent_run_id="f" * 32, fork_step=1, n_chunks=1), events=()
    )
    text = BeautifulSoup(run_page(child, log.documents(run.record.run_id)), "html.parser").get_text(" ")
    assert f"{'f' * 32}, 1 step kept" in text
    assert "· 1 chunk ·" in text
    config = EpisodeConfig(step_budget=1, searched=((0, 997),)).to_json()
    part = replace(run, record=replace(run.record, n_chunks=1_000, config=config))
    assert settings_of(part)["Searched"].startswith("99 % of the chunks")


def test_the_script_gets_the_numbers_of_the_log(log: ExperimentLog) -> None:
    """Exactly, so that what it shows is what the app shows."""
    record = log_run(log, make_record(label={"support": [49]}, run_id="0" * 32))
    page, trace = page_of(log, record, with_text=True), log.get(record.run_id).trace
    data = data_of(page)
    looks = [trace.scores_at(look).q_values for look in range(1, trace.n_looks + 1)]
    assert np.array_equal(looks_of(data), np.stack(looks))
    value = data["runs"][0]["value"]
    assert [pin["chunk_id"] for pin in value["chosen"]] == list(trace.chosen)
    assert (value["gold"], value["look"], value["stopped"]) == ([49], 3, True)
    assert [row[0] for row in texts_of(data)] == list(range(50))
    drawing = page.noscript.svg
    assert drawing["viewbox"] == f"0 0 1000 {14 * trace.n_looks}"
    assert drawing.find("path", attrs={"fill-opacity": "1.00"}), "the largest Q has the strongest colour"


def test_a_run_over_20_000_chunks_stays_below_a_megabyte(log: ExperimentLog) -> None:
    n = 20_000
    document, table = long_document(n)
    record = make_record(n_chunks=n, document_hashes=(document.sha256,))
    log.start(record, [document], [table])
    taken = [step_taken(record.run_id, step, n_chunks=n) for step in range(1, 9)]
    for step in taken:
        log.record(record.run_id, step)
    log.finish(record.run_id, "cancelled")
    page = run_page(log.get(record.run_id), log.documents(record.run_id), with_text=True)
    assert len(page.encode()) < 1_000_000
    data = data_of(BeautifulSoup(page, "html.parser"))
    assert data["rounded_bits"] == 8
    exact = np.stack([q_values(record.run_id, step, n) for step in range(1, 9)])
    assert np.allclose(looks_of(data), exact, rtol=2**-15, atol=0)
    told = {row[0] for row in texts_of(data)}
    assert {step.chunk_id for step in taken} <= told
    assert f"Texts of {len(told):,} chunks are in this page" in page


@pytest.mark.parametrize("room", [100, 500])
def test_steps_that_have_no_room_are_left_out_and_that_is_said(
    log: ExperimentLog, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(live, "NUMBERS_ROOM", room)
    record = log_run(log, make_record())
    page, n_looks = page_of(log, record), log.get(record.run_id).trace.n_looks
    n = len(looks_of(data_of(page)))
    assert 1 <= n < n_looks
    assert f"The strip has the first {n} steps of {n_looks}." in page.get_text()


def test_texts_are_in_it_only_when_asked_for(log: ExperimentLog) -> None:
    record = log_run(log, make_record(), text="SECRET CHUNK")
    chosen = sorted({step_taken(record.run_id, step).chunk_id for step in (1, 2, 3)})
    without, page = page_of(log, record), page_of(log, record, with_text=True)
    for secret in ("SECRET CHUNK", "Sentence 1 of", "Section"):
        assert secret not in without.get_text()
        assert secret in page.get_text()
    assert not data_of(without)["texts"]
    marks = [mark.get_text() for mark in page.pre.find_all("mark")]
    assert marks == [DOCUMENT.text[25 * i : 25 * i + 25] for i in chosen]
    assert page.pre.get_text() == DOCUMENT.text
    assert is_inert(page)


def test_a_sparc_run_has_its_rounds_where_texts_are_asked_for(log: ExperimentLog) -> None:
    record = make_record(method="sparc", label={"support": [17, 31]})
    log.start(record, [DOCUMENT], [chunk_table()])
    log_sparc_end(log, record.run_id, fold_sparc(story(n_chunks=N_CHUNKS)), None, "complete")
    without, page = page_of(log, record), page_of(log, record, with_text=True)
    for secret in ("tells of Anna", "mill", "Sentence 1 of"):
        assert secret not in without.get_text()
        assert secret in page.get_text()
    assert without.find("script", id="qx-data") is None
    assert [str(heading.string) for heading in page.select(".qx-round h3")] == ["Round 1", "Round 2"]
    pins = [pin["name"] for pin in data_of(page)["reading"]["chosen"]]
    assert pins == ["1.1", "1.1", "1.1", "1.2", "2.1", "2.2"]
    assert {row[0] for row in texts_of(data_of(page))} == set(range(N_CHUNKS))
    assert is_inert(page)
    assert is_inert(without)


def test_whatever_is_hostile_stays_text(log: ExperimentLog) -> None:
    document = Document(HOSTILE, HOSTILE * 50, "text")
    table = replace(chunk_table(), heading_paths=((HOSTILE,),))
    told = dict.fromkeys(("query", "method", "checkpoint", "vectors"), HOSTILE)
    record = make_record(**told, document_hashes=(document.sha256,), label={"support": HOSTILE})
    log.start(record, [document], [table])
    log.record(record.run_id, step_taken(record.run_id, 1, text=HOSTILE))
    log.finish(record.run_id, "failed", HOSTILE)
    run, [logged] = log.get(record.run_id), log.documents(record.run_id)
    told = run_page(run, [replace(logged, text=document.text)], with_text=True)
    page = BeautifulSoup(told, "html.parser")
    assert is_inert(page)
    assert page.h1.get_text() == HOSTILE.replace("\ud800", "?")
    policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    assert isinstance(policy, Tag)
    digest = r"'sha256-[\w+/=]{44}'"
    assert re.fullmatch(
        f"default-src 'none'; style-src {digest}; script-src {digest}", str(policy["content"])
    )
    for kind, words in (("style", STYLE), ("script", SCRIPT)):
        digest = base64.b64encode(hashlib.sha256(words.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in str(policy["content"])
        assert f"</{kind}" not in words.lower()
    told.encode()


def test_support_is_what_could_be_chunks(log: ExperimentLog) -> None:
    for support, understood in (([1, 99, -1], (1,)), ("text", ()), ({"a": 1}, ()), (None, ())):
        record = log_run(log, make_record(label={"support": support}))
        assert support_of(log.get(record.run_id)) == understood


def with_scores(run: LoggedRun, scores: StepScores | None) -> LoggedRun:
    return replace(run, events=tuple(replace(step, scores=scores) for step in run.trace.steps))


def test_missing_and_odd_numbers_are_no_reason_to_fail(log: ExperimentLog) -> None:
    record = log_run(log, make_record())
    run, documents = log.get(record.run_id), log.documents(record.run_id)
    textless = [replace(document, text=None, table=None) for document in documents]
    bare = run_page(with_scores(run, None), textless, with_text=True)
    assert "was not kept with this run" in bare
    assert "The text of Handbook was not kept" in bare
    odd = np.full(50, np.nan, np.float32)
    assert "was not kept with this run" in run_page(with_scores(run, StepScores(odd, None)), documents)
    odd = odd.copy()
    odd[3], odd[4] = np.inf, 1.0
    assert "<svg" in run_page(with_scores(run, StepScores(odd, None)), documents)
    columns = ("start", "end", "n_tokens", "type_code", "heading_code")
    short = replace(chunk_table(), **{name: getattr(chunk_table(), name)[:9] for name in columns})
    assert "chunk" in run_page(run, [replace(documents[0], table=short)], with_text=True)


def test_a_long_run_and_a_long_document_stay_readable(log: ExperimentLog) -> None:
    document = Document("Long", "word " * (MAX_WHOLE // 2), "text")
    table = replace(chunk_table(), start=np.arange(50) * 40_000 + 10, end=np.arange(50) * 40_000 + 30)
    record = make_record(document_hashes=(document.sha256,), config=EpisodeConfig(step_budget=50).to_json())
    log.start(record, [document], [table])
    for step in range(1, 5):
        log.record(record.run_id, step_taken(record.run_id, step))
    log.record(record.run_id, stopped(record.run_id, 4))
    log.finish(record.run_id, "complete")
    run, [logged] = log.get(record.run_id), log.documents(record.run_id)
    told = run_page(run, [replace(logged, text=document.text, table=table)], with_text=True)
    assert len(told) < 400_000
    assert told.count("<mark>") == len({step.chunk_id for step in run.trace.steps})
    assert "[…]" in told
    many = tuple(replace(run.trace.steps[0], step=step) for step in range(1, MAX_PICTURES + 9))
    longer = replace(run, events=(*many, *run.events[-1:]))
    assert f"the first {MAX_PICTURES} steps" in run_page(longer, [logged])


def test_pages_are_exported_one_a_run(log: ExperimentLog, tmp_path: Path) -> None:
    first, second = log_run(log, make_record()), log_run(log, make_record(owner="a" * 64))
    third = log_run(log, make_record(query="Who?"))
    folder = export_runs(log, None, "html", tmp_path / "pages", include_text=False)
    assert {file.name for file in folder.iterdir()} == {f"run-{one.run_id}.html" for one in (first, third)}
    for name in ("one.html", "one.HTM"):
        assert "Who?" in export_runs(log, [third.run_id], "html", tmp_path / name).read_text()
    with pytest.raises(LogError, match="as many files"):
        export_runs(log, None, "html", tmp_path / "two.html")
    with pytest.raises(RunNotFound):
        export_runs(log, [second.run_id], "html", tmp_path / "no.html")
