"""Answers of runs: read in document order, kept as JSON, and believed only as far as they fit the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.answer.evidence import EvidenceAnswer, answer_evidence
from core.answer.protocol import Answer, Span
from tests.plain_reader import PlainReader

TEXTS = {7: "Bo came.", 3: "Ruth went to the mill."}
TOLD = EvidenceAnswer("mill", 0.75, "pointer", (3,), (17, 21), passage=3, nearest=(17, 21))
GUESS = replace(TOLD, state="guess")
ABSENT = EvidenceAnswer("", 0.2, "r", state="absent", passage=7, nearest=(0, 2))
UNSURE = replace(ABSENT, state="unsure")
PASSAGES = EvidenceAnswer("", 0.5, "r", state="passages", passage=7, asks="yes or no")


class Pointer(PlainReader):
    """Points at a word wherever it stands first."""

    name = "pointer"

    def read(self, question: str, passages: Sequence[str]) -> Answer:  # noqa: ARG002
        for row, passage in enumerate(passages):
            if (at := passage.find("mill")) >= 0:
                span = Span(row, at, at + 4)
                return Answer("mill", 0.75, span, "answer", span)
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
    assert told == [TOLD, EvidenceAnswer("", 0.5, "pointer", state="absent")]


def test_what_no_span_can_answer_is_told_with_what_bears_on_it() -> None:
    [told] = answer_evidence(Pointer(), ["Did she go there?"], [TEXTS])
    assert (told.state, told.asks, told.told_text, told.place) == ("passages", "yes or no", "", None)
    assert told.place_in(3) == (17, 21)
    assert told.to_json()["text"] == ""


class Unsure(Pointer):
    """Points at the same word, and does not believe in it."""

    def read(self, question: str, passages: Sequence[str]) -> Answer:
        return replace(super().read(question, passages), confidence=0.1, state="absent")


def test_an_explanation_that_no_phrase_gives_is_not_denied() -> None:
    why, who = answer_evidence(Unsure(), ["Why did she go there?", "Who went there?"], [TEXTS, TEXTS])
    assert (why.state, why.asks, why.told_text) == ("passages", "an explanation", "")
    assert why.place_in(3) == who.place_in(3) == (17, 21)
    assert who.state == "absent"
    [sure] = answer_evidence(Pointer(), ["Why did she go there?"], [TEXTS])
    assert sure.told_text == "mill"


@pytest.mark.parametrize(
    "told",
    [
        *(TOLD, GUESS, UNSURE, ABSENT, PASSAGES),
        *(EvidenceAnswer("yes", 0.5, "r"), EvidenceAnswer("by a model", 0.1, "m", (7, 3))),
    ],
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
        {"nearest": [0]},
        {"nearest": [21, 99]},
        {"state": "absent"},
        {"state": "sure"},
        {"asks": "yes or no"},
    ):
        assert EvidenceAnswer.from_json(TOLD.to_json() | change, TEXTS) is None, change
    assert EvidenceAnswer.from_json({}, TEXTS) is None


def test_logs_from_before_states_are_read() -> None:
    new = ("state", "asks", "nearest")
    old = {name: value for name, value in TOLD.to_json().items() if name not in new}
    for change, state in (
        ({}, "answer"),
        ({"reliable": False}, "guess"),
        ({"text": "", "span": None}, "absent"),
    ):
        assert EvidenceAnswer.from_json(old | change, TEXTS).state == state
    del old["reliable"], old["passage"]
    read = EvidenceAnswer.from_json(old, TEXTS)
    assert (read.text, read.state, read.passage) == ("mill", "answer", None)
