"""The story of a SPARC run as one line.

And what became of every chunk in a merge. Read off a trace alone, so that a run out of the log tells the
same. `core.views.draw.sparc_line` draws the line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.base.metrics import plain_answer
from core.methods.sparc.events import Strategy
from core.methods.sparc.naming import STRATEGY_NAMES, branch_name
from core.methods.sparc.trace import SparcRound, SparcTrace
from core.views.ending import sparc_end_sentence
from core.views.quotes import Excerpt, alone, place_of, quoted
from core.views.story import EXCERPT, StoryAnswer, answer_words, closed, ordinal, verdict_on

_NUMBERS = ("no", "one", "two", "three", "four")
_LONGEST_ANSWER = 60
"""Characters of an answer inside a sentence."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a chunk in a merge."""

    chunk_id: int
    branches: tuple[int, ...]
    """Branches of the round that found it; empty for one that only the note before it held."""
    stays: bool
    why: str


@dataclass(frozen=True, slots=True)
class RoundPart:
    """A round that was merged, told by the branch that leads from it."""

    number: int
    branch: int
    n_branches: int
    strategy: Strategy
    query: tuple[tuple[str, bool], ...]
    """What it asked, in pieces; true for words that the question doesn't have."""
    excerpt: Excerpt
    """Of the chunk that its answer rests on, else of the first that it found."""
    answers: str
    """What the branches answered, in a few words."""
    n_support: int
    """Support that all branches have found by then."""
    n_kept: int
    n_dropped: int


@dataclass(frozen=True, slots=True)
class SparcStory:
    """One run, or as much of it as there is."""

    question: str
    rounds: tuple[RoundPart, ...]
    n_gold: int
    """Support of the question; 0 where nobody knows it."""
    answer: StoryAnswer | None
    """None before the end."""
    end: str
    """Why it stopped; empty while it goes on."""

    def sentence(self) -> str:
        """The whole line, to be read aloud."""
        sentences = [closed(f"Asked: {self.question}")]
        for part in self.rounds:
            query_words = (
                "" if part.number == 1 else f' asked "{"".join(words for words, _ in part.query)}" and'
            )
            also = " and" if part.n_branches > 1 else ""
            sentences.append(
                f"Round {part.number}, {_counted(part.n_branches)}: {lead(part)}{also}{query_words} found"
                f" {str(part.excerpt).rstrip('.')}; {part.answers}; {part.n_kept}"
                f" chunk{'s' if part.n_kept != 1 else ''} kept, {part.n_dropped} dropped."
            )
        if self.answer is not None:
            sentences += [closed(f"Answer: {answer_words(self.answer)}"), self.end]
        return " ".join(sentences)


def sparc_story(trace: SparcTrace, gold: Sequence[int], known_answer: str) -> SparcStory:
    """The story of the rounds that were merged. `gold`, `known_answer`: of a labelled question."""
    stopped, chosen = trace.stopped, trace.chosen_branch
    cited = chosen.answered.citations if chosen is not None and chosen.answered is not None else ()
    answer = "" if stopped is None else stopped.answer.strip()
    return SparcStory(
        trace.started.question,
        tuple(_part(trace, one, gold) for one in trace.rounds if one.merged is not None),
        len(gold),
        None
        if stopped is None
        else StoryAnswer(
            "answer" if answer else "absent",
            answer,
            trace.confidence,
            cited[0] if answer and cited else None,
            verdict_on(answer, known_answer),
            known_answer,
        ),
        "" if stopped is None else sparc_end_sentence(trace),
    )


def lead(part: RoundPart) -> str:
    """Whose branch leads."""
    return f"{STRATEGY_NAMES[part.strategy]}{'’s branch led' if part.n_branches > 1 else ''}"


def fates(trace: SparcTrace, number: int) -> tuple[Fate, ...]:
    """Of every chunk that a round found or the note before it held, the kept ones first, in the order of the
    note, then by falling worth; empty where the round was not merged.
    """
    one = trace.rounds[number - 1]
    if one.merged is None:
        return ()
    held = _note_before(trace, number)
    finders: dict[int, list[int]] = {}
    for branch in one.branches:
        for chunk in branch.chunks:
            finders.setdefault(chunk.chunk_id, []).append(branch.number)
    note = one.merged.note.chunk_ids
    by_worth = [chunk.chunk_id for chunk in one.merged.weighed]
    others = [i for i in dict.fromkeys([*by_worth, *held, *finders]) if i not in note]
    return (
        *(Fate(i, tuple(finders.get(i, ())), True, _why_kept(one, i, held)) for i in note),
        *(Fate(i, tuple(finders.get(i, ())), False, _why_dropped(one, i)) for i in others),
    )


def asked_anew(question: str, query: str) -> tuple[tuple[str, bool], ...]:
    """A query in pieces, those words marked that the question doesn't have.

    >>> asked_anew("Where was the blanket?", "Where was Ruth then?")
    (('Where was ', False), ('Ruth then', True), ('?', False))
    """
    had = set(re.findall(r"\w+", question.casefold()))
    borders = [0]  # where new words begin and end in turn
    for word in re.finditer(r"\w+", query):
        if word[0].casefold() in had:
            continue
        between = query[borders[-1] : word.start()]
        if len(borders) > 1 and between.isspace():
            borders.pop()  # goes on from the new word before
        else:
            borders.append(word.start())
        borders.append(word.end())
    borders.append(len(query))
    pieces = [query[start:end] for start, end in pairwise(borders)]
    return tuple((piece, i % 2 == 1) for i, piece in enumerate(pieces) if piece)


def _part(trace: SparcTrace, one: SparcRound, gold: Sequence[int]) -> RoundPart:
    assert one.merged is not None
    assert one.best is not None
    best, all_fates = one.best, fates(trace, one.number)
    cited = best.answered.citations if best.answered is not None else ()
    key_chunk = next((i for i in cited if i in trace.pool), next((c.chunk_id for c in best.chunks), None))
    answer = best.answered.answer if best.answered is not None else ""
    part = {
        chunk.chunk_id
        for before in trace.rounds[: one.number]
        for branch in before.branches
        for chunk in branch.chunks
    }
    n_kept = sum(fate.stays for fate in all_fates)
    return RoundPart(
        one.number,
        best.number,
        len(one.branches),
        best.query.strategy,
        asked_anew(trace.started.question, best.query.query),
        Excerpt("nothing", "", "") if key_chunk is None else excerpt_of(trace.texts[key_chunk], answer),
        _answers(one),
        len(part & {*gold}),
        n_kept,
        len(all_fates) - n_kept,
    )


def excerpt_of(text: str, answer: str, most: int = EXCERPT) -> Excerpt:
    """The sentence of a chunk that says an answer; its first one where none does."""
    return quoted(alone(text), place_of(answer, text), most=most)


def _answers(one: SparcRound) -> str:
    """What the branches of a round answered: "both say chapel"."""
    answers = [branch.answered.answer.strip() for branch in one.branches if branch.answered is not None]
    counts = Counter(plain_answer(answer) for answer in answers if answer)
    n = len(one.branches)
    if not counts:
        return "it has no answer" if n == 1 else "no branch has an answer"
    best = one.best.answered.answer.strip() if one.best is not None and one.best.answered else ""
    most = plain_answer(best) if best else counts.most_common(1)[0][0]
    words = next(answer for answer in answers if plain_answer(answer) == most)[:_LONGEST_ANSWER]
    agree = counts[most]
    if n == 1:
        return f"it says {words}"
    if agree == n:
        return f"{'both' if n == 2 else f'all {_number(n)}'} say {words}"
    return f"{_number(agree)} of {_number(n)} {'says' if agree == 1 else 'say'} {words}"


def _why_kept(one: SparcRound, chunk_id: int, held: Sequence[int]) -> str:
    assert one.merged is not None
    assert one.best is not None
    if one.best.answered is not None and chunk_id in one.best.answered.citations and one.best.answered.answer:
        return "the answer rests on it"
    weighed = [chunk.chunk_id for chunk in one.merged.weighed]
    if any(chunk.needed for chunk in one.merged.weighed if chunk.chunk_id == chunk_id):
        return "the agent needs it"
    before = ", in the note before" if chunk_id in held else ""
    if chunk_id in weighed:
        return f"{ordinal(weighed.index(chunk_id) + 1)} of {len(weighed)} by worth{before}"
    return f"in the note of {_names(one, _notes(one, chunk_id))}{before}"


def _why_dropped(one: SparcRound, chunk_id: int) -> str:
    assert one.merged is not None
    weighed = [chunk.chunk_id for chunk in one.merged.weighed]
    size, notes = len(one.merged.note.chunk_ids), _notes(one, chunk_id)
    if chunk_id in weighed:
        return f"{ordinal(weighed.index(chunk_id) + 1)} of {len(weighed)} by worth, the note holds {size}"
    if notes:
        return f"in the note of {_names(one, notes)}, left out of the merged one"
    return "left out of its branch’s own note" if len(one.branches) > 1 else "left out of the note"


def _notes(one: SparcRound, chunk_id: int) -> list[int]:
    """Branches whose own note holds a chunk."""
    return [
        branch.number
        for branch in one.branches
        if branch.noted is not None and chunk_id in branch.noted.after.chunk_ids
    ]


def _names(one: SparcRound, branches: Sequence[int]) -> str:
    return ", ".join(branch_name(one.number, branch) for branch in branches) or "the round before"


def _note_before(trace: SparcTrace, number: int) -> tuple[int, ...]:
    before = trace.rounds[number - 2].merged if number > 1 else None
    return before.note.chunk_ids if before is not None else ()


def _counted(n: int) -> str:
    return f"{_number(n)} branch{'es' if n != 1 else ''}"


def _number(n: int) -> str:
    return _NUMBERS[n] if n < len(_NUMBERS) else f"{n:,}"
