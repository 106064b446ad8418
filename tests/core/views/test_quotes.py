"""The words of a chunk that count: whole, in their sentence, as their document means them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core.views.quotes import MOST, ChunkInPlace, Excerpt, alone, place_of, quoted, rendered

TABLE = "Intro.\n\n| name | built | cost |\n| --- | --- | --- |\n| Old mill | 1822 | ~~900~~1150 |\n| New | 1900 | 3 |"


def place(words: str, text: str) -> tuple[int, int]:
    return text.index(words), text.index(words) + len(words)


def test_the_sentence_around_a_place_is_shown_and_not_the_head_of_the_chunk() -> None:
    text = "# Weather\n\n" + "It rained. " * 60 + "Ruth left the lamp\nin the **old mill**. Bo slept."
    said = quoted(alone(text), place("old mill", text))
    assert said == Excerpt("Ruth left the lamp in the ", "old mill", ".")


def test_without_a_place_the_sentence_that_fits_best_with_whole_words_marked() -> None:
    text = "# The key\n\nThe keyboard is old. Anna keeps the key in a drawer. The key is gone."
    assert quoted(alone(text), None, ["key", "anna"]) == Excerpt("", "Anna", " keeps the key in a drawer.")
    told = quoted(alone(text), None, ["key", "anna"], told={"anna"})
    assert told == Excerpt("Anna keeps the ", "key", " in a drawer.")
    assert quoted(alone("The keyboard."), None, ["key"]).mark == ""


def test_what_is_marked_is_whole_and_what_stands_around_it_is_cut() -> None:
    answer = "the answer of many words " * 12
    text = "before " * 200 + answer + "behind " * 200
    said = quoted(alone(text), place(answer.strip(), text), most=100)
    assert said.mark == answer.strip()
    assert said.before.startswith("… before")
    assert said.after.endswith("behind …")
    assert len(said.before) + len(said.after) <= 104


@pytest.mark.parametrize(
    ("words", "shown"),
    [("1822", "Old mill · built: 1822"), ("Old mill", "name: Old mill"), ("1150", "Old mill · cost: 1150")],
)
def test_a_cell_stands_with_its_heads(words: str, shown: str) -> None:
    assert str(quoted(alone(TABLE), place(words, TABLE))) == shown
    first = TABLE.index("| Old")
    cut = ChunkInPlace(TABLE, first, len(TABLE))
    start, end = place(words, TABLE)
    assert str(quoted(cut, (start - first, end - first))) == shown, "its chunk begins behind the head"


def test_a_cell_stands_whole_and_its_row_by_a_name() -> None:
    table = "| # | Pool | Hours |\n| --- | --- | --- |\n| 2 | City | closed on Mondays and in August |"
    at = table.index("Mondays")
    shown = quoted(alone(table), (at, at + 7))
    assert (str(shown), shown.mark) == ("City · Hours: closed on Mondays and in August", "Mondays")


def test_a_heading_does_not_run_into_a_quote() -> None:
    text = "## Boats\nThe boat is old."
    assert str(quoted(alone(text), None, ["boats", "boat"])) == "The boat is old."


def test_an_answer_reads_as_its_document_means_it() -> None:
    text = "~~900~~1150 stars, 10<sup>6</sup> of H<sub>2</sub>O, *much*"
    assert rendered(alone(text), (0, len(text))) == "1150 stars, 10^6 of H2O, much"


def test_words_are_found_whole() -> None:
    assert place_of("key", "The keyboard, the Key.") == (18, 21)
    assert place_of("key", "keyboards") is None
    assert place_of(" ", "a b") is None


@example("a**a", 0, 4)
@example("| a |", 2, 3)
@given(st.text(alphabet="ab #|\n*~<>sup/-ß.İ", max_size=400), st.integers(0, 400), st.integers(0, 400))
def test_a_quote_is_short(text: str, first: int, last: int) -> None:
    for at in ((min(first, len(text)), min(last, len(text))), None):
        said = quoted(alone(text), at, ["a", "ab"])
        assert len(said.before) + len(said.after) <= MOST + 4
        assert "\n" not in str(said)
