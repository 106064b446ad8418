"""Pooled corpora, rows of SPARC and baselines, and the tables made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.base.errors import BadRequest
from core.lab.sparc.evaluation import Ground, SparcRow, SparcVariation, Tally, evaluate_sparc
from core.lab.studies.sparc import sparc
from core.lab.tasks.example import Example
from core.lab.tasks.pooled import pooled
from core.llm.protocol import Llm, LlmError
from core.methods.sparc.build import build_agents
from core.methods.sparc.events import SparcConfig
from core.methods.sparc.retrievals import Retrievals
from core.views.charts import markdown
from tests.core.methods.sparc.conftest import (
    QUESTION,
    SECOND_HOP,
    STORY,
    KnowingReader,
    RoleLlm,
    corpus_of_texts,
)

HILLS = (STORY[3], STORY[5], STORY[7], STORY[4])
EXAMPLES = (
    Example("a", "made", QUESTION, (*STORY[:4], STORY[SECOND_HOP]), (2, 4), ("Quillmarsh",)),
    Example("b", "made", "What did Jory Hale keep in the hills?", HILLS, (1,), ("bees",)),
)

CONFIG = SparcConfig(width=2, k=2, strategies=("bm25",), first_round="rewrite")


VARIATIONS = (
    SparcVariation(method="vanilla", config=CONFIG),
    SparcVariation(method="direct", config=CONFIG),
    SparcVariation(config=CONFIG, depths=(1, 3)),
)


def evaluated(llm: Llm | None = None, known: Sequence[SparcRow] = ()) -> list[SparcRow]:
    examples = pooled(EXAMPLES, "made-pooled")
    corpus, reader = corpus_of_texts(examples[0].chunks), KnowingReader({"Quillmarsh": 0.9, "bees": 0.8})
    tally = None if llm is None else Tally(llm)
    ground = Ground(
        retrievals=Retrievals(corpus),
        corpus=corpus,
        agents=lambda config: build_agents(tally, reader, config),
        llm=tally,
        plain=None,
        count=lambda texts: [len(text.split()) for text in texts],
        about={"split": "eval", "seed": 0, "checkpoint": "", "fingerprint": ""},
    )
    return list(evaluate_sparc(examples, VARIATIONS, ground, known))


@pytest.fixture(scope="module")
def rows() -> list[SparcRow]:
    return evaluated()


def test_paragraphs_are_pooled_once_and_support_is_mapped() -> None:
    examples = pooled(EXAMPLES, "made-pooled")
    texts = examples[0].chunks
    assert len(texts) == len(set(texts)) == 8
    for before, after in zip(EXAMPLES, examples, strict=True):
        assert {before.chunks[row] for row in before.support} == {texts[row] for row in after.support}
        assert (after.task, after.chunks) == ("made-pooled", texts)


def test_a_pool_borrows_up_to_its_size_but_nothing_under_the_title_of_support() -> None:
    asked = Example("a", "made", "Who?", ("Bees: a", "Hills: b"), (0,), ("a",))
    borrowed = ("bees: other words", "Hills: b", "Rivers: c", "d", "Seas: e")
    assert pooled([asked], "made-corpus", borrowed, 4)[0].chunks == ("Bees: a", "Hills: b", "Rivers: c", "d")
    assert pooled([asked], "made-corpus", borrowed, 99)[0].chunks[-1] == "Seas: e"


def test_every_method_has_a_row_a_question_and_at_most_k_chunks(rows: list[SparcRow]) -> None:
    of_one = [("vanilla", 1), ("sparc", 1), ("sparc", 3)]
    assert [(row.id, row.method, row.depth) for row in rows] == [
        (name, *one) for name in "ab" for one in of_one
    ]
    assert all(len(row.evidence) <= CONFIG.k for row in rows)
    first = {row.method: row for row in rows if row.id == "a"}
    assert (first["sparc"].em, first["sparc"].stop_reason, first["vanilla"].em) == (1.0, "accepted", 0.0)
    assert set(first["sparc"].evidence) == set(first["sparc"].support)
    assert first["sparc"].second_round is not None
    assert rows[1].second_round is None


def test_the_report_compares_at_equal_evidence(rows: list[SparcRow]) -> None:
    report = sparc(rows)
    text = markdown(report)
    table = report.tables[0]
    recall = table.columns.index("paragraph recall")
    assert [line[1:5] for line in table.rows] == [
        ("vanilla, bm25", None, None, 2),
        ("SPARC, bm25, rewritten first round", 2, 1, 2),
        (*table.rows[2][1:5],),
    ]
    assert table.rows[0][table.columns.index("recall against the first line")] is None
    assert str(table.rows[2][recall]) > str(table.rows[0][recall])
    stops = next(one for one in report.tables if one.title == "Stops")
    assert str(stops.rows[0][4]).startswith("1.000")
    assert str(stops.rows[0][5]).startswith("0.000")
    assert "over 8 paragraphs" in text
    assert "ended early" not in text
    failed = [replace(row, stop_reason="failed") if row.id == "b" else row for row in rows]
    assert "; 1 of the questions ended early" in markdown(sparc(failed))
    assert {chart.x_title for chart in report.charts} == {"seconds a question"}


def test_wrong_accepted_answers_are_counted_and_nothing_to_study_is_refused(rows: list[SparcRow]) -> None:
    wrong = [replace(row, accuracy=0.0) if row.id == "b" else row for row in rows if row.method == "sparc"]
    stops = next(one for one in sparc(wrong).tables if one.title == "Stops")
    assert str(stops.rows[0][5]).startswith("0.500")
    with pytest.raises(BadRequest, match="there are no rows to study"):
        sparc([])
    unlabelled = Example("x", "made", QUESTION, STORY, (), ("Quillmarsh",))
    with pytest.raises(ValueError, match="no support or no answer"):
        list(evaluate_sparc([unlabelled], (), None))


def test_a_models_replies_are_counted_and_made_rows_are_not_made_again(rows: list[SparcRow]) -> None:
    llm = RoleLlm(direct=[{"no": "answer"}, {"answer": "Quillmarsh"}, LlmError("no reply in 60 s; wait")])
    made = evaluated(llm)
    assert [row.method for row in made] == ["vanilla", "direct", "sparc", "sparc"] * 2
    repaired, silent = (row for row in made if row.method == "direct")
    assert (repaired.em, repaired.calls, repaired.retries, repaired.silent) == (1.0, 2, 1, 0)
    assert (silent.stop_reason, silent.empty, silent.retries, silent.silent) == ("failed", True, 0, 1)
    again = evaluated(llm, [*rows, *(row for row in made if row.id == "a")])
    assert [(row.id, row.agents) for row in again] == [("b", "role model")] * 4
    cut = evaluated(known=rows[:-1])
    assert [(row.id, row.depth) for row in cut] == [("b", 1), ("b", 3)], "a run whose rows are not all there"
    others = [replace(row, fingerprint="another agent's") for row in rows]
    assert len(evaluated(known=others)) == len(rows)
    report = sparc([*rows, *made])
    names = [line[1] for line in report.tables[0].rows]
    assert "direct, by role model" in names
    assert "vanilla, bm25, by rules and knowing" in names
    assert {line.name for line in report.charts[0].lines} >= {"direct, by role model"}
    replies = next(one for one in report.tables if "replies" in one.title)
    assert replies.rows[1][replies.columns.index("no reply")] == "0.50"
