"""The story of a run as one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from core.answer.evidence import EvidenceAnswer
from core.answer.kinds import Asks
from core.answer.protocol import State
from core.base.events import ChosenBy, Trace
from core.base.metrics import RIGHT_FROM, answer_f1
from core.corpus.words import content_words, words_of
from core.views.ending import end_sentence
from core.views.quotes import ChunkInPlace, Excerpt, quoted, rendered
from core.views.trail import Trail, gold_trails

EXCERPT = 110
"""Characters of a chunk that stand for it, the marked words not counted."""
Verdict = Literal["right", "wrong", "no answer"]
_STOPS = tuple(".!?…。！？؟।")
_NTH = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_ORDINALS = _NTH.split()


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

    state: State
    text: str
    """As its document means it; empty where nothing is said to be the answer."""
    confidence: float | None
    chunk_id: int | None
    """The chunk that it stands in, or that is worth reading."""
    verdict: Verdict | None
    """Against the known answer; None where nobody knows it."""
    known_answer: str
    asks: Asks | None = None
    quote: Excerpt | None = None
    """The sentence that counts; None where no text is known."""
    in_quote: bool = False
    """Whether the answer is what is marked in it."""


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
        parts = [f"{_nth(part.step or 0)} choice, {_aloud(part, self.n_chunks)}" for part in self.steps]
        parts += [f"missed, {_named(part)}" for part in self.missed]
        if self.answer is not None:
            parts.append(f"answer: {answer_words(self.answer)}")
        question = closed(f"Asked: {self.query}")
        return " ".join([question, closed("; ".join(parts)) if parts else "", self.end]).strip()


def story_of(
    trace: Trace,
    passage: Callable[[int], ChunkInPlace],
    gold: Sequence[int],
    reading: EvidenceAnswer | None,
    known_answer: str,
) -> Story:
    """The story of the steps that a trace holds.

    passage: a chunk, by its id. gold: support of a labelled question. reading: what was read from the
    evidence, once it was.
    """
    missed = missed_support(trace, gold)
    trails = {trail.chunk_id: trail for trail in gold_trails(trace, [*trace.chosen, *missed])}
    spoken: set[str] = set()
    question_words = content_words(trace.started.query)

    def part(chunk_id: int, step: int | None) -> StoryPart:
        quote = quoted(passage(chunk_id), None, question_words, most=EXCERPT, told=spoken)
        spoken.update(words_of(quote.mark))
        by = trace.steps[step - 1].chosen_by if step else "agent"
        ranks = _ranks(trails[chunk_id], step)
        return StoryPart(chunk_id, quote, ranks, step, by, chunk_id in trace.taken_back)

    return Story(
        trace.started.query,
        trace.started.config.n_searched(trace.started.n_chunks),
        tuple(part(step.chunk_id, step.step) for step in trace.steps),
        tuple(part(chunk_id, None) for chunk_id in missed),
        None if reading is None else _answer(reading, passage, known_answer),
        end_sentence(trace),
    )


def missed_support(trace: Trace, gold: Sequence[int]) -> list[int]:
    """What a run never chose of it; nothing before its end."""
    return [] if trace.stopped is None else [chunk_id for chunk_id in gold if chunk_id not in trace.chosen]


def answer_words(answer: StoryAnswer) -> str:
    """An answer with how sure it is, and whether it is right: "stable, 97 % sure, right"."""
    words = [state_words(answer.state, answer.confidence, answer.asks)]
    if answer.state == "guess":
        words = [f"{words[0]}: {answer.text}"]
    elif answer.text:
        words = [answer.text] + ([] if answer.confidence is None else [sure(answer.confidence)])
    if answer.verdict is not None and answer.text:
        words.append(answer.verdict)
    if answer.verdict not in (None, "right"):
        words.append(f"known answer {answer.known_answer}")
    return ", ".join(words)


def reading_words(reading: EvidenceAnswer) -> str:
    """What was read, with how sure it is, or why there is no answer."""
    return answer_words(_answer(reading))


def state_words(state: State, confidence: float | None, asks: Asks | None = None) -> str:
    """How every page names the state of an answer.

    >>> state_words("guess", 0.42)
    'Best guess (42 %), please check'
    """
    if state == "answer":
        return "Answer"
    if state == "guess":
        return f"Best guess{'' if confidence is None else f' ({100 * confidence:.0f} %)'}, please check"
    if asks == "an explanation":
        return "Asks for an explanation, and no phrase gives it: read what bears on it"
    if state == "passages":
        return f"Asks for {asks}, which no words of a text are: read what bears on it"
    if state == "unsure":
        return "Not sure which words answer it: read the likeliest place"
    return "Not in this document, as far as I see"


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


def _answer(
    reading: EvidenceAnswer, passage: Callable[[int], ChunkInPlace] | None = None, known_answer: str = ""
) -> StoryAnswer:
    chunk_id, text, quote = reading.shown_chunk, reading.told_text, None
    if chunk_id is not None and passage is not None and (shown := passage(chunk_id)).own:
        quote = quoted(shown, reading.place_in(chunk_id), most=EXCERPT)
        if text and reading.place is not None:
            text = rendered(shown, reading.place)
    return StoryAnswer(
        reading.state,
        text,
        reading.confidence,
        chunk_id,
        verdict_on(reading.told_text, known_answer),
        known_answer,
        reading.asks,
        quote,
        reading.place is not None,
    )


def _ranks(trail: Trail, step: int | None) -> tuple[int, ...]:
    standings = trail.standings[:step]
    ranks = tuple(standing.rank for standing in standings if standing is not None)
    return ranks if len(ranks) == len(standings) else ()


def _named(part: StoryPart) -> str:
    return f"chunk {part.chunk_id:,}: {str(part.excerpt).rstrip('.')}"


def _aloud(part: StoryPart, n_chunks: int) -> str:
    by = ", chosen by you" if part.chosen_by == "person" else ""
    back = ", taken back" if part.taken_back else ""
    came = ""
    if len(part.ranks) == 1:
        came = f", {_nth(part.ranks[0]).lower()} of {n_chunks:,}"
    elif len(set(part.ranks)) == 1:
        came = f", rank {part.ranks[0]:,} from the start"
    elif part.ranks:
        came = f", from rank {part.ranks[0]:,} to {part.ranks[-1]:,}"
    return _named(part) + came + by + back


def closed(words: str) -> str:
    """A sentence with one stop at its end."""
    return words if words.rstrip().rstrip("\"'”’»)").endswith(_STOPS) else f"{words}."


def _nth(number: int) -> str:
    return _ORDINALS[number - 1].capitalize() if 1 <= number <= len(_ORDINALS) else ordinal(number)
