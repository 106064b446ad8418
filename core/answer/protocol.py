"""What an answer is, and who can give one.

"no answer in the evidence" is an answer with an empty text, and confidence is a probability of being right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

State = Literal["answer", "guess", "unsure", "absent", "passages"]
"""answer: sure enough to be relied on. guess: to be checked. unsure: an answer is likelier than none, and
which words it is can't be told. absent: "no answer" is likelier than any. passages: no span can answer such a
question (`core.answer.kinds`), so what bears on it is shown instead.
"""


@dataclass(frozen=True, slots=True)
class Span:
    """Where an answer stands: `passages[passage][start:end]`."""

    passage: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to one question over some passages."""

    text: str
    """The best wording, of whatever state; empty where no answer is likelier and no guess is shown."""
    confidence: float
    """0 to 1, calibrated: of the answers given with 0.8, some 80 in a hundred are right. Of an empty one,
    that there is none.
    """
    span: Span | None = None
    """None for an empty answer, and for "yes" and "no"."""
    state: State = "absent"
    """By what of confidence the reader's record asks for."""
    likeliest: Span | None = None
    """The likeliest span, shown as an answer or not; None where nothing was read."""


class Reader(Protocol):
    """Answers from passages alone."""

    name: str

    def read(self, question: str, passages: Sequence[str]) -> Answer:
        """The best answer, which may be empty. No passages: empty, confidence 0."""
        ...

    def read_many(
        self,
        questions: Sequence[str],
        passages: Sequence[Sequence[str]],
        ranks: Sequence[Sequence[int]] = (),
    ) -> list[Answer]:
        """`read` for several questions in one batch. `ranks`: by question the rank of each passage among what
        was found, 0 the first; nothing where they have no order.
        """
        ...

    def support(self, statement: str, passage: str) -> float:
        """0 to 1: how well a passage bears out a statement."""
        ...
