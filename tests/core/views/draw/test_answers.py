"""A language model's answer as it is drawn."""

from __future__ import annotations

import json

from core.answer.cited import CitedAnswer, CitedSentence
from core.llm.protocol import Cost
from core.views.draw.answers import asking, cited


def drawn(*texts: str, refused: tuple[int, ...] = ()) -> str:
    sentences = tuple(CitedSentence(text, ()) for text in texts)
    return json.dumps(cited(CitedAnswer(" ".join(texts), sentences, refused, "tiny", Cost(1))))


def test_marks_of_markdown_are_not_spelled() -> None:
    said = drawn("## Answer **Anna** hid it.", "- In `a_b`, <b>so</b>.")
    assert all(words in said for words in ("Answer Anna hid it.", "In a_b, <b>so</b>."))
    assert not any(mark in said for mark in ("**", "##", "- In", "`"))
    assert '"Anna hid"' in json.dumps(asking("tiny", "**Anna** hid")), "nor while it comes"


def test_what_was_not_given_is_counted() -> None:
    assert "cites passage 7, which it was not given" in drawn("So.", refused=(7,))
    assert "cites passages 7, 9, which it was not given" in drawn("So.", refused=(7, 9))
