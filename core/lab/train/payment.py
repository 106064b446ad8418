"""The reward of each choice of an episode.

It is paid by labelled support (Q-RAG section 3.1), or by answers alone. By answers, a choice is paid what it
adds to the F1 of the reader's answer, less what its tokens cost; reading nothing is worth 0. So an episode's
rewards sum to the F1 of its last state less the cost of its evidence, and Q of a chunk that adds nothing is
below 0, where an agent can stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from core.answer.protocol import Reader
from core.base.errors import BadRequest
from core.base.metrics import answer_f1
from core.lab.tasks.example import Example
from core.lab.train.returns import rewards

Payment = Callable[[Sequence[Example], Sequence[Sequence[int]]], list[list[float]]]
"""(examples, chosen chunk ids of each in order) -> the reward of each choice."""
_State = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Question, its accepted answers, and what is read."""
_MOST_KNOWN = 20_000
"""States whose F1 stays in memory."""


def paid_by_support(*, penalize_extra_steps: bool) -> Payment:
    """See `core.lab.train.returns.rewards`."""

    def pay(examples: Sequence[Example], chosen: Sequence[Sequence[int]]) -> list[list[float]]:
        return [
            rewards(ids, example.support, penalize_extra_steps=penalize_extra_steps)
            for example, ids in zip(examples, chosen, strict=True)
        ]

    return pay


class PaidByAnswers:
    """A `Payment`. Every distinct set of a question is read once while it is remembered."""

    def __init__(
        self, reader: Reader, count_tokens: Callable[[Iterable[str]], int], token_cost: float
    ) -> None:
        """token_cost: taken off for 100 tokens of evidence."""
        self._reader, self._count_tokens, self._token_cost = reader, count_tokens, token_cost
        self._f1_of: dict[_State, float] = {}

    def __call__(self, examples: Sequence[Example], chosen: Sequence[Sequence[int]]) -> list[list[float]]:
        """See the class. Raises BadRequest for a question without an answer."""
        states = [
            (example, ids[:n])
            for example, ids in zip(examples, chosen, strict=True)
            for n in range(1, len(ids) + 1)
        ]
        f1 = iter(self.f1(states))
        paid = []
        for example, ids in zip(examples, chosen, strict=True):
            before, own = 0.0, []
            for chunk_id in ids:
                after = next(f1)
                cost = self._token_cost * self._count_tokens([example.chunks[chunk_id]]) / 100
                own.append(after - before - cost)
                before = after
            paid.append(own)
        return paid

    def f1(self, states: Sequence[tuple[Example, Sequence[int]]]) -> list[float]:
        """F1 of the answer from each set of chunks, in order. Raises BadRequest without a known answer."""
        keys = []
        new: dict[_State, Example] = {}
        for example, ids in states:
            if not example.answers:
                raise BadRequest(
                    f"question {example.id} has no answer to learn from; give it one, or train by support"
                )
            texts = tuple(example.chunks[chunk_id] for chunk_id in sorted(ids))
            key = (example.question, example.answers, texts)
            keys.append(key)
            if key not in self._f1_of:
                new[key] = example
        if len(self._f1_of) > _MOST_KNOWN:
            self._f1_of = {key: self._f1_of[key] for key in keys if key in self._f1_of}
        answers = self._reader.read_many([question for question, _, _ in new], [texts for _, _, texts in new])
        for (key, example), answer in zip(new.items(), answers, strict=True):
            self._f1_of[key] = answer_f1(answer.text, example.answers)
        return [self._f1_of[key] for key in keys]
