"""What the lead of the best Q says about evidence: by hand, and only of runs that are one search."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from core.base.config import EpisodeConfig
from core.base.events import RunStarted, StepScores, StepTaken, Stopped, Trace
from core.base.progress import finish
from core.base.types import Document
from core.corpus.opening import chunk_documents
from core.encode import checkpoint
from core.encode.checkpoint import CheckpointSpec, RerankedDefaults, as_served, read_spec, write_spec
from core.encode.packaged import MPNET
from core.lab.evaluate.completeness import (
    completeness,
    completeness_by_size,
    lead,
    questions_by_size,
    with_curves,
)
from core.lab.evaluate.document_evaluation import AskedDocument, DocumentSetting, evaluate_document
from core.lab.evaluate.documents import DocumentRow
from core.lab.tasks.documents import DocumentQuestion
from core.methods.choice import Encoders
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from tests.core.conftest import CorpusOf
from tests.core.lab.evaluate.rows import document_row
from tests.core.methods.sparc.conftest import KnowingReader

CURVES = {4: ((0.1, 0.2), (0.5, 0.8)), 8: ((0.1, 0.4), (0.5, 0.9))}
SPEC = CheckpointSpec(name="finder", trained=True, reads_choices=False, lead_curves=CURVES)
LOOK = StepScores(np.array([0.2, 0.9, 0.6, 0.5, 0.8, 0.1, 0.0, 0.3, 0.4], np.float32), None)
"""The best is 0.9, the fourth 0.5."""


def trace(n_steps: int, method: str = "qrag", checkpoint: str = "finder", **changes: Any) -> Trace:
    config = EpisodeConfig(step_budget=n_steps, **changes)
    steps = tuple(
        StepTaken(step, step, 0.5, 1.0, 0.5, None, "", 0.0, scores=LOOK) for step in range(1, n_steps + 1)
    )
    return Trace(RunStarted("where?", method, checkpoint, 9, config), steps, Stopped("budget", n_steps))


def test_the_lead_is_the_best_minus_the_fourth() -> None:
    assert lead(LOOK.q_values) == pytest.approx(0.4)
    assert lead([0.9, 0.5, 0.1]) is None


def test_a_run_is_read_off_the_curve_of_as_many_chunks() -> None:
    assert completeness_by_size(SPEC, trace(4)) == {4: pytest.approx(0.65), 8: pytest.approx(0.775)}
    assert completeness(SPEC, trace(4)) == completeness(SPEC, trace(7)) == pytest.approx(0.65)
    assert completeness(SPEC, trace(8)) == pytest.approx(0.775)
    assert completeness(SPEC, trace(3)) is None
    assert completeness(SPEC, replace(trace(4), stopped=None)) is None


def test_of_other_runs_nothing_is_known() -> None:
    for other in (
        trace(4, method="hybrid"),
        trace(4, checkpoint="general"),
        trace(4, temperature=0.1),
        trace(4, beam_width=2),
        trace(4, forced=((1, 3),)),
        trace(4, forbidden=(3,)),
        replace(trace(5), stopped=Stopped("budget", 5, review=(0.1,) * 5, taken_back=(2,))),
        replace(trace(4), steps=tuple(replace(step, scores=None) for step in trace(4).steps)),
    ):
        assert (completeness(SPEC, other), completeness_by_size(SPEC, other)) == (None, {})


def row(number: int, ahead: float, found_at: tuple[int | None, ...], **changes: Any) -> DocumentRow:
    values: dict[str, Any] = {
        "id": str(number),
        "document": f"d{number % 5}",
        "checkpoint": "finder",
        "k": 12,
        "covered": tuple(at is not None for at in found_at),
        "n_chunks": 90,
        "chunk_ids": tuple(range(12)),
        "scores": (0.5 + ahead, 0.6, 0.5, 0.5, *[0.1] * 8),
        "evidence": tuple((i, i + 1) for i in range(12)),
        "found_at": found_at,
    }
    return document_row(**values | changes)


ROWS = [
    *(row(i, 0.1, (2, 4 if i % 4 == 0 else 9 if i % 4 == 1 else None)) for i in range(40)),
    *(row(40 + i, 0.4, (1,) if i % 4 else (None,)) for i in range(60)),
]
"""Of 40 questions with a small lead a quarter is complete with four chunks, half with twelve; of 60 with a large
one three quarters are complete.
"""


def test_curves_are_shares_of_complete_evidence_by_lead() -> None:
    curves = questions_by_size(ROWS, "finder")
    assert list(curves) == [4, 8, 12]
    large = (0.4, round(46 / 62, 4))
    assert curves[4].curve == curves[8].curve == ((0.1, round(11 / 42, 4)), large)
    assert curves[12].curve == ((0.1, round(21 / 42, 4)), large)
    assert curves[4].to_json()["complete"] == 0.55
    assert curves[4].estimates.max() < 0.8
    assert curves[4].estimates.min() > 0.2


def test_a_curve_is_over_the_lead_that_runs_are_read_by() -> None:
    """With a reranker that reads again, Q of each choice when it was chosen tells another lead."""
    again = [replace(one, first_lead=0.7, scores=(0.9, *one.scores[1:])) for one in ROWS]
    curve = questions_by_size(again, "finder")[4].curve
    assert [place for place, _ in curve] == [0.7]


def test_a_row_keeps_the_lead_of_its_first_look(
    tiny_checkpoints: dict[str, Path], corpus_of: CorpusOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path))
    things = ("milk", "apple", "football", "lamp", "letter", "ladder")
    document = Document(
        "d", "\n\n".join(f"# {one}\n\nMary got the {one} there." for one in things), "markdown"
    )
    question = DocumentQuestion("1", "d", "single", "Where is the milk?", (), ("Mary got the milk there.",))
    encoders = Encoders(str(tiny_checkpoints["none"]), "cpu")
    setting = DocumentSetting(methods=("qrag",), k=5, stops=False)
    asked = AskedDocument("d", ((question, ((9, 33),)),))
    folder = SimpleNamespace(read=lambda _: document)
    [row] = evaluate_document(asked, folder, setting, encoders, KnowingReader({})).rows
    _, encoder = encoders.choice(document)
    corpus = corpus_of(encoder, finish(chunk_documents([document], encoder), lambda _: None).texts())
    [look] = Agent(encoder).look([(Episode(question.question, corpus, EpisodeConfig()), ())])
    assert row.first_lead == pytest.approx(lead(look.scores.q_values), abs=1e-5)
    assert row.first_lead != pytest.approx(lead(row.scores), abs=1e-5), "choices are read by this agent"


def test_what_says_nothing_of_a_size_is_left_out() -> None:
    others = [
        *(replace(one, checkpoint="other") for one in ROWS),
        *(replace(one, stops=True) for one in ROWS),
        *(replace(one, ran="hybrid") for one in ROWS),
        *(row(i, 0.3, ()) for i in range(100)),
        *(row(i, 0.3, (1,), scores=(0.5, 0.4, 0.3)) for i in range(100)),
    ]
    assert questions_by_size(others, "finder") == {}
    assert questions_by_size(ROWS[:99], "finder") == {}
    older = [replace(one, k=4, found_at=()) for one in ROWS]
    assert list(questions_by_size(older, "finder")) == [4]
    assert questions_by_size(older, "finder")[4].complete.sum() == sum(all(one.covered) for one in ROWS)


def test_an_agent_keeps_its_curves(tmp_path: Path) -> None:
    spec = with_curves(SPEC, questions_by_size(ROWS, "finder"), {"on": "rows"})
    write_spec(tmp_path, spec)
    assert read_spec(tmp_path) == spec
    assert spec.scores["completeness"]["on"] == "rows"
    assert list(spec.scores["completeness"]["by_chunks"]) == ["4", "8", "12"]


def test_curves_of_an_agent_that_reads_again_stand_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q has another scale with its reranker; without the larger encoder the agent is what it was."""
    again = {"rerank_weight": 0.3, "rerank_base": MPNET, "reranked": RerankedDefaults(shown_temperature=0.3)}
    reader = SPEC.model_copy(update=again)
    curves = questions_by_size(ROWS, "finder")
    monkeypatch.setattr(checkpoint, "uses_mpnet", lambda: True)
    spec = with_curves(reader, curves, {"on": "rows"})
    assert spec.lead_curves == CURVES
    assert as_served(spec).lead_curves == {size: one.curve for size, one in curves.items()}
    assert as_served(spec).shown_temperature == 0.3
    monkeypatch.setattr(checkpoint, "uses_mpnet", lambda: False)
    assert as_served(spec) == SPEC.model_copy(update={"scores": spec.scores})
    assert with_curves(reader, curves, {"on": "rows"}).reranked == reader.reranked


def test_a_curve_that_does_not_rise_is_refused() -> None:
    for curves in ({4: ()}, {0: ((0.1, 0.2),)}, {4: ((0.1, 0.3), (0.2, 0.2))}, {4: ((0.1, 1.1),)}):
        with pytest.raises(ValidationError, match="lead_curves"):
            CheckpointSpec(name="finder", trained=True, lead_curves=curves)
