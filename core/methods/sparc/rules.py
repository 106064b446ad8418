"""Agents without a language model.

    rewriter   a query for each name in the evidence that the question lacks, with the words of the question
               that the name's chunk leaves open
    manager    the memory: chunks that the trained agent needs, then those worth most to the question, and of
               each the sentences that bear on it; the best branch has evidence that is complete, agrees with
               the other branches and lets the reader answer with confidence
    generator  the reader over the chunks that the agent needs; an answer that only repeats the question is
               no answer
    evaluator  stops when the agent would add nothing and the reader is sure enough

What a chunk is worth is a weighted sum of what can be measured of it, whichever strategy brought it; the
weights are round numbers near those of logistic regressions on validation questions (docs/sparc-rag.md). A
memory holds as many chunks as one retrieval of a branch, so that the two can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.answer.protocol import Answer, Reader
from core.base.metrics import plain_answer
from core.llm.protocol import Cost
from core.methods.sparc.agents import BranchResult, Rewrite, RewriteTask, SupportedAnswer, Turn, filled
from core.methods.sparc.config import strongest_first
from core.methods.sparc.events import Hit, Note, Strategy, Verdict, Weighed
from core.methods.sparc.naming import RULES_AND
from core.methods.sparc.retrievals import Remaining, Retrievals
from core.methods.sparc.words import counted_words, mentions, names, plain, repeats, sentences, title, words

STRONG = 4
"""Chunks whose links to others, and whose place in the agent's state, are looked at."""
SENTENCES = 2
"""Most sentences of a chunk in a note."""
CONFIDENT = 2 / 3
"""Least confidence of the reader to stop: a wrong stop is as bad as two needless rounds (lambda = 2)."""
CONFIDENT_WHEN_COMPLETE = 0.6
"""The same where the trained agent would add nothing; chosen on validation questions."""
COVERED, COVERED_WITH_AGENT = 0.5, 2 / 3
"""Share of the question's words that complete chunks hold, without an agent, and where it adds nothing;
chosen on validation questions with a wrong stop as bad as two needless rounds.
"""
NAMES = 3
"""Most names of one chunk that are followed."""
OPEN_WORDS = 8
"""Most words of the question in a follow-up query."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Of what a chunk is worth, in log-odds of deciding the answer, but for a constant."""

    q_value: float
    """Of half the largest Q behind the question and each strong chunk, and half the Q after the best two."""
    coverage: float
    """Of the share of the question's words in the chunk, rare ones counting more."""
    named: float
    """Of a title that stands in the question."""
    linked: float
    """Of a title that a strong chunk mentions, times that chunk's strength."""


WITH_AGENT = Weights(q_value=6.5, coverage=3.5, named=1.0, linked=0.8)
WITHOUT_AGENT = Weights(q_value=0.0, coverage=5.0, named=1.5, linked=1.5)


def worth(question: str, chunk_ids: Sequence[int], sources: Retrievals) -> list[float]:
    """Log-odds that each chunk decides the answer, as far as rules can tell and but for a constant.

    The strongest raise those that they mention, or after which the trained agent would take them.
    """
    if not chunk_ids:
        return []
    texts = [sources.text(chunk_id) for chunk_id in chunk_ids]
    cover, own = np.array([coverage(question, text, sources) for text in texts]), plain(question)
    first = sources.worth(question, chunk_ids, [()])
    strength = cover if first is None else cover + first[0]
    strong = np.argsort(-strength, kind="stable")[:STRONG].tolist()
    titles, plains = [title(text) for text in texts], [plain(text) for text in texts]
    named = np.array([mentions(own, one) for one in titles], dtype=float)
    linked = np.zeros(len(titles))
    for i, one in enumerate(titles):
        linked[i] = max((strength[j] for j in strong if j != i and mentions(plains[j], one)), default=0.0)
    weights, q_values = WITHOUT_AGENT, np.zeros(len(chunk_ids))
    if first is not None:
        states = [*([j] for j in strong), strong[:2]]
        later = sources.worth(question, chunk_ids, [[chunk_ids[j] for j in state] for state in states])
        assert later is not None
        for row, state in zip(later, states, strict=True):
            row[state] = first[0][state]  # a chunk that is in the state already is worth nothing more there
        weights, q_values = WITH_AGENT, (np.concatenate([first, later[:-1]]).max(0) + later[-1]) / 2
    total = weights.q_value * q_values + weights.coverage * cover
    values: list[float] = (total + weights.named * named + weights.linked * linked).tolist()
    return values


def coverage(question: str, text: str, sources: Retrievals) -> float:
    """Share of the question's words that a text holds, weighted by rarity; 0 where the question has none."""
    rarities = {word: sources.rarity(word) for word in counted_words(question)}
    held = set(counted_words(text))
    total = sum(rarities.values())
    return sum(rarity for word, rarity in rarities.items() if word in held) / total if total else 0.0


def by_worth(question: str, chunk_ids: Sequence[int], sources: Retrievals) -> list[tuple[int, float]]:
    """Chunks with what each is worth, the best first, none twice, equals as they came."""
    distinct = list(dict.fromkeys(chunk_ids))
    valued = zip(distinct, worth(question, distinct, sources), strict=True)
    return sorted(valued, key=lambda one: -one[1])


@dataclass(frozen=True, slots=True)
class ReadEvidence:
    """How far some chunks answer a question, whatever a reader says of them."""

    chunk_ids: tuple[int, ...]
    """Those that count: what the agent keeps of them, all where no agent knows when to stop."""
    covered: float
    """Share of the question's words that they hold."""
    left: Remaining | None
    """What the agent would still take; None where nobody can tell."""

    @property
    def is_complete(self) -> bool:
        """Whether they hold enough of what is asked, and no agent would add anything."""
        if self.left is None:
            return self.covered >= COVERED
        return self.covered >= COVERED_WITH_AGENT and self.left.q_value < self.left.threshold


def evidence(question: str, chunk_ids: Sequence[int], sources: Retrievals) -> ReadEvidence:
    """What a memory comes to."""
    needed = sources.needed(question, chunk_ids)
    kept = tuple(chunk_ids) if needed is None else needed  # none: the agent takes nothing of them
    covered = coverage(question, "\n".join(map(sources.text, kept)), sources)
    return ReadEvidence(kept, covered, sources.left_to_find(question, kept))


def _agreement(one: BranchResult, candidates: Sequence[BranchResult]) -> float:
    """Share of the other branches that give the same answer."""
    others = [other for other in candidates if other is not one]
    return sum(plain_answer(other.answer) == plain_answer(one.answer) for other in others) / len(others)


def _bearing(question: str, text: str, sources: Retrievals) -> str:
    """A chunk's sentences that share most with the question, in order; the first where none shares any."""
    parts = list(sentences(text))
    scores = [coverage(question, part, sources) for part in parts]
    best = sorted(sorted(range(len(parts)), key=lambda i: -scores[i])[:SENTENCES])
    return " ".join([parts[i] for i in best if scores[i] > 0] or parts[:1])


def _lexical(task: RewriteTask) -> Strategy:
    """What names are looked for with."""
    return "bm25" if "bm25" in task.strategies else strongest_first(task.strategies)[0]


def _missing(held: ReadEvidence) -> str:
    """In words, what evidence lacks."""
    if held.left is not None and not held.chunk_ids:
        return "the agent would take none of the chunks"
    if held.left is None or held.covered < COVERED_WITH_AGENT:
        return f"the chunks hold {100 * held.covered:.0f} % of what is asked"
    threshold = f"(Q {held.left.q_value:.2f}, threshold {held.left.threshold:.2f})"
    if held.is_complete:
        return f"the agent would take nothing more {threshold}"
    return f"the agent would still take chunk {held.left.chunk_id} {threshold}"


class RuleAgents:
    """A full set. `size`: the chunks worth most that the memory keeps."""

    def __init__(self, reader: Reader, size: int) -> None:
        self.name, self.reader, self.size = RULES_AND + reader.name, reader, size
        self._read: dict[tuple[str, ...], Answer] = {}
        """What was read before: many rounds and branches end with the same chunks."""

    def rewrite(self, task: RewriteTask, turn: Turn) -> tuple[tuple[Rewrite, ...], Cost]:
        """Names first, each looked for by itself; then the question as it is, with each strategy in turn."""
        by_name = self._follow_ups(task, turn.sources) if task.note.chunk_ids else self._openings(task)
        as_it_is = [
            Rewrite(task.question, name, "rules: the question itself")
            for name in strongest_first(task.strategies)
        ]
        return filled([*by_name, *as_it_is], task.width), Cost()

    def _openings(self, task: RewriteTask) -> list[Rewrite]:
        """A search a name, with the question's words that belong to none; none for fewer than two names."""
        named = names(task.question)
        if len(named) < 2:
            return []
        own = [
            word
            for word in dict.fromkeys(words(task.question))
            if not any(mentions(plain(name), word) for name in named)
        ]
        rest, how = " ".join(own[:OPEN_WORDS]), _lexical(task)
        return [
            Rewrite(f"{name} {rest}".strip(), how, f"rules: {name} stands in the question") for name in named
        ]

    def _follow_ups(self, task: RewriteTask, sources: Retrievals) -> list[Rewrite]:
        """Chunk by chunk, the best first: new names, each with the question's words that the chunk lacks."""
        old_queries = plain(" ".join([task.question, *task.queries]))
        rewrites = []
        for chunk_id in task.note.chunk_ids:
            text = sources.text(chunk_id)
            held = set(words(text))
            missing = [word for word in dict.fromkeys(words(task.question)) if word not in held][:OPEN_WORDS]
            fresh = [
                name
                for name in dict.fromkeys([title(text), *names(text)])
                if name and not mentions(old_queries, name)
            ]
            for name in fresh[:NAMES]:
                reason = f"rules: {name} stands in chunk {chunk_id} and was not asked for"
                rewrites.append(Rewrite(f"{name} {' '.join(missing)}".strip(), _lexical(task), reason))
        return rewrites

    def update(
        self,
        question: str,
        query: str,  # noqa: ARG002
        note: Note,
        hits: Sequence[Hit],
        turn: Turn,
    ) -> tuple[Note, Cost]:
        """The best of the memory's chunks and the new ones; an old one goes only where a better came."""
        chunk_ids = [*note.chunk_ids, *(one.chunk_id for one in hits)]
        return self._note(question, chunk_ids, turn.sources)[0], Cost()

    def select(self, question: str, candidates: Sequence[BranchResult], turn: Turn) -> tuple[int, str, Cost]:
        """The branch that the evidence speaks for; the first of equals.

        A branch without an answer comes last. Four things count one point each: the agent would add nothing
        to its chunks, the share of the other branches that answer the same, the share of the question's words
        that its chunks hold, and the reader's confidence.
        """
        evidence_of = [evidence(question, one.note.chunk_ids, turn.sources) for one in candidates]
        agreeing = [_agreement(one, candidates) for one in candidates]
        scores = [
            bool(one.answer) * (1.0 + held.is_complete + agreed + held.covered + (one.confidence or 0.0))
            for one, held, agreed in zip(candidates, evidence_of, agreeing, strict=True)
        ]
        best = max(range(len(candidates)), key=scores.__getitem__)
        if not candidates[best].answer:
            nobody = "rules: no branch has an answer, the first is as good as any"
            return candidates[best].branch, nobody, Cost()
        held, sure = evidence_of[best], candidates[best].confidence or 0.0
        left = "the agent would add nothing" if held.is_complete else "something is left to find"
        reason = (
            f"rules: {left}, its chunks hold {100 * held.covered:.0f} % of what is asked, "
            f"{100 * agreeing[best]:.0f} % of the other branches agree, the reader is {100 * sure:.0f} % sure"
        )
        return candidates[best].branch, reason, Cost()

    def merge(
        self, question: str, best: BranchResult, others: Sequence[BranchResult], turn: Turn
    ) -> tuple[Note, tuple[Weighed, ...], Cost]:
        """The chunks of all branches, the best of them kept."""
        chunk_ids = [chunk_id for one in (best, *others) for chunk_id in one.note.chunk_ids]
        note, weighed = self._note(question, chunk_ids, turn.sources)
        return note, weighed, Cost()

    def _note(
        self, question: str, chunk_ids: Sequence[int], sources: Retrievals
    ) -> tuple[Note, tuple[Weighed, ...]]:
        valued = by_worth(question, chunk_ids, sources)
        falling = [chunk_id for chunk_id, _ in valued]
        needed = sources.needed(question, falling) or ()
        kept = tuple(dict.fromkeys([*needed, *falling]))[: self.size]
        lines = (_bearing(question, sources.text(chunk_id), sources) for chunk_id in kept)
        weighed = tuple(Weighed(chunk_id, value, chunk_id in needed) for chunk_id, value in valued)
        return Note("\n".join(filter(None, lines)), kept), weighed

    def answer(self, question: str, note: Note, turn: Turn) -> tuple[SupportedAnswer, Cost]:
        """The reader's answer; it rests on the chunk of its span, or on all where it has none. One that only
        repeats the question is none. Whole chunks that count are read: the reader was trained on passages,
        and others distract it. Where they give no answer, the whole memory is read.
        """
        reading = SupportedAnswer("", None, ())
        counted = tuple(sorted(evidence(question, note.chunk_ids, turn.sources).chunk_ids))
        for chunk_ids in dict.fromkeys([counted, note.chunk_ids]):
            answer = self._answer(question, tuple(map(turn.sources.text, chunk_ids)))
            if answer.text and not repeats(question, answer.text):
                citations = (chunk_ids[answer.span.passage],) if answer.span else chunk_ids
                return SupportedAnswer(answer.text, answer.confidence, citations), Cost()
            reading = SupportedAnswer("", answer.confidence, ())
        return reading, Cost()

    def _answer(self, question: str, passages: tuple[str, ...]) -> Answer:
        answer = self._read.get((question, *passages))
        if answer is None:
            answer = self._read[question, *passages] = self.reader.read(question, passages)
        return answer

    def judge(
        self,
        question: str,
        query: str,  # noqa: ARG002
        reading: SupportedAnswer,
        note: Note,
        turn: Turn,
    ) -> tuple[Verdict, str, Cost]:
        """Stops when the evidence is complete and the reader sure enough."""
        if not reading.answer:
            return "continue", "rules: no answer beyond the words of the question", Cost()
        held, confidence = evidence(question, note.chunk_ids, turn.sources), reading.confidence or 0.0
        if not held.is_complete:
            return "continue", f"rules: {_missing(held)}", Cost()
        bar = CONFIDENT if held.left is None else CONFIDENT_WHEN_COMPLETE
        verdict: Verdict = "stop" if confidence >= bar else "continue"
        how = "at least" if verdict == "stop" else "less than"
        sure = f"the reader is {100 * confidence:.0f} % sure, {how} {100 * bar:.0f} %"
        return verdict, f"rules: {_missing(held)}; {sure}", Cost()
