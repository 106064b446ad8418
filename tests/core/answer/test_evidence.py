"""Answers of runs: read in document order, kept as JSON, and believed only as far as they
fit the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.answer.evidence import EvidenceAnswer, answer_evidence
from core.answer.protocol import Answer, Span
from tests.core.answer.conftest import PlainReader

TEXTS = {7: "Bo came.", 3: "Ruth went to the mill."}
TOLD = EvidenceAnswer("mill", 0.75, "pointer", (3,), (17, 21), passage=3)
UNSURE = EvidenceAnswer("", 0.2, "r", reliable=False, passage=7)


class Pointer(PlainReader):
    """Points at a word wherever it stands first."""

    name = "pointer"

    def read(self, question: str, passages: Sequence[str]) -> Answer:  # noqa: ARG002
        for row, passage in enumerate(passages):
            if (at := passage.find("mill")) >= 0:
                return Answer("mill", 0.75, Span(row, at, at + 4), passage=row)
        return Answer("", 0.5)


class Ranked(Pointer):
    """Points at the word in the passage that was found first."""

    def read_many(
        self, questions: Sequence[str], passages: Sequence[Sequence[str]], ranks: Sequence[Sequence[int]] = ()
    ) -> list[Answer]:
        firsts = [[own[order.index(0)]] if order else [] for own, order in zip(passages, ranks, strict=True)]
        return super().read_many(questions, firsts)


def test_the_reader_hears_in_which_order_chunks_were_found() -> None:
    told = answer_evidence(Ranked(), ["Where?"] * 3, [TEXTS] * 3, [(3, 7), (7, 3), ()])
    assert [answer.text for answer in told] == ["mill", "", ""]


def test_the_place_is_that_of_the_chunk() -> None:
    told = answer_evidence(Pointer(), ["Where?", "Where?"], [TEXTS, {7: "Bo came."}])
    assert told == [TOLD, EvidenceAnswer("", 0.5, "pointer")]


@pytest.mark.parametrize(
    "told", [TOLD, EvidenceAnswer("yes", 0.5, "r"), EvidenceAnswer("by a model", 0.1, "m", (7, 3)), UNSURE]
)
def test_json_round_trip(told: EvidenceAnswer) -> None:
    assert EvidenceAnswer.from_json(told.to_json(), TEXTS) == told


def test_what_does_not_fit_the_evidence_is_no_answer() -> None:
    for change in (
        {"text": 1},
        {"confidence": 2},
        {"by": None},
        {"citations": [99]},
        {"citations": "3"},
        {"span": {"chunk_id": 7, "start": 0, "end": 4}},
        {"span": {"chunk_id": 3, "start": 0, "end": 4}},
        {"span": [3, 17, 21]},
        {"reliable": "yes"},
        {"passage": 99},
    ):
        assert EvidenceAnswer.from_json(TOLD.to_json() | change, TEXTS) is None, change
    assert EvidenceAnswer.from_json({}, TEXTS) is None


def test_logs_without_reliability_are_read() -> None:
    old = {name: value for name, value in TOLD.to_json().items() if name not in ("reliable", "passage")}
    read = EvidenceAnswer.from_json(old, TEXTS)
    assert (read.text, read.reliable, read.passage) == ("mill", True, None)
