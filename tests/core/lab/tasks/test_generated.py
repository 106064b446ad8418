"""Generated examples: support holds the deciding facts, wherever packing put them."""

from __future__ import annotations

import re
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from core.encode.tokens import FastTokenizer
from core.lab.tasks.example import Example, Noise, Woven
from core.lab.tasks.generated import (
    FIRST_SEED,
    document_examples,
    generated_examples,
    story_example,
)
from core.lab.tasks.narrative import generate_narrative
from core.lab.tasks.story import WORDINGS
from tests.core.lab.tasks.conftest import FACT


def facts_of(example: Example) -> list[tuple[str, int]]:
    """Fact sentences in order with the chunk each stands in."""
    found = ((FACT.finditer(chunk), chunk_id) for chunk_id, chunk in enumerate(example.chunks))
    return [(fact[0], chunk_id) for facts, chunk_id in found for fact in facts]


def test_documents_are_cut_as_the_app_cuts_and_support_holds_the_facts(tokenizer: FastTokenizer):
    narrative = generate_narrative(3_000, 5)
    examples = list(document_examples(3_000, 5, tokenizer))
    assert [example.question for example in examples] == [asked.question for asked in narrative.questions]
    assert "".join("".join(examples[0].chunks).split()) == "".join(narrative.text.split())
    assert tokenizer.count(examples[0].chunks).max() <= 64
    for example, asked in zip(examples, narrative.questions, strict=True):
        assert example.chunks is examples[0].chunks
        held = " ".join(example.chunks[chunk_id] for chunk_id in example.support)
        assert all(narrative.text[start:end] in held for start, end in asked.support)
        assert len(example.support) <= len(asked.support)
        assert (example.answers, example.kind) == ((asked.answer,), f"{asked.hops} facts")


def test_as_many_questions_as_asked_and_documents_of_their_own(tokenizer: FastTokenizer):
    examples = list(generated_examples(1_200, 15, 2, tokenizer))
    assert len({example.id for example in examples}) == 15
    assert len({id(example.chunks) for example in examples}) == 2
    assert examples[0].id == f"generated-{FIRST_SEED + 200_000}-q1"
    assert {example.id for example in generated_examples(1_200, 3, 3, tokenizer)}.isdisjoint(
        {example.id for example in examples}
    )


@given(seed=st.integers(0, 10_000), n_noise=st.integers(10, 120))
def test_training_examples(prose: Noise, tokenizer: FastTokenizer, seed: int, n_noise: int):
    example = story_example(Random(f"test {seed}"), prose, n_noise, tokenizer)
    assert isinstance(example.chunks, Woven)
    assert len(example.chunks) == n_noise + len(example.chunks.own)
    assert tokenizer.count(example.chunks.own).max() <= 64
    facts = facts_of(example)
    assert {chunk_id for _, chunk_id in facts} == set(example.chunks.places)
    assert len({fact for fact, _ in facts}) == len(facts)
    hops = int(example.kind[0])
    assert 1 <= len(example.support) <= hops
    subject = example.question.rstrip("?").split()[2 if hops == 1 else 3]
    decisive = re.compile(
        rf"{subject} (?:{'|'.join(WORDINGS['move'])}) " if hops == 1 else rf".* the {subject}\b"
    )
    last = max(chunk_id for fact, chunk_id in facts if decisive.match(fact))
    assert last in example.support
    held = [example.chunks[chunk_id] for chunk_id in example.support]
    assert any(f"the {example.answers[0]}." in chunk for chunk in held)
