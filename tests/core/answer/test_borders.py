"""Answers are made whole or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.answer.borders import whole

AUTHORS = "(see Linderman, George C.; Steinerberger, Stefan)"
REAL = [
    ("the weight p_{ii} is the share", "p_{ii", "p_{ii}"),
    (AUTHORS, "George C.; Steinerberger", "see Linderman, George C.; Steinerberger, Stefan"),
    ("by George C. Linderman today", "George C.", "George C. Linderman"),
    ("Mr. J. R. Smith came", "Smith", "J. R. Smith"),
    ("Jean-Paul Sartre wrote it", "Paul Sartre", "Jean-Paul Sartre"),
    ("because *path operations* are evaluated in order", "path operations* are", "path operations"),
    ("raise a `WebSocketDisconnect` exception", "`WebSocketDisconnect", "WebSocketDisconnect"),
    ("see [the docs](https://a.b/c_(d)) now", "the docs", "the docs"),
    ("see [the docs of it](https://a.b) now", "the docs of it](https", "the docs of it"),
    ("| 12 | Paris | 3 |", "12 | Paris", "Paris"),
    ('<b class="x">Bold words</b> move', 'x">Bold words', "Bold words"),
    ("He said “I will go” and left", "said “I will", "said “I will go”"),
    ('she said "go on" twice', '"go', '"go on"'),
    ("it cost 3.5 million", "5 million", "3.5 million"),
    ("they grow 5,000 apples", "000 apples", "5,000 apples"),
    ("the well-known man", "known man", "well-known man"),
    ("I don't go", "don", "don't"),
    ("calls f(x, g(y)) at the end", "x, g(y", "x, g(y)"),
    ("accepts a custom tag.\n\nHere is the grammar", "custom tag.\n\nHere is", "custom tag"),
    ("a) first b) second", "a) first", "first"),
    ("(foo)", "(foo)", "foo"),
    ("It is 8 (of 12) in all", "It is 8 (of", "It is 8 (of 12)"),
    ("it cost ~~900~~1150 pounds", "900~~1150", "1150"),
    ("it cost ~~900~~1150 pounds", "~~900~~1150 pounds", "1150 pounds"),
    ("some 10^6 stars", "10", "10^6"),
    ("some 10<sup>-6</sup> grams", "6</sup> grams", "10<sup>-6</sup> grams"),
    ("growth was -0.7% then", "0.7%", "-0.7%"),
    ("boils at (−183 °C)", "183 °C", "−183 °C"),
    ("a loss of -$3.5 million", "3.5 million", "-$3.5 million"),
    ("sold for US$450 million", "450 million", "US$450 million"),
    ("p<0.001 and ≥5 mg", "0.001", "<0.001"),
    ("p<0.001 and ≥5 mg", "5 mg", "≥5 mg"),
    ("about ~20 g of salt", "20 g", "~20 g"),
    ("open 9–17 daily", "17", "17"),
    ("in 1939 –1945, at 3 °C or –5 °C", "1945", "1945"),
    ("in 1939 –1945, at 3 °C or –5 °C", "5 °C", "–5 °C"),
    ("<b>5 mg</b> of it", "5 mg", "5 mg"),
    ("> 5 mg\n- 7 mg", "5 mg", "5 mg"),
    ("> 5 mg\n- 7 mg", "7 mg", "7 mg"),
    ("World War I. Germany lost", "Germany", "Germany"),
    ("World War I. Germany lost", "War I.", "War I."),
    ("some vitamin C. Anna took it", "Anna", "Anna"),
    ("A. London\nB. Paris", "Paris", "Paris"),
    ("10⁻⁷ m wide", "10", "10⁻⁷"),
    ("ISBN 978-3-16-148410-0", "3-16-148410-0", "978-3-16-148410-0"),
    ("on 2023-05-17 or 17/05/2023", "05", "2023-05-17"),
    ("on 2023-05-17 or 17/05/2023", "17/05", "17/05/2023"),
    ("COVID-19 at AT&T at 9:30", "COVID", "COVID-19"),
    ("COVID-19 at AT&T at 9:30", "T&T", "AT&T"),
    ("COVID-19 at AT&T at 9:30", "30", "9:30"),
    ("यह बड़ा शहर है।", "शहर ह", "शहर है"),
    ("a cafe\u0301 there", "cafe", "cafe\u0301"),
    ("the U.S. army of Apple Inc. came", "U.S", "U.S."),
    ("the U.S. army of Apple Inc. came", "Apple Inc", "Apple Inc."),
]


WHOLE_ALREADY = ["C++", "x < y", ".github/x.yml", "$3", "100%", "the 'Rose,' Captain Hawkins", "2 * 3 and 4"]


NONE = [
    ("** ** text", "** **"),
    ("see [the docs](https://a.b/c) now", "](https://a.b/c)"),
    ("a | --- | --- | b", "| --- |"),
    ("so ... on", "..."),
    ("<br/> x", "<br/>"),
    ('1;"', '1;"'),
]


def said(text: str, span: str) -> str | None:
    place = whole(text, text.index(span), text.index(span) + len(span))
    return None if place is None else text[slice(*place)]


@pytest.mark.parametrize(("text", "span", "answer"), REAL)
def test_half_an_answer_is_made_whole(text: str, span: str, answer: str) -> None:
    assert said(text, span) == answer


@pytest.mark.parametrize("span", WHOLE_ALREADY)
def test_what_is_whole_stays(span: str) -> None:
    assert said(f"so {span} it is", span) == span


@pytest.mark.parametrize(("text", "span"), NONE)
def test_markup_is_no_answer(text: str, span: str) -> None:
    assert said(text, span) is None


def test_a_bracket_that_closes_too_far_away_is_cut_off() -> None:
    text = f"the mill of Bray (which {'very ' * 40}old)"
    assert said(text, "the mill of Bray (which") == "the mill of Bray"


@given(st.text(alphabet="ab1 .,;*`\"'()[]{}<>|\n-_A“”", max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_never_half_a_bracket_nor_half_a_word(text: str, first: int, last: int) -> None:
    place = whole(text, min(first, len(text)), min(last, len(text)))
    if place is None:
        return
    start, end = place
    assert 0 <= start < end <= len(text)
    answer = text[start:end]
    assert any(character.isalnum() for character in answer)
    assert all(answer.count(left) == answer.count(right) for left, right in ("()", "[]", "{}", "“”"))
    assert answer.count('"') % 2 == answer.count("`") % 2 == 0
    assert not (start and text[start - 1].isalnum() and text[start].isalnum())
    assert not (end < len(text) and text[end - 1].isalnum() and text[end].isalnum())
