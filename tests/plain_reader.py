"""A reader that tests make their own of."""

from __future__ import annotations

from collections.abc import Sequence

from core.answer.protocol import Answer


class PlainReader:
    """A `Reader` that reads one list of passages after the other, as its subclass does."""

    name = "plain"

    def read(self, question: str, passages: Sequence[str]) -> Answer:
        raise NotImplementedError

    def read_many(
        self,
        questions: Sequence[str],
        passages: Sequence[Sequence[str]],
        ranks: Sequence[Sequence[int]] = (),  # noqa: ARG002
    ) -> list[Answer]:
        return [self.read(*pair) for pair in zip(questions, passages, strict=True)]

    def support(self, statement: str, passage: str) -> float:  # noqa: ARG002
        return 0.0
