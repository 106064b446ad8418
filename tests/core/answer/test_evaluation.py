"""Rows of answers: scored over the evidence that was given, written and read again."""

from __future__ import annotations

from core.answer.checkpoint import SMALL
from core.answer.reader import load_reader
from core.lab.reader.evaluation import evaluate_answers, group_answers
from core.lab.tasks.example import Example
from tests.core.answer.conftest import NOISE

GARDEN = (*NOISE[:3], "john went to the garden.")
EXAMPLES = [
    Example("a", "where", "Where is mary?", ("mary went to the kitchen.", *NOISE[:3]), (0,), ("kitchen",)),
    Example("b", "where", "Where is john?", GARDEN, (3,), ("garden", "the garden")),
    Example("c", "where", "Where is nobody?", tuple(NOISE[:3]), (0,), ()),
]

ABOUT = {"split": "test", "length": None, "seed": 0}


def test_a_row_an_answer() -> None:
    reader = load_reader(SMALL, "cpu")
    told: list[tuple[int, int]] = []
    report = lambda done, total: told.append((done, total))  # noqa: E731
    support = {example.id: example.support for example in EXAMPLES}
    gold = list(evaluate_answers(reader, EXAMPLES, support, report, evidence="gold", **ABOUT))
    assert [(row.id, row.evidence, row.support_found, row.n_passages, row.em) for row in gold] == [
        ("a", "gold", 1, 1, 1),
        ("b", "gold", 1, 1, 1),
    ]
    others = dict.fromkeys("abc", (2, 1))
    wrong = list(evaluate_answers(reader, EXAMPLES, others, report, evidence="wrong", **ABOUT))
    assert [(row.support_found, row.n_passages, row.em) for row in wrong] == [(0, 2, 0)] * 2
    assert told == [(2, 2), (2, 2)]
    rows = [*gold, *wrong]
    assert {row.fingerprint for row in rows} == {reader.fingerprint}
    assert [len(group) for group in group_answers(rows)] == [2, 2]
