"""What the page says of an answer: words, confidence, the place in its chunk. Pure trees, text only."""

from __future__ import annotations

import json
from dataclasses import replace

from core.answer.cited import CitedAnswer, CitedSentence
from core.answer.evidence import EvidenceAnswer
from core.base.types import Chunk
from core.ingest.prose import Prose
from core.llm.protocol import Cost
from core.views.draw.answers import answer, answer_place, asking, cited, in_column
from core.views.draw.nodes import Node
from core.views.draw.text import drawn
from core.views.quotes import LONGEST_MARK, ChunkInPlace, alone
from tests.app.markup import markup

TEXTS = {3: "It rained all day. Ruth went to the mill.", 4: "Nothing came. Nobody spoke."}
TOLD = EvidenceAnswer("mill", 0.756, "reader", (3,), (36, 40))
GUESS = replace(TOLD, state="guess", confidence=0.42)
ABSENT = EvidenceAnswer("", 0.2, "reader", state="absent", passage=4, nearest=(14, 20))
UNSURE = replace(ABSENT, state="unsure")
ASKS = replace(ABSENT, state="passages", asks="yes or no")


def chunk(chunk_id: int) -> Chunk:
    """One that begins at the eighth character."""
    return Chunk(chunk_id, 0, "text", (), "Ruth went to the _old mill_.", 8, 36, 8)


def test_an_answer_with_its_chunk() -> None:
    said = json.dumps(answer(TOLD, shown), ensure_ascii=False)
    assert all(words in said for words in ('"mill"', "76 %", "chunk 3", '"data-act": "open"', "by reader"))
    assert "Ruth went to the " in strings(answer(TOLD, shown))
    assert "rained" not in said
    assert answer(None) == []
    assert '"mill"' in json.dumps(answer(TOLD)), "texts may stay out"


def test_a_language_model_that_was_cut_or_thinks_is_told() -> None:
    thought = "<b>Hm.</b> " * 400
    cut = CitedAnswer("In the", (CitedSentence("In the", ()),), (), "tiny", Cost(1, 9, 7), True, thought)
    assert {"was cut off after 7 tokens; allow longer replies", thought} <= {*strings(cited(cut))}
    assert "No answer in the evidence." not in strings(cited(cut))
    assert "No answer in the evidence." in strings(cited(CitedAnswer("", (), (), "tiny", Cost(1))))
    assert "Thinking…" in strings(asking("tiny", "", thought))
    assert max(map(len, strings(asking("tiny", "", thought)))) == 2_000


def test_a_known_answer_is_compared() -> None:
    for known, words in (("the mill", "right"), ("the barn", "wrong · known answer: the barn")):
        for told in (TOLD, GUESS):
            assert words in json.dumps(answer(told, shown, known), ensure_ascii=False)
            assert words in json.dumps(in_column(told, 0, known, shown), ensure_ascii=False)
    for nothing in (UNSURE, ABSENT, ASKS):
        assert "no answer · known answer: the barn" in json.dumps(
            answer(nothing, shown, "the barn"), ensure_ascii=False
        )
    assert "qx-judged" not in json.dumps(answer(TOLD, shown))


def test_every_state_has_its_words_and_its_sentence() -> None:
    for told, words, sentence in (
        (GUESS, "Best guess (42 %), please check", ["Ruth went to the ", "mill", "."]),
        (UNSURE, "Not sure which words answer it: read the likeliest place", ["Nobody", " spoke."]),
        (ABSENT, "Not in this document, as far as I see", ["Nobody", " spoke."]),
        (
            ASKS,
            "Asks for yes or no, which no words of a text are: read what bears on it",
            ["Nobody", " spoke."],
        ),
    ):
        for tree in (answer(told, shown), [in_column(told, 0, "", shown)]):
            said = strings(tree)
            assert words in said
            assert all(part in said for part in sentence)
            assert f"chunk {told.shown_chunk}" in said
            assert not any("% sure" in part for part in said)


def shown(chunk_id: int) -> ChunkInPlace:
    return alone(TEXTS[chunk_id])


def test_the_place_is_marked_in_its_chunk_alone() -> None:
    told = replace(TOLD, place=(17, 21))
    place = answer_place(chunk(3), told)
    assert place == (25, 29)
    assert answer_place(chunk(4), ASKS) == answer_place(chunk(4), UNSURE) == (22, 28)
    for chunk_id, told in ((4, TOLD), (4, ABSENT), (3, None)):
        assert answer_place(chunk(chunk_id), told) is None
    text = "Before. Ruth went to the _old mill_."
    prose = Prose(text, 0, len(text), "text")
    assert drawn(prose, 0, len(text), place) == [
        *("Before. Ruth went to the ", ["mark", {"class": "qx-answer-mark"}, [["em", {}, ["old"]]]]),
        *(["em", {}, [" mill"]], "."),
    ]
    assert drawn(prose, 8, 12, place) == ["Ruth"], "it lies behind what is shown"


def test_markup_stays_text_and_length_is_bounded() -> None:
    evil = EvidenceAnswer("<img src=x onerror=alert(1)>" * 100, 0.5, "<b>", (1,))
    for tree in (answer(evil), [in_column(evil, 2)]):
        texts = [text for text in strings(tree) if "<img" in text]
        assert texts
        assert max(map(len, texts)) <= LONGEST_MARK + 1


def test_a_column_names_its_chunk_for_its_own_place() -> None:
    assert in_column(None, 0) is None
    assert '"3 2"' in json.dumps(in_column(TOLD, 2))


def strings(tree: list[Node]) -> list[str]:
    """Every text of a tree, attributes left out."""
    return [*markup(tree).strings]
