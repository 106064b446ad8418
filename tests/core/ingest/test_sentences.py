"""Sentence borders: the cases that go wrong elsewhere, and what must hold of any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ingest import split_sentences
from tests.conftest import few

CASES = {
    "titles and initials": ["Mr. Smith met J. R. Jones in St. Louis.", "They left."],
    "dotted abbreviations": [
        "He served in the U.S. Army, e.g. in Rome.",
        "She lives in the U.S.",
        "The rest does not.",
    ],
    "times of day": ["It began at 5 p.m. Monday.", "It ended at 7 p.m.", "The rest is known."],
    "numbers": ["Pi is 3.14 or so.", "No. 5 is here.", "No.", "Never."],
    "numbered items": ["1. Apples are good.", "2. Pears are better."],
    "quotes": ['"Really?" she said.', '"Yes."', "Then he left."],
    "brackets": ["(It was so.)", "Next one."],
    "small letter after a mark": ["Was it he? she wondered."],
    "ellipses": ["Wait... there is more.", "And then…", "Nothing."],
    "German": ["Er kam z. B. am Abend bzw. nachts.", "Das ist gut."],
    "references to notes": ["It is deep.[1]", "It is old.[2][3]", "So it was in 1902.^4", "Boats lie there."],
    "years and dates": [
        "Built c. 1450 by monks (b. 1420).",
        "Er kam am 3. Mai im 19. Jahrhundert.",
        "Das war gut.",
    ],
    "a capital letter at the end": ["They took vitamin C.", "The doctor left J. Smith."],
    "French": ["M. Dupont arriva.", "Il dit « non. »", "Puis il partit."],
}


@pytest.mark.parametrize("name", CASES)
def test_sentences_end_where_a_reader_would_end_them(name):
    text = " ".join(CASES[name])
    assert [text[a:b] for a, b in split_sentences(text)] == CASES[name]


CUT = {
    "full stops of CJK need no blank": ("这是一句。", "那是另一句！", "是吗？", "「好。」", "他说。"),
    "line breaks inside a paragraph": (
        *("The moon poured\ndown its light\ninto the plain. ", "It\nwas late.\n\n", "A new paragraph"),
    ),
    "empty lines and list items end sentences without a full stop": (
        *("first thought\ngoes on\n\n  \n", "second\n", "- item one\n", "- item two\n", "| a | b |"),
    ),
}
"""Sentences with what stands between them."""


@pytest.mark.parametrize("name", CUT)
def test_sentences_end_without_a_blank_or_a_mark(name):
    text = "".join(CUT[name])
    assert [text[a:b] for a, b in split_sentences(text)] == [sentence.strip() for sentence in CUT[name]]


@given(st.text(alphabet=st.sampled_from("aA1I .!?\n\t。”\"')(-|#…\u00a0é\U0001f600"), max_size=80))
def test_spans_are_ordered_trimmed_and_leave_out_only_blanks(text):
    spans = split_sentences(text)
    edges = [0, *(edge for span in spans for edge in span), len(text)]
    assert edges == sorted(edges)
    assert all(text[a:b].strip() == text[a:b] != "" for a, b in spans)
    assert not any(text[a:b].strip() for a, b in zip(edges[::2], edges[1::2], strict=True))


@pytest.mark.parametrize("piece", few([".", "\n ", "\n1. ", '."', "a.", "\n---", "。"], 3))
def test_hostile_repetition_stays_linear(piece):
    assert split_sentences(piece * 50_000 + "x")  # quadratic rules would need minutes
