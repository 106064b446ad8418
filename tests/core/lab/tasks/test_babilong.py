"""Stories in haystacks: every fact a chunk, in order, within the budget; lengths as people write them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadRequest
from core.encode.tokens import FastTokenizer
from core.lab.tasks.babi_world import TASKS, tell_babi
from core.lab.tasks.babilong import (
    FactQuestion,
    babilong_examples,
    name_length,
    parse_length,
)
from core.lab.tasks.example import Example, Noise, Woven


def woven(example: Example) -> Woven:
    assert isinstance(example.chunks, Woven)
    return example.chunks


def test_lengths_as_people_write_them():
    written = {"32k": 32_000, "1.5M": 1_500_000, " 10m ": 10_000_000, 4096: 4096}
    assert {text: parse_length(text) for text in written} == written
    assert all(parse_length(name_length(tokens)) == tokens for tokens in written.values())
    for text in ("", "-1K", "0", "1G", "21M", "1e6"):
        with pytest.raises(BadRequest, match="write one as 4096, 32K or 1M"):
            parse_length(text)


@given(task=st.sampled_from(TASKS), seed=st.integers(0, 1000), budget=st.integers(400, 3000))
def test_facts_in_order_and_the_rest_noise(
    prose: Noise, tokenizer: FastTokenizer, task: str, seed: int, budget: int
):
    question = tell_babi(task, Random(seed))  # type: ignore[arg-type]
    examples, left_out = babilong_examples(task, [question], prose, budget, None, seed, tokenizer)
    if int(tokenizer.count(question.facts).sum()) > budget:
        assert (examples, left_out) == ([], 1)
        return
    (example,) = examples
    assert woven(example).own == question.facts
    assert [example.chunks[chunk_id] for chunk_id in example.support] == [
        question.facts[row] for row in question.support
    ]
    total = int(tokenizer.count(list(example.chunks)).sum())
    assert budget - 64 < total <= budget
    assert (example.question, example.answers, example.task) == (question.question, (question.answer,), task)


def longer(question: FactQuestion, rng: Random, n_facts: int) -> FactQuestion:
    """The question behind as many other facts as make it `n_facts` long, or a few longer."""
    before: list[str] = []
    while len(before) + len(question.facts) < n_facts:
        before += tell_babi("qa1", rng).facts
    support = tuple(len(before) + row for row in question.support)
    return replace(question, facts=(*before, *question.facts), support=support)


def test_longer_stories_are_left_out_and_counted(prose: Noise, tokenizer: FastTokenizer):
    rng = Random(0)
    questions = [longer(tell_babi("qa1", rng), rng, n_facts) for n_facts in (2, 80, 4, 90)]
    examples, left_out = babilong_examples("qa1", questions, prose, 200, None, 0, tokenizer)
    assert {example.question for example in examples} == {questions[0].question, questions[2].question}
    assert left_out == 2


def test_a_question_keeps_its_haystack_whatever_else_is_asked(prose: Noise, tokenizer: FastTokenizer):
    questions = [tell_babi("qa2", Random(i)) for i in range(12)]

    def load(n: int | None, seed: int = 0) -> list[tuple[str, tuple[int, ...]]]:
        examples, _ = babilong_examples("qa2", questions, prose, 2_000, n, seed, tokenizer)
        return [(example.id, woven(example).places) for example in examples]

    assert load(None)[:3] == load(3)
    assert len(load(None)) == 12
    assert load(None) != load(None, seed=1)
