"""A document of any length with a story in it.

Facts of a simulated world, each a plain sentence, are spread evenly over noise prose, at the beginning or the
end of a paragraph, where no "he" of the noise can be read as theirs; questions ask about the end. The same
seed, length and number of questions give the same text on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from core.base.errors import BadRequest
from core.lab.tasks.documents import TextPlace
from core.lab.tasks.prose import compose_paragraph, compose_title, count_tokens
from core.lab.tasks.story import Fact, tell_story

MIN_TOKENS, MAX_TOKENS = 1_000, 10_000_000
MAX_QUESTIONS = 27
"""Three for each of the nine objects that a full cast can tell apart."""
CHAPTER_TOKENS = 2_000
"""Noise tokens of a chapter, about; it ends with the paragraph that passes this."""


@dataclass(frozen=True, slots=True)
class NarrativeQuestion:
    """A question about a story's end; `support`: deciding facts in the order of the reasoning."""

    question: str
    answer: str
    support: tuple[TextPlace, ...]
    hops: int


@dataclass(frozen=True, slots=True)
class Narrative:
    """A generated document. `facts` are the spans of all fact sentences, in order."""

    text: str
    questions: tuple[NarrativeQuestion, ...]
    facts: tuple[TextPlace, ...]


class _Page:
    """Text under construction: parts joined once at the end, with the offset reached so far."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.offset = 0
        self._separator = ""

    def write(self, sentence: str) -> TextPlace:
        """Appends a sentence to the running paragraph."""
        start = self.offset + len(self._separator)
        self.parts += (self._separator, sentence)
        self.offset = start + len(sentence)
        self._separator = " "
        return start, self.offset

    def close_paragraph(self) -> None:
        if self.offset:
            self._separator = "\n\n"


def generate_narrative(n_tokens: int, seed: int = 0, n_questions: int = 12) -> Narrative:
    """A document of about `n_tokens` tokens of the all-MiniLM-L6-v2 tokenizer (within 2 %), questions of 1,
    2, 3, 1, ... hops. Raises BadRequest outside 1,000 to 10,000,000 tokens or 1 to 27 questions.
    """
    if not MIN_TOKENS <= n_tokens <= MAX_TOKENS:
        raise BadRequest(f"n_tokens={n_tokens:,} must be between {MIN_TOKENS:,} and {MAX_TOKENS:,}")
    if not 1 <= n_questions <= MAX_QUESTIONS:
        raise BadRequest(f"n_questions={n_questions} must be between 1 and {MAX_QUESTIONS}")
    rng = Random(seed)
    n_each = -(-n_questions // 3)
    story = tell_story(rng, min(max(n_tokens // 50, 9 * n_each), 30 * n_each), n_questions)
    page = _Page()
    spans = tuple(_weave(rng, page, story.facts, n_tokens))
    questions = (
        NarrativeQuestion(q.question, q.answer, tuple(spans[row] for row in q.support), q.hops)
        for q in story.questions
    )
    return Narrative("".join([*page.parts, "\n"]), tuple(questions), spans)


def _weave(rng: Random, page: _Page, facts: Sequence[Fact], n_tokens: int) -> Iterator[TextPlace]:
    """Writes noise and facts to `page`; yields the span of each fact in order."""
    budget = n_tokens - sum(count_tokens(fact.text) for fact in facts)
    due = [(row + rng.random()) / len(facts) * budget for row in range(len(facts))]
    row, written, chapter, chapter_end = 0, 0, 0, 0

    while written < budget:
        if written >= chapter_end:
            chapter, chapter_end = chapter + 1, written + CHAPTER_TOKENS
            heading = f"Chapter {chapter}. {compose_title(rng)}"
            page.write(heading)
            page.close_paragraph()
            written += count_tokens(heading)
        paragraph = _fitting(list(compose_paragraph(rng)), budget - written)
        if not paragraph:
            break
        length = sum(map(count_tokens, paragraph))
        while row < len(facts) and due[row] <= written + length / 2:
            yield page.write(facts[row].text)
            row += 1
        for sentence in paragraph:
            page.write(sentence)
        written += length
        while row < len(facts) and due[row] <= written:
            yield page.write(facts[row].text)
            row += 1
        page.close_paragraph()
    for fact in facts[row:]:
        yield page.write(fact.text)


def _fitting(sentences: Sequence[str], n_tokens: int) -> list[str]:
    """The first sentences that come nearest to `n_tokens`, none overshooting by more than half."""
    kept, left = [], float(n_tokens)
    for sentence in sentences:
        length = count_tokens(sentence)
        if length / 2 > left:
            break
        kept.append(sentence)
        left -= length
    return kept
