"""A run as a page of its own: what stands in it, what does not, and that nothing of it loads or runs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup, Tag

from core.config import EpisodeConfig
from core.errors import LogError, RunNotFound
from core.events import StepScores
from core.log import ExperimentLog, LoggedDocument, LoggedRun, RunRecord, export_runs
from core.log.page import MAX_PICTURES, MAX_WHOLE, run_page
from core.log.records import support_of
from core.types import Document
from tests.core.log.recording import DOCUMENT, chunk_table, log_run, make_record, step_taken, stopped

HOSTILE = """<script>alert(1)</script><img src=x onerror=alert(2)>"'><a href="javascript:alert(3)">&lt; {{7*7}} ${8} \ud800"""


def page_of(log: ExperimentLog, record: RunRecord, *, with_text: bool = False) -> BeautifulSoup:
    return BeautifulSoup(
        run_page(log.get(record.run_id), log.documents(record.run_id), with_text=with_text), "html.parser"
    )


def is_inert(page: BeautifulSoup) -> bool:
    """No element that could load or run anything, no address, no handler."""
    elements = [tag for tag in page.find_all(True) if isinstance(tag, Tag)]
    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "section",
        "footer",
        "div",
        "h1",
        "h2",
        "p",
        "dl",
        "dt",
        "dd",
        "ol",
        "li",
    }
    allowed |= {
        "strong",
        "span",
        "blockquote",
        "details",
        "summary",
        "pre",
        "mark",
        "svg",
        "path",
        "g",
        "text",
        "circle",
    }
    names = {tag.name for tag in elements}
    attributes = {name for tag in elements for name in tag.attrs}
    return names <= allowed and not [
        name for name in attributes if name.startswith("on") or name in ("href", "src", "srcset", "action")
    ]


def test_the_page_tells_the_run(log: ExperimentLog) -> None:
    record = make_record(
        label={"support": [49]},
        config=EpisodeConfig(step_budget=8, stop_threshold=0.4, forbidden=(7,)).to_json(),
    )
    log_run(log, record)
    page = page_of(log, record)
    text = page.get_text(" ")
    run = log.get(record.run_id)
    assert page.h1 is not None
    assert page.h1.get_text() == "Where is the milk?"
    assert "Handbook" in text
    assert "0 of 1 support chunks found" in text or "1 of 1 support chunks found" in text
    for step in run.trace.steps:
        assert f"{step.step}. chunk {step.chunk_id}" in text
        assert f"Q {step.q_value:.3f}" in text
    assert re.search(r"Stopped: the best Q, -?[\d.]+ of chunk 3, is below 0.400", text)
    assert "chunk 7" in text
    assert DOCUMENT.sha256 in text
    assert len(page.find_all("svg")) == 1 + 3 + 1, "the map, a strip a step, best Q"
    assert is_inert(page)


def test_the_map_has_a_row_a_look_and_pins_where_chunks_lie(log: ExperimentLog) -> None:
    record = log_run(log, make_record())
    page, run = page_of(log, record), log.get(record.run_id)
    picture = page.find("div", class_="picture")
    assert isinstance(picture, Tag)
    drawing = picture.svg
    assert drawing is not None
    assert drawing["viewbox"] == f"0 0 1000 {14 * run.trace.n_looks}"
    best = {
        int(float(re.findall(r"M([\d.]+) ", str(path["d"]))[0]))
        for path in drawing.find_all("path", class_="q8")
    }
    assert best, "the largest Q has the strongest colour"
    pins = {str(pin["title"]): str(pin["style"]) for pin in picture.find_all("span")}
    assert pins == {f"chunk {chunk_id}": f"left:{2 * (chunk_id + 0.5):.2f}%" for chunk_id in run.trace.chosen}


def test_texts_are_in_it_only_when_asked_for(log: ExperimentLog) -> None:
    record = log_run(log, make_record(), text="SECRET CHUNK")
    chosen = sorted(step_taken(record.run_id, step).chunk_id for step in (1, 2, 3))
    without, with_text = page_of(log, record).get_text(), page_of(log, record, with_text=True)
    for secret in ("SECRET CHUNK", "Sentence 1 of", "Section"):
        assert secret not in without
        assert secret in with_text.get_text()
    assert [mark.get_text() for mark in with_text.find_all("mark")] == [
        DOCUMENT.text[25 * i : 25 * i + 25] for i in sorted(set(chosen))
    ]
    assert with_text.pre is not None
    assert with_text.pre.get_text() == DOCUMENT.text
    assert is_inert(with_text)


def test_whatever_is_hostile_stays_text(log: ExperimentLog) -> None:
    document = Document(HOSTILE, HOSTILE * 50, "text")
    table = replace(chunk_table(), heading_paths=((HOSTILE,),))
    record = make_record(
        query=HOSTILE,
        method=HOSTILE,
        checkpoint=HOSTILE,
        vectors=HOSTILE,
        document_hashes=(document.sha256,),
        label={"support": HOSTILE},
    )
    log.start(record, [document], [table])
    log.record(record.run_id, step_taken(record.run_id, 1, text=HOSTILE))
    log.finish(record.run_id, "failed", HOSTILE)
    run, [logged] = log.get(record.run_id), log.documents(record.run_id)
    told = run_page(run, [replace(logged, text=document.text)], with_text=True)
    page = BeautifulSoup(told, "html.parser")
    assert is_inert(page)
    assert page.h1 is not None
    assert page.h1.get_text() == HOSTILE.replace("\ud800", "?")
    policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    assert isinstance(policy, Tag)
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"
    told.encode()


def test_support_is_what_could_be_chunks(log: ExperimentLog) -> None:
    for support, understood in (
        ([1, 2], (1, 2)),
        ([1, 99, -1], (1,)),
        ("text", ()),
        ({"a": 1}, ()),
        (None, ()),
    ):
        record = log_run(log, make_record(label={"support": support}))
        assert support_of(log.get(record.run_id)) == understood


def with_scores(run: LoggedRun, scores: StepScores | None) -> LoggedRun:
    steps = tuple(replace(step, scores=scores) for step in run.trace.steps)
    return replace(run, trace=replace(run.trace, steps=steps, stopped=None))


def test_missing_and_odd_numbers_are_no_reason_to_fail(log: ExperimentLog) -> None:
    record = log_run(log, make_record())
    run, documents = log.get(record.run_id), log.documents(record.run_id)
    bare = run_page(
        with_scores(run, None),
        [replace(document, text=None, table=None) for document in documents],
        with_text=True,
    )
    assert "was not kept with this run" in bare
    assert "The text of Handbook was not kept" in bare
    odd = np.full(50, np.nan, np.float32)
    odd[3], odd[4] = np.inf, 1.0
    assert "<svg" in run_page(with_scores(run, StepScores(odd, None)), documents)
    assert "was not kept with this run" in run_page(
        with_scores(run, StepScores(np.full(50, np.nan, np.float32), None)), documents
    )
    short = replace(
        chunk_table(),
        **{
            name: getattr(chunk_table(), name)[:9]
            for name in ("start", "end", "n_tokens", "type_code", "heading_code")
        },
    )
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
    told = run_page(
        run, [LoggedDocument(logged.title, logged.sha256, logged.kind, document.text, table)], with_text=True
    )
    assert len(told) < 200_000
    assert told.count("<mark>") == len({step.chunk_id for step in run.trace.steps})
    assert "[…]" in told
    many = tuple(replace(run.trace.steps[0], step=step) for step in range(1, MAX_PICTURES + 9))
    assert f"the first {MAX_PICTURES} steps" in run_page(
        replace(run, trace=replace(run.trace, steps=many)), [logged]
    )


def test_pages_are_exported_one_a_run(log: ExperimentLog, tmp_path: Path) -> None:
    first, second = log_run(log, make_record()), log_run(log, make_record(owner="a" * 64))
    third = log_run(log, make_record(query="Who?"))
    folder = export_runs(log, None, "html", tmp_path / "pages", include_text=False)
    assert {file.name for file in folder.iterdir()} == {
        f"run-{first.run_id}.html",
        f"run-{third.run_id}.html",
    }
    one = export_runs(log, [third.run_id], "html", tmp_path / "one.html")
    assert "Who?" in one.read_text()
    with pytest.raises(LogError, match="as many files"):
        export_runs(log, None, "html", tmp_path / "two.html")
    with pytest.raises(RunNotFound):
        export_runs(log, [second.run_id], "html", tmp_path / "no.html")
