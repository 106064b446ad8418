"""What the page says of an answer: words, confidence, the place in its chunk. Pure trees, text only."""

from __future__ import annotations

import json

from core.answer.evidence import EvidenceAnswer
from core.base.types import Chunk
from core.ingest.prose import Prose
from core.views.draw.answers import LONGEST, answer, answer_place, in_column
from core.views.draw.text import drawn

TOLD = EvidenceAnswer("mill", 0.756, "reader", (3,), (17, 21))
NOBODY = EvidenceAnswer("", 0.9, "reader")
UNSURE = EvidenceAnswer("p_{ii", 0.18, "reader", (3,), (0, 5), reliable=False, passage=3)


def chunk(chunk_id: int) -> Chunk:
    """One that begins at the eighth character."""
    return Chunk(chunk_id, 0, "text", (), "Ruth went to the _old mill_.", 8, 36, 8)


def test_an_answer_with_its_chunk() -> None:
    said = json.dumps(answer(TOLD, {}), ensure_ascii=False)
    assert all(words in said for words in ('"mill"', "76 %", "chunk 3", '"data-act": "open"', "by reader"))
    assert answer(None, {}) == []


def test_a_known_answer_is_compared() -> None:
    for known, words in (("the mill", "right"), ("the barn", "wrong · known answer: the barn")):
        assert words in json.dumps(answer(TOLD, {}, known), ensure_ascii=False)
        assert words in json.dumps(in_column(TOLD, 0, known), ensure_ascii=False)
    assert "no answer · known answer: the barn" in json.dumps(
        answer(UNSURE, {}, "the barn"), ensure_ascii=False
    )
    assert "qx-judged" not in json.dumps(answer(TOLD, {}))
    in_doubt = json.dumps(in_column(UNSURE, 0, "the barn"), ensure_ascii=False)
    assert "no answer · known answer: the barn" in in_doubt
    assert "no reliable answer" not in in_doubt, "said once"


def test_no_answer_says_so_and_points_nowhere() -> None:
    said = json.dumps(answer(NOBODY, {}), ensure_ascii=False)
    assert "No answer in the evidence." in said
    assert "data-act" not in said
    assert "no answer in the evidence" in json.dumps(in_column(NOBODY, 0))


def test_an_unreliable_answer_is_held_back_for_its_best_passage() -> None:
    said = json.dumps(answer(UNSURE, {3: "p_{ii} is the weight.", 4: "Nothing."}), ensure_ascii=False)
    assert all(
        words in said
        for words in ("No reliable answer.", "p_{ii} is the weight.", "18 %", "chunk 3", '"data-act": "open"')
    )
    assert '"p_{ii"' not in said
    column = json.dumps(in_column(UNSURE, 0))
    assert "no reliable answer" in column
    assert "chunk 3" in column
    assert '"p_{ii"' not in column
    assert answer_place(chunk(3), UNSURE) is None
    nothing = EvidenceAnswer("", 0.2, "reader", reliable=False, passage=4)
    assert "Nothing." in strings(answer(nothing, {4: "Nothing."}))


def test_the_place_is_marked_in_its_chunk_alone() -> None:
    place = answer_place(chunk(3), TOLD)
    assert place == (25, 29)
    for chunk_id, told in ((4, TOLD), (3, NOBODY), (3, None)):
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
    for tree in (answer(evil, {}), [in_column(evil, 2)]):
        texts = [text for text in strings(tree) if "<img" in text]
        assert texts
        assert max(map(len, texts)) <= LONGEST + 1


def test_a_column_names_its_chunk_for_its_own_place() -> None:
    assert in_column(None, 0) is None
    assert '"3 2"' in json.dumps(in_column(TOLD, 2))


def strings(node: object) -> list[str]:
    """Every text of a tree, attributes left out."""
    if isinstance(node, str):
        return [node]
    if isinstance(node, list):
        children = node[2] if len(node) == 3 and isinstance(node[1], dict) else node
        return [text for child in children for text in strings(child)]
    return []
