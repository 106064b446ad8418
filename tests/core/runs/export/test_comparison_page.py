"""Several runs of one question as a page: what it shows of them, what gives way, and what stays out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bs4 import BeautifulSoup

from core.base.config import EpisodeConfig
from core.base.errors import LogError, RunNotFound
from core.base.events import StepScores
from core.base.types import Document
from core.runs.export.comparison_page import MAX_COLUMNS, comparison_page
from core.runs.export.page import run_page
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog, RunRecord
from tests.core.runs.export.test_page import HOSTILE, data_of, is_inert, long_document, looks_of, texts_of
from tests.core.runs.log.recording import (
    DOCUMENT,
    N_CHUNKS,
    chunk_table,
    log_run,
    make_record,
    q_values,
    step_taken,
)


def log_one_look(log: ExperimentLog, record: RunRecord, chosen: Sequence[int]) -> RunRecord:
    scores = q_values(record.run_id, 1, record.n_chunks)
    log.start(record, [DOCUMENT], [chunk_table()])
    for step, chunk_id in enumerate(chosen, start=1):
        taken = step_taken(record.run_id, step)
        log.record(record.run_id, replace(taken, chunk_id=chunk_id, scores=StepScores(scores, None)))
    log.finish(record.run_id, "complete")
    log.flush()
    return record


@pytest.fixture
def records(log: ExperimentLog) -> list[RunRecord]:
    """An agent, top-k, which shares its first choice, and BM25, which shares nothing."""
    label = {"support": [49, 3], "answer": "in the office"}
    agent = log_run(log, make_record(label=label, config=EpisodeConfig(step_budget=8).to_json()))
    chosen = log.get(agent.run_id).trace.chosen
    others = [i for i in range(N_CHUNKS) if i not in chosen]
    topk = log_one_look(log, make_record(method="topk", label=label), [chosen[0], *others[:2]])
    bm25 = log_one_look(log, make_record(method="bm25", label=label), others[2:4])
    return [agent, topk, bm25]


def page_of(log: ExperimentLog, records: Sequence[RunRecord], *, with_text: bool = False) -> BeautifulSoup:
    runs = [log.get(record.run_id) for record in records]
    page = comparison_page(runs, log.documents(records[0].run_id), with_text=with_text)
    return BeautifulSoup(page, "html.parser")


def test_columns_stand_in_order_and_a_shared_chunk_has_one_colour(
    log: ExperimentLog, records: list[RunRecord]
) -> None:
    page = page_of(log, records, with_text=True)
    assert [heading.get_text() for heading in page.select(".qx-column h4")] == ["Q-RAG base", "top-k", "BM25"]
    shared = log.get(records[0].run_id).trace.chosen[0]
    cards = page.select(".qx-found > li")
    assert len(cards) == 8
    named = {(card["data-same"], name) for card in cards for name in card.get_attribute_list("class")}
    paints = {pair for pair in named if pair[1].startswith("qx-c") or pair[1] == "qx-solo"}
    assert {name for chunk_id, name in paints if chunk_id == str(shared)} == {"qx-c1"}
    assert {name for chunk_id, name in paints if chunk_id != str(shared)} == {"qx-solo"}
    [agent, topk, _] = data_of(page)["runs"]
    assert [pin["colour"] for pin in agent["value"]["chosen"]] == ["s1", "mut", "mut"]
    assert [pin["colour"] for pin in topk["value"]["chosen"]] == ["s1", "mut", "mut"]
    pins = {pin["chunk_id"]: pin for pin in data_of(page)["reading"]["chosen"]}
    assert pins[shared]["said"] == "Found by Q-RAG base, top-k."
    assert (pins[shared]["name"], pins[shared]["kind"]) == ("2×", "qx-c1")
    assert page.find(id="qx-compare-support") is not None
    assert f"3 runs · {N_CHUNKS} chunks ·" in page.get_text()
    assert "1 by some" in page.get_text()
    acts = {str(button["data-act"]) for button in page.select("[data-act]")}
    assert acts == {"open", "show", "column", "close"}, "only a server has the other buttons"
    assert is_inert(page)


def test_its_numbers_are_those_of_each_runs_own_page(log: ExperimentLog, records: list[RunRecord]) -> None:
    """So the strip shows the same Q, rank and p; a method that looked once is one row."""
    data = data_of(page_of(log, records, with_text=True))
    assert [run["rows"] for run in data["runs"]] == [[0, 3, 4, 5], [1, 1, 1], [2, 2]]
    assert (data["n_rows"], data["rounded_bits"]) == (6, 0)
    for run, record in zip(data["runs"], records, strict=True):
        logged, documents = log.get(record.run_id), log.documents(record.run_id)
        own = data_of(BeautifulSoup(run_page(logged, documents, with_text=True), "html.parser"))
        alone = own["runs"][0]
        assert np.array_equal(looks_of(data)[run["rows"]], looks_of(own)[alone["rows"]])
        for pin in run["value"]["chosen"]:
            del pin["colour"]
        kept = {name: value for name, value in run.items() if name not in ("column", "name", "rows")}
        assert kept == {name: value for name, value in alone.items() if name != "rows"}


def test_texts_are_in_it_only_when_asked_for(log: ExperimentLog) -> None:
    records = [log_run(log, make_record(method=name), text="SECRET CHUNK") for name in ("qrag", "hybrid")]
    without, page = page_of(log, records), page_of(log, records, with_text=True)
    for secret in ("SECRET", "Sentence 1 of"):
        assert secret not in str(without)
    assert "SECRET CHUNK" in page.get_text()
    assert "Texts of documents were left out." in without.get_text()
    assert (data_of(without)["texts"], data_of(without)["n_texts"]) == ("", 0)
    assert {row[0] for row in texts_of(data_of(page))} == set(range(N_CHUNKS))
    assert is_inert(without)


def test_whatever_is_hostile_stays_text(log: ExperimentLog) -> None:
    document = Document(HOSTILE, HOSTILE * 50, "text")
    table = replace(chunk_table(), heading_paths=((HOSTILE,),))
    asked = {"query": HOSTILE, "document_hashes": (document.sha256,)}
    first = make_record(checkpoint=HOSTILE, vectors=HOSTILE, **asked)
    records = [first, make_record(method=HOSTILE, **asked), make_record(method="topk", **asked)]
    for record in records:
        log.start(record, [document], [table])
        log.record(record.run_id, step_taken(record.run_id, 1, text=HOSTILE))
    log.finish(records[0].run_id, "complete")
    log.finish(records[1].run_id, "cancelled")
    log.finish(records[2].run_id, "failed", HOSTILE)
    runs = [log.get(record.run_id) for record in records]
    [logged] = log.documents(records[0].run_id)
    told = comparison_page(runs, [replace(logged, text=document.text)], with_text=True)
    page = BeautifulSoup(told, "html.parser")
    assert is_inert(page)
    assert page.h1.get_text() == HOSTILE.replace("\ud800", "?")
    assert "default-src 'none'" in told
    told.encode()


@pytest.mark.campaign
@pytest.mark.parametrize(
    "n_steps", [(4,) * MAX_COLUMNS, (500, 1)], ids=["as many columns as may be", "a long one"]
)
def test_many_columns_and_long_ones_stay_below_a_megabyte(
    log: ExperimentLog, n_steps: tuple[int, ...]
) -> None:
    n, runs = 20_000, []
    document, table = long_document(n)
    for n_own in n_steps:
        record = make_record(method="multistep", n_chunks=n, document_hashes=(document.sha256,))
        log.start(record, [document], [table])
        for step in range(1, n_own + 1):
            taken = step_taken(record.run_id, min(step, 4), n, text="word " * 60)
            seen = {} if n_own == 4 else {"step": step, "chunk_id": 7 * step, "scores": None}
            log.record(record.run_id, replace(taken, **seen))
        log.finish(record.run_id, "complete")
        runs.append(log.get(record.run_id))
    told = comparison_page(runs, log.documents(runs[0].record.run_id), with_text=sum(n_steps) > 500)
    assert len(told.encode()) < 1_000_000
    page = BeautifulSoup(told, "html.parser")
    assert told.count('<li class="qx-step') == sum(n_steps)
    names = [heading.get_text() for heading in page.select(".qx-column h4")]
    assert names == ["multi-step", *(f"multi-step ({i})" for i in range(2, len(n_steps) + 1))]


def test_missing_and_odd_numbers_are_no_reason_to_fail(log: ExperimentLog, records: list[RunRecord]) -> None:
    runs = [log.get(record.run_id) for record in records]
    documents = log.documents(records[0].run_id)
    scores = np.full(N_CHUNKS, np.nan, np.float32)
    scores[:3] = (np.inf, -np.inf, 1.0)
    for odd in (None, StepScores(scores, None), StepScores(np.full(N_CHUNKS, np.nan, np.float32), None)):
        steps = tuple(replace(step, scores=odd, q_value=float("nan")) for step in runs[0].trace.steps)
        first = replace(runs[0], events=steps)
        page = BeautifulSoup(comparison_page([first, *runs[1:]], documents, with_text=True), "html.parser")
        assert is_inert(page)
        assert "nan" not in "".join(str(path["d"]) for path in page.select("svg path")).lower()
    empty = replace(runs[0], events=())
    alone = BeautifulSoup(comparison_page([empty, empty], documents), "html.parser")
    assert "It looked at nothing." in alone.get_text()
    assert "Q of all chunks is not in this page" in alone.get_text()
    assert is_inert(alone)


def test_runs_of_one_question_are_exported_as_one_page(
    log: ExperimentLog, records: list[RunRecord], tmp_path: Path
) -> None:
    ids = [record.run_id for record in records]
    file = export_runs(log, [ids[2], ids[0], ids[1]], "html", tmp_path / "one.html", include_text=False)
    whole = comparison_page([log.get(run_id) for run_id in ids], log.documents(ids[0]))
    assert file.read_text(encoding="utf-8") == str(whole), "oldest first, as they were made"
    folder = export_runs(log, ids, "html", tmp_path / "pages")
    assert {path.name for path in folder.iterdir()} == {f"run-{run_id}.html" for run_id in ids}
    elsewhere = log_run(log, make_record(query="Who?")).run_id
    recut = log_run(log, make_record(chunking=[{"chunker": "sentences", "max_tokens": 32}])).run_id
    for other in (elsewhere, recut):
        with pytest.raises(LogError, match=r"4 runs are as many files.* of one question over the same"):
            export_runs(log, [*ids, other], "html", tmp_path / "no.html")
    many = [*ids, *(log_run(log, make_record()).run_id for _ in range(MAX_COLUMNS - 2))]
    with pytest.raises(LogError, match=f"up to {MAX_COLUMNS} runs"):
        export_runs(log, many, "html", tmp_path / "no.html")
    with pytest.raises(RunNotFound):
        export_runs(log, ids, "html", tmp_path / "no.html", owner="a" * 64)
    assert not (tmp_path / "no.html").exists()
