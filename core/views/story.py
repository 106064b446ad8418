"""The story of a run as one line.

What was asked, what each choice brought and how far up it had come, what was answered, why it ended.
`Story.sentence` says the whole line, `app.pages.explore.story` draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from core.answer.evidence import EvidenceAnswer
from core.base.events import ChosenBy, Trace
from core.base.metrics import RIGHT_FROM, answer_f1
from core.corpus.words import content_words, located, words_of
from core.ingest.prose import plain
from core.views.ending import end_sentence
from core.views.trail import Trail, gold_trails

EXCERPT = 64
"""Characters of a chunk that stand for it, the marked words not counted."""
Verdict = Literal["right", "wrong", "no answer"]
_ORDINALS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What is shown of a chunk: its telling words with what stands around them."""

    before: str
    mark: str
    """Empty where no words stand out."""
    after: str

    def __str__(self) -> str:
        return f"{self.before}{self.mark}{self.after}"


@dataclass(frozen=True, slots=True)
class StoryPart:
    """A choice, or support that was never chosen."""

    chunk_id: int
    excerpt: Excerpt
    ranks: tuple[int, ...]
    """Its place among the chunks that could be chosen, a look each up to its own; empty where not kept."""
    step: int | None
    """1-based; None for support that was missed."""
    chosen_by: ChosenBy = "agent"
    taken_back: bool = False


@dataclass(frozen=True, slots=True)
class StoryAnswer:
    """What the run ends in."""

    text: str
    """Empty where there is no answer to rely on."""
    confidence: float | None
    chunk_id: int | None
    """The chunk that it stands in, or that is worth reading."""
    verdict: Verdict | None
    """Against the known answer; None where nobody knows it."""
    known_answer: str
    """Empty where nobody knows it."""
    denies: bool = False
    """Whether it says with confidence that the evidence holds no answer."""

    @property
    def nothing(self) -> str:
        """What is said in the place of an answer."""
        return "no answer in the evidence" if self.denies else "no reliable answer"

    @property
    def sureness(self) -> float | None:
        """How sure it is of what it says; None where it says nothing."""
        return self.confidence if self.text or self.denies else None


@dataclass(frozen=True, slots=True)
class Story:
    """One run, or as much of it as there is."""

    query: str
    n_chunks: int
    steps: tuple[StoryPart, ...]
    missed: tuple[StoryPart, ...]
    answer: StoryAnswer | None
    end: str
    """Why it stopped, in a sentence; empty while it goes on."""

    def sentence(self) -> str:
        """The whole line, to be read aloud."""
        parts = [
            f"{_nth(part.step or 0)} choice, chunk {part.chunk_id:,}:"
            f" {str(part.excerpt).rstrip('.')}{_aloud(part, self.n_chunks)}"
            for part in self.steps
        ]
        parts += [f"missed, chunk {part.chunk_id:,}: {str(part.excerpt).rstrip('.')}" for part in self.missed]
        if self.answer is not None:
            parts.append(f"answer: {answer_words(self.answer)}")
        question = f"Asked: {self.query}"
        return " ".join([question, "; ".join(parts) + "." if parts else "", self.end]).strip()


def story_of(
    trace: Trace,
    text: Callable[[int], str],
    gold: Sequence[int],
    reading: EvidenceAnswer | None,
    known_answer: str,
) -> Story:
    """The story of the steps that a trace holds.

    text: of a chunk, by its id. gold: support of a labelled question. reading: what was read from the
    evidence, once it was. known_answer: the known answer.
    """
    query = trace.started.query
    missed = missed_support(trace, gold)
    trails = {trail.chunk_id: trail for trail in gold_trails(trace, [*trace.chosen, *missed])}
    spoken: set[str] = set()
    question_words = content_words(query)

    def part(chunk_id: int, step: int | None) -> StoryPart:
        words = text(chunk_id)
        mark = _telling(words, chunk_id, reading, question_words, spoken)
        spoken.update(words_of(mark))
        by = trace.steps[step - 1].chosen_by if step else "agent"
        return StoryPart(
            chunk_id,
            excerpt(words, mark),
            _ranks(trails[chunk_id], step),
            step,
            by,
            chunk_id in trace.taken_back,
        )

    steps = tuple(part(step.chunk_id, step.step) for step in trace.steps)
    answer = None if reading is None else _answer(reading, known_answer)
    return Story(
        query,
        trace.started.config.n_searched(trace.started.n_chunks),
        steps,
        tuple(part(chunk_id, None) for chunk_id in missed),
        answer,
        end_sentence(trace),
    )


def missed_support(trace: Trace, gold: Sequence[int]) -> list[int]:
    """What a run never chose of it; nothing before its end."""
    return [] if trace.stopped is None else [chunk_id for chunk_id in gold if chunk_id not in trace.chosen]


def excerpt(text: str, mark: str, most: int = EXCERPT) -> Excerpt:
    """Words of a text around `mark`, or its beginning where it holds none; whole words, in one line.

    >>> str(excerpt("# Title\\nRuth set down the blanket.", "blanket"))
    'Ruth set down the blanket.'
    """
    line = one_line(text)
    mark = " ".join(mark.split())
    at = line.casefold().find(mark.casefold()) if mark else -1
    if at < 0 or len(line.casefold()) != len(line):
        return Excerpt(_begin(line, most), "", "")
    end = at + len(mark)
    whole = len(line) - len(mark) <= most
    start = 0 if whole or at <= most // 3 else _next_word(line, at - most // 3)
    before = ("… " if start else "") + line[start:at]
    return Excerpt(before, line[at:end], _begin(line[end:], most - (at - start)))


def one_line(text: str) -> str:
    """A chunk as one line without headings, table rules and list marks; as it is where that leaves none."""
    return " ".join(plain(text).replace("|", " ").replace("•", " ").split())


def answer_words(answer: StoryAnswer) -> str:
    """An answer with how sure it is, and whether it is right: "stable, 97 % sure, right"."""
    words = [answer.text or answer.nothing]
    if answer.sureness is not None:
        words.append(sure(answer.sureness))
    if answer.verdict is not None and answer.text:
        words.append(answer.verdict)
    if answer.verdict not in (None, "right"):
        words.append(f"known answer {answer.known_answer}")
    return ", ".join(words)


def sure(confidence: float) -> str:
    """The one way to write a confidence.

    >>> sure(0.967)
    '97 % sure'
    """
    return f"{100 * confidence:.0f} % sure"


def ordinal(rank: int) -> str:
    """A rank in figures.

    >>> [ordinal(rank) for rank in (1, 2, 3, 11, 34, 102)]
    ['1st', '2nd', '3rd', '11th', '34th', '102nd']
    """
    teen = 10 < rank % 100 < 14
    return f"{rank:,}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(rank % 10, 'th')}"


def verdict_on(answer: str, known_answer: str) -> Verdict | None:
    """An answer (empty for none) against the known one: right where they share half of their words."""
    if not known_answer:
        return None
    if not answer.strip():
        return "no answer"
    return "right" if answer_f1(answer, [known_answer]) >= RIGHT_FROM else "wrong"


def _answer(reading: EvidenceAnswer, known_answer: str) -> StoryAnswer:
    cited = reading.citations[0] if reading.citations else None
    text = reading.reliable_text
    return StoryAnswer(
        text,
        reading.confidence,
        cited if text else reading.passage,
        verdict_on(text, known_answer),
        known_answer,
        denies=reading.reliable and not text,
    )


def _telling(
    text: str, chunk_id: int, reading: EvidenceAnswer | None, question_words: Sequence[str], spoken: set[str]
) -> str:
    """The words that stand for a chunk: the answer where it stands here, else the longest word of content of
    the question that no earlier part has told.
    """
    if (
        reading is not None
        and reading.reliable
        and reading.place is not None
        and reading.citations[0] == chunk_id
    ):
        return text[reading.place[0] : reading.place[1]]
    line, new = one_line(text), {*question_words} - spoken
    marks = [
        (max(map(len, shared)), -start, line[start:end])
        for start, end, words in located(line)
        if (shared := new.intersection(words))
    ]
    return max(marks)[2] if marks else ""


def _ranks(trail: Trail, step: int | None) -> tuple[int, ...]:
    standings = trail.standings[: len(trail.standings) if step is None else step]
    if any(standing is None for standing in standings):
        return ()
    return tuple(standing.rank for standing in standings if standing is not None)


def _aloud(part: StoryPart, n_chunks: int) -> str:
    by = ", chosen by you" if part.chosen_by == "person" else ""
    back = ", taken back" if part.taken_back else ""
    if not part.ranks:
        return by + back
    if len(part.ranks) == 1:
        return f", {_nth(part.ranks[0]).lower()} of {n_chunks:,}{by}{back}"
    return f", from rank {part.ranks[0]:,} to {part.ranks[-1]:,}{by}{back}"


def _nth(number: int) -> str:
    return _ORDINALS[number - 1].capitalize() if 1 <= number <= len(_ORDINALS) else ordinal(number)


def _begin(line: str, most: int) -> str:
    """The beginning of a line, whole words where it is cut."""
    if len(line) <= most:
        return line
    cut = line.rfind(" ", 0, most)
    return line[: cut if cut > most // 2 else most].rstrip() + " …"


def _next_word(line: str, at: int) -> int:
    space = line.find(" ", at)
    return at if space < 0 or space > at + 20 else space + 1
