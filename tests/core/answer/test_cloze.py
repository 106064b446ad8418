"""Questions with something hidden: what is hidden stands in what is left, and no title gives it away."""

from random import Random

from core.answer.cloze import cloze_lesson
from core.answer.lesson import occurrences

BRIDGE = "Iron Bridge: The bridge was drawn by Ada Marsh in 1781. It crosses the Severn near Coalport. Before that Ada Marsh had built a mill at Coalport."
MILL = "Coalport Mill: The mill stands on the Severn. It was built for Tom Reed."


def test_what_is_hidden_can_be_pointed_at_and_the_sentence_is_gone() -> None:
    seen = set()
    for seed in range(60):
        lesson = cloze_lesson([BRIDGE, MILL], Random(seed))
        if lesson is None:
            continue
        (hidden,) = lesson.answers
        seen.add(hidden)
        assert any(True for row in lesson.places for _ in occurrences(hidden, lesson.passages[row]))
        assert not any(True for _ in occurrences(hidden, lesson.question))
        assert sum(map(len, lesson.passages)) < len(BRIDGE) + len(MILL)
        assert lesson.question.endswith("?") and "." not in lesson.question
    assert seen == {"Ada Marsh", "Severn"}  # a title names Coalport, and nothing else stands twice


def test_passages_in_which_nothing_stands_twice_make_no_question() -> None:
    assert cloze_lesson(["Reed: Tom Reed lived in Leeds for most of his life. He built two mills in 1790 for Ruth."], Random(0)) is None
