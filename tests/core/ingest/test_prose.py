"""Documents as they are read."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.types import DocumentKind
from core.ingest.prose import MAX_PARSED, Element, Prose, Words, plain, unmarked
from tests.conftest import few


def read(text: str, kind: DocumentKind = "markdown") -> str:
    return "".join(words.text for words in Prose(text, 0, len(text), kind).words(0, len(text)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("The **principal _keeper_** trims `the_lamp`.", "The principal keeper trims the_lamp."),
        ('See [the *log*](https://x.example/a_b_c "why") and ![a chart](c.png).', "See the log and a chart."),
        ("## Crew\n\n- one\n* two", "Crew\n\n• one\n• two"),
        ("| a | b |\n|---|---|\n| **c** | d |", "a · b\nc · d"),
        ('| a | [x](y "z") `p\\|q` |\n||', "a · x p\\|q\n"),
        (
            "3 * 4 * 5, snake_case_name, 2**8, \\*so\\*, __init__",
            "3 * 4 * 5, snake_case_name, 2**8, *so*, init",
        ),
        ("$x_{i}^2$ costs $5 and $6", "x_{i}^2 costs $5 and $6"),
        ("One line\ngoes on.\n\nA new one", "One line goes on.\n\nA new one"),
        ("Before\n```py\na_b_ = **k\n```\n**after**", "Before\na_b_ = **k\nafter"),
        ("> **Note**\n>\n> > a > b\n\n2 > 1", "Note\n\na > b\n\n2 > 1"),
        ("**open and `open", "**open and `open"),
        ("***both*** **x *y***, *x **y***, ***x** y*, ***x* y**", "both x y, x y, x y, x y"),
        ("**a *b** c, **a*, 2 ** 3, ____ ****", "a *b c, **a*, 2 ** 3, ____ ****"),
        ("Name | Age\n:--- | ---:\nAnna | **5**\nBo | 6\n\na | b", "Name · Age\nAnna · 5\nBo · 6\n\na | b"),
        ("| a | b\n|---|---\n| c | d\ne", "a · b\nc · d\ne"),
        ("Costs\n=====\nThe sum.\n\nRest\n--\n- one", "Costs\nThe sum.\n\nRest\n• one"),
        ("One\n\n---\n\n- two\n---\nx", "One\n\n---\n\n• two\n--- x"),
        ("[Mercury](https://x/Mercury_(planet)) [![Build](a.svg)](b) is", "Mercury Build is"),
        ("**[x](http://a/**b) `&amp;` c**", "x &amp; c"),
        (
            "a<br>b<BR/>\nc&nbsp;d &amp; &#8212; &lt;b> &no; &notareal; \\&amp;",
            "a b c d & — <b> &no; &notareal; &amp;",
        ),
        ("a<!-- *b*\n- c -->d <!-- e", "ad <!-- e"),
        ("[the log][1] a[i][j] [Log][]\n\n[1]: x\n\n[Log]: y", "the log a[i][j] Log\n\n[1]: x\n\n[Log]: y"),
        ("x[^1]\n\n[^1]: y\n\n- [x] done", "x[1]\n\n[1]: y\n\n• [x] done"),
    ],
)
def test_marks_are_drawn_and_not_spelled(text: str, shown: str) -> None:
    assert read(text) == shown


def test_marks_of_html_that_a_page_shows_are_words() -> None:
    assert (
        read("a<br>b &lt; <!-- c --> x<sup>2</sup> **d**", "html") == "a<br>b &lt; <!-- c --> x<sup>2</sup> d"
    )


def test_elements_lie_within_each_other() -> None:
    text, strong = "a **b [c](d) `e`**", ("strong", "")
    assert Prose(text, 0, len(text), "markdown").words(0, len(text)) == [
        Words("a ", ()),
        Words("b ", (strong,)),
        Words("c", (strong, ("span", "d"))),
        Words(" ", (strong,)),
        Words("e", (strong, ("code", ""))),
    ]


def test_stars_may_be_strong_and_leaning() -> None:
    strong, leaning = Element("strong"), Element("em")
    for text, shown in (
        ("***x***", [Words("x", (leaning, strong))]),
        ("**x *y***", [Words("x ", (strong,)), Words("y", (strong, leaning))]),
        ("***x** y*", [Words("x", (leaning, strong)), Words(" y", (leaning,))]),
    ):
        assert Prose(text, 0, len(text), "markdown").words(0, len(text)) == shown


def test_lines_that_the_page_broke_are_joined_and_those_of_the_writer_are_not() -> None:
    text = "The _long_ evening wore on until the very last of the\nguests had gone."
    own = "\n\n  A verse is short\n  and stays.\nShort lines\nstay too; 2 *x* 3"
    joined = "The long evening wore on until the very last of the guests had gone."
    assert read(text + own, "text") == joined + own


def test_a_fence_that_was_opened_before_is_known() -> None:
    text = "```\n" + "x\n" * 50 + "a_b_ **c**\n```\n**d**"
    start = text.index("a_b_")
    words = Prose(text, start, len(text), "markdown").words(start, len(text))
    assert [one.text for one in words] == ["a_b_ **c**\n", "d"]
    assert words[0].elements[0].tag == "code"


MARKS = ["**", "*", "_", "__", "`", "```\n", "[", "](", ")", "!", "$", "\\", "\n", "\n\n", "# ", "- ", "| "]
MARKS += ["|---|\n", "word", " ", "é", "***", "a | b\n", "-|-\n", "\n===\n", "[^1]", "<!--", "-->", "<br>"]
MARKS += ["&amp;", "][", "\n[a]: ", "(b)", "[!["]


@given(st.lists(st.sampled_from(MARKS), max_size=40), st.data())
def test_slices_together_read_as_the_whole(pieces: list[str], data: st.DataObject) -> None:
    """Whatever is cut where; and nothing is shown that the text doesn't hold but bullets and blanks."""
    text = "".join(pieces)
    for kind in ("markdown", "html", "text", "chunks"):
        prose = Prose(text, 0, len(text), kind)
        whole = "".join(words.text for words in prose.words(0, len(text)))
        borders = sorted({0, len(text), *data.draw(st.lists(st.integers(0, len(text)), max_size=5))})
        parts = [words.text for first, last in pairwise(borders) for words in prose.words(first, last)]
        assert "".join(parts) == whole
        left = iter(text)
        assert all(character in "•· " or character in left for character in whole), (text, whole)


@pytest.mark.parametrize(
    "unit",
    few(
        [
            "**a ",
            "[a](",
            "| ",
            "`a ",
            "$a_",
            "\\",
            "*a*b",
            "a\n",
            "<!--",
            "[a][b]",
            "[a]((b)",
            "***a",
            "a|\n-|\n",
        ],
        8,
    ),
)
def test_hostile_repetitions_take_no_time(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    row = "|" + " " * (MAX_PARSED - 3) + "x|"
    began = time.process_time()
    words = Prose(text, 0, len(text), "markdown").words(0, len(text))
    assert plain(row) == "x"
    assert time.process_time() - began < 5
    assert len("".join(one.text for one in words)) >= len(text) - MAX_PARSED


def test_a_card_leaves_out_headings() -> None:
    assert plain("## Crew\nThe **second** keeper") == "The second keeper"
    assert plain("## Crew") == "Crew"
    assert unmarked("## Crew\nThe **second** keeper") == "Crew\nThe second keeper"
