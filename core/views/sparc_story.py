"""The story of a SPARC run, and the chunks of its merges.

Read off a trace alone, so that a run out of the log tells the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from core.answer.protocol import State
from core.base.metrics import plain_answer
from core.methods.sparc.events import Strategy
from core.methods.sparc.naming import STRATEGY_NAMES, branch_name
from core.methods.sparc.trace import SparcBranch, SparcRound, SparcTrace
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
    n_support: int
    """Support that all branches have found by then."""
    n_read: int
    """Chunks that all branches have found by then, those of earlier merges that dropped them, too."""
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
            branches = f"{_number(part.n_branches)} branch{'es' if part.n_branches != 1 else ''}"
            sentences.append(
                f"Round {part.number}, {branches}: {lead(part)}{also}{query_words} found"
                f" {str(part.excerpt).rstrip('.')}; {part.answers}; {part.n_kept}"
                f" chunk{'s' if part.n_kept != 1 else ''} kept, {part.n_dropped} dropped."
            )
        if self.answer is not None:
            sentences += [closed(f"Answer: {answer_words(self.answer)}"), self.end]
        return " ".join(sentences)


def sparc_story(trace: SparcTrace, gold: Sequence[int], known_answer: str) -> SparcStory:
    """The story of the rounds that were merged. `gold`, `known_answer`: of a labelled question."""
    parts = tuple(_part(trace, one, gold) for one in trace.rounds if one.merged is not None)
    if trace.stopped is None:
        return SparcStory(trace.started.question, parts, len(gold), None, "")
    answer, cited = trace.stopped.answer.strip(), _cited(trace.chosen_branch)
    chunk_id = cited[0] if answer and cited else None
    verdict = verdict_on(answer, known_answer)
    state: State = "answer" if answer else "absent"
    shown = StoryAnswer(state, answer, trace.confidence, chunk_id, verdict, known_answer)
    return SparcStory(trace.started.question, parts, len(gold), shown, sparc_end_sentence(trace))


def _cited(branch: SparcBranch | None) -> tuple[int, ...]:
    """Chunks that a branch's answer rests on, as it says."""
    return () if branch is None or branch.answered is None else branch.answered.citations


def _answer_of(branch: SparcBranch | None) -> str:
    return "" if branch is None or branch.answered is None else branch.answered.answer.strip()


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
    before = trace.rounds[number - 2].merged if number > 1 else None
    held = before.note.chunk_ids if before is not None else ()
    finders: dict[int, list[int]] = {}
    for branch in one.branches:
        for chunk in branch.chunks:
            finders.setdefault(chunk.chunk_id, []).append(branch.number)
    note = one.merged.note.chunk_ids
    by_worth = [chunk.chunk_id for chunk in one.merged.weighed]
    return tuple(
        Fate(i, tuple(finders.get(i, ())), i in note, _why(one, i, i in note, i in held))
        for i in dict.fromkeys([*note, *by_worth, *held, *finders])
    )


def asked_anew(question: str, query: str) -> tuple[tuple[str, bool], ...]:
    """A query in pieces, those words marked that the question doesn't have.

    >>> asked_anew("Where was the blanket?", "Where was Ruth then?")
    (('Where was ', False), ('Ruth then', True), ('?', False))
    """
    had = set(re.findall(r"\w+", question.casefold()))
    parts = re.findall(r"\w+|\W+", query)  # in turn
    fresh = [re.match(r"\w", part) is not None and part.casefold() not in had for part in parts]
    for i in range(1, len(parts) - 1):
        fresh[i] = fresh[i] or (parts[i].isspace() and fresh[i - 1] and fresh[i + 1])
    runs = groupby(zip(parts, fresh, strict=True), key=lambda pair: pair[1])
    return tuple(("".join(part for part, _ in run), is_fresh) for is_fresh, run in runs)


def _part(trace: SparcTrace, one: SparcRound, gold: Sequence[int]) -> RoundPart:
    assert one.best is not None
    best, all_fates, texts = one.best, fates(trace, one.number), trace.texts
    telling = [*_cited(best), *(hit.chunk_id for hit in best.chunks)]
    key_chunk = next((chunk_id for chunk_id in telling if chunk_id in texts), None)
    so_far = [branch for before in trace.rounds[: one.number] for branch in before.branches]
    found = {chunk.chunk_id for branch in so_far for chunk in branch.chunks}
    n_kept = sum(fate.stays for fate in all_fates)
    return RoundPart(
        one.number,
        best.number,
        len(one.branches),
        best.query.strategy,
        asked_anew(trace.started.question, best.query.query),
        Excerpt("nothing", "", "") if key_chunk is None else excerpt_of(texts[key_chunk], _answer_of(best)),
        _answers(one),
        len(found & {*gold}),
        len(found),
        n_kept,
        len(all_fates) - n_kept,
    )


def excerpt_of(text: str, answer: str, most: int = EXCERPT) -> Excerpt:
    """The sentence of a chunk that says an answer; its first one where none does."""
    return quoted(alone(text), place_of(answer, text), most=most)


def _answers(one: SparcRound) -> str:
    """What the branches of a round answered: "both say chapel"."""
    answers = [answer for branch in one.branches if (answer := _answer_of(branch))]
    counts = Counter(map(plain_answer, answers))
    n = len(one.branches)
    if not counts:
        return "it has no answer" if n == 1 else "no branch has an answer"
    best = _answer_of(one.best)
    most = plain_answer(best) if best else counts.most_common(1)[0][0]
    words = next(answer for answer in answers if plain_answer(answer) == most)[:_LONGEST_ANSWER]
    agree = counts[most]
    if n == 1:
        return f"it says {words}"
    if agree == n:
        return f"{'both' if n == 2 else f'all {_number(n)}'} say {words}"
    return f"{_number(agree)} of {_number(n)} {'says' if agree == 1 else 'say'} {words}"


def _why(one: SparcRound, chunk_id: int, stays: bool, was_held: bool) -> str:
    """Why a chunk stays in the merged note, or doesn't."""
    assert one.merged is not None
    weighed = [chunk.chunk_id for chunk in one.merged.weighed]
    names = ", ".join(branch_name(one.number, branch) for branch in _notes(one, chunk_id))
    before = ", in the note before" * was_held
    if stays and chunk_id in _cited(one.best) and _answer_of(one.best):
        return "the answer rests on it"
    if stays and any(chunk.needed for chunk in one.merged.weighed if chunk.chunk_id == chunk_id):
        return "the agent needs it"
    if chunk_id in weighed:
        rank = f"{ordinal(weighed.index(chunk_id) + 1)} of {len(weighed)} by worth"
        return rank + (before if stays else f", the note holds {len(one.merged.note.chunk_ids)}")
    if stays:
        return f"in the note of {names or 'the round before'}{before}"
    if names:
        return f"in the note of {names}, left out of the merged one"
    return "left out of its branch’s own note" if len(one.branches) > 1 else "left out of the note"


def _notes(one: SparcRound, chunk_id: int) -> list[int]:
    """Branches whose own note holds a chunk."""
    return [
        branch.number
        for branch in one.branches
        if branch.noted is not None and chunk_id in branch.noted.after.chunk_ids
    ]


def _number(n: int) -> str:
    return _NUMBERS[n] if n < len(_NUMBERS) else f"{n:,}"
