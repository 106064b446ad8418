"""Agents without a language model: rules choose queries and keep the memory, a reader answers, its confidence and the agent's Q decide stopping.

    Rewriter          names that the evidence brings and the question doesn't have, each with the words of the question that its chunk leaves open
    ContextManager    the chunks worth most to the question, and of these the sentences that bear on it
    AnswerGenerator   the reader over those chunks
    AnswerEvaluator   stops when the reader is sure; what the trained agent, where there is one, would still take raises the bar
What a chunk is worth is a weighted sum of what can be measured of it, whatever strategy brought it; the weights are round numbers near those of logistic
regressions on validation questions (docs/sparc.md). Decides that a memory holds as many chunks as a branch retrieves, so that it stays small and is
comparable with one retrieval of that size. Knows nothing of rounds, threads and models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.answer.protocol import Answer, Reader
from core.sparc.agents import Agents, Candidate, Reading, Remaining, Rewrite, RewriteTask, Sources, Turn
from core.sparc.events import Cost, Found, Note, Strategy, Verdict
from core.sparc.words import mentions, names, plain, sentences, title, words

STRONG = 4
"""Chunks whose links to others, and whose place in the agent's state, are looked at."""
SENTENCES = 2
"""Most sentences of a chunk in a note."""
CONFIDENT = 2 / 3
"""Reader's confidence that it takes to stop: with a wrong stop as bad as two needless rounds (lambda = 2, section 3.4), going on pays below it."""
PREFERRED: tuple[Strategy, ...] = ("qrag", "dense", "bm25")
"""Order in which the question itself is searched with."""
NAMES = 3
"""Most names of one chunk that are followed."""
OPEN_WORDS = 8
"""Most words of the question in a follow-up query."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Of what a chunk is worth, in log-odds of deciding the answer, but for a constant."""

    q_value: float
    """Of half the largest Q over a few states, the question and the question with each strong chunk, and half the Q after the two strongest."""
    coverage: float
    """Of the share of the question's words in the chunk, rare ones counting more."""
    named: float
    """Of a title that stands in the question."""
    linked: float
    """Of a title that a strong chunk mentions, times that chunk's strength."""


WITH_AGENT = Weights(q_value=6.5, coverage=3.5, named=1.0, linked=0.8)
WITHOUT_AGENT = Weights(q_value=0.0, coverage=5.0, named=1.5, linked=1.5)


def worth(question: str, chunk_ids: Sequence[int], sources: Sources) -> list[float]:
    """Log-odds that each chunk decides the answer, as far as rules can tell and but for a constant.

    First every chunk by itself; the strongest of them then raise those that they mention, or after which the trained agent would take them.
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
    linked = np.array([max((strength[j] for j in strong if j != i and mentions(plains[j], one)), default=0.0) for i, one in enumerate(titles)])
    weights, q_values = WITHOUT_AGENT, np.zeros(len(chunk_ids))
    if first is not None:
        states = [*([j] for j in strong), strong[:2]]
        later = sources.worth(question, chunk_ids, [[chunk_ids[j] for j in state] for state in states])
        assert later is not None
        for row, state in zip(later, states, strict=True):
            row[state] = first[0][state]  # a chunk that is in the state already is worth nothing more there
        weights, q_values = WITH_AGENT, (np.concatenate([first, later[:-1]]).max(0) + later[-1]) / 2
    total = weights.q_value * q_values + weights.coverage * cover + weights.named * named + weights.linked * linked
    return [float(value) for value in total]


def coverage(question: str, text: str, sources: Sources) -> float:
    """Share of the question's words that a text holds, each counting as its rarity; 0 where the question has none."""
    asked = {word: sources.rarity(word) for word in words(question)}
    held = set(words(text))
    total = sum(asked.values())
    return sum(rarity for word, rarity in asked.items() if word in held) / total if total else 0.0


def ranked(question: str, chunk_ids: Sequence[int], sources: Sources) -> list[int]:
    """Chunks by falling worth, none twice, equals as they came."""
    distinct = list(dict.fromkeys(chunk_ids))
    values = worth(question, distinct, sources)
    return [distinct[i] for i in sorted(range(len(distinct)), key=lambda i: -values[i])]


class RuleManager:
    """Keeps the chunks that are worth most. `size`: how many."""

    def __init__(self, size: int) -> None:
        self.size = size

    def update(self, question: str, query: str, note: Note, found: Sequence[Found], turn: Turn) -> tuple[Note, Cost]:  # noqa: ARG002 - what counts is the question
        """The memory's chunks and the new ones, the best of both kept; an old one goes only where a better one came."""
        return self._note(question, [*note.chunk_ids, *(one.chunk_id for one in found)], turn.sources), Cost()

    def select(self, question: str, candidates: Sequence[Candidate], turn: Turn) -> tuple[int, str, Cost]:
        """The branch whose answer is surest and whose chunks say most of what is asked; the first of equals."""
        scores = [(one.confidence or 0.0) * bool(one.answer) + self._covered(question, one.note, turn.sources) for one in candidates]
        best = max(range(len(candidates)), key=lambda i: scores[i])
        return candidates[best].branch, f"rules: confidence and coverage {scores[best]:.2f}, the highest of {len(candidates)}", Cost()

    def merge(self, question: str, best: Candidate, others: Sequence[Candidate], turn: Turn) -> tuple[Note, Cost]:
        """The chunks of all branches, the best of them kept."""
        return self._note(question, [chunk_id for one in (best, *others) for chunk_id in one.note.chunk_ids], turn.sources), Cost()

    def _note(self, question: str, chunk_ids: Sequence[int], sources: Sources) -> Note:
        kept = ranked(question, chunk_ids, sources)[: self.size]
        lines = [line for chunk_id in kept for line in [_bearing(question, sources.text(chunk_id), sources)] if line]
        return Note("\n".join(lines), tuple(kept))

    def _covered(self, question: str, note: Note, sources: Sources) -> float:
        return coverage(question, "\n".join(map(sources.text, note.chunk_ids)), sources)


def _bearing(question: str, text: str, sources: Sources) -> str:
    """The sentences of a chunk that share most with the question, in their order; its first one where none shares anything."""
    parts = list(sentences(text))
    scores = [coverage(question, part, sources) for part in parts]
    best = sorted(sorted(range(len(parts)), key=lambda i: -scores[i])[:SENTENCES])
    return " ".join([parts[i] for i in best if scores[i] > 0] or parts[:1])


class RuleRewriter:
    """Queries from the names of the question, and follow-ups from the names that the evidence brings."""

    def rewrite(self, task: RewriteTask, turn: Turn) -> tuple[tuple[Rewrite, ...], Cost]:
        """Names first, each looked for by itself; then the question as it is, with each strategy in turn."""
        by_name = self._follow_ups(task, turn.sources) if task.note.chunk_ids else self._openings(task)
        as_it_is = [Rewrite(task.question, name, "rules: the question itself") for name in PREFERRED if name in task.strategies]
        distinct = {(one.query.lower(), one.strategy): one for one in reversed([*by_name, *as_it_is])}
        wanted = list(reversed(distinct.values()))
        return tuple(wanted[i % len(wanted)] for i in range(task.width)), Cost()

    def _openings(self, task: RewriteTask) -> list[Rewrite]:
        """One search a name of the question, with the words that belong to no name; none where it names fewer than two things."""
        named = names(task.question)
        rest = [word for word in dict.fromkeys(words(task.question)) if not any(mentions(plain(name), word) for name in named)][:OPEN_WORDS]
        if len(named) < 2:
            return []
        return [Rewrite(f"{name} {' '.join(rest)}".strip(), _lexical(task), f"rules: {name} stands in the question") for name in named]

    def _follow_ups(self, task: RewriteTask, sources: Sources) -> list[Rewrite]:
        """Chunk by chunk, the best first: names that were not asked for, each with the words of the question that the chunk doesn't hold."""
        asked = plain(" ".join([task.question, *task.asked]))
        rewrites = []
        for chunk_id in task.note.chunk_ids:
            text = sources.text(chunk_id)
            held = set(words(text))
            missing = [word for word in dict.fromkeys(words(task.question)) if word not in held][:OPEN_WORDS]
            fresh = [name for name in dict.fromkeys([title(text), *names(text)]) if name and not mentions(asked, name)]
            for name in fresh[:NAMES]:
                reason = f"rules: {name} stands in chunk {chunk_id} and was not asked for"
                rewrites.append(Rewrite(f"{name} {' '.join(missing)}".strip(), _lexical(task), reason))
        return rewrites


def _lexical(task: RewriteTask) -> Strategy:
    """What names are looked for with."""
    return "bm25" if "bm25" in task.strategies else next(name for name in PREFERRED if name in task.strategies)


class ReaderGenerator:
    """The reader over the memory's chunks, whole: it was trained on passages."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._read: dict[tuple[str, ...], Answer] = {}
        """What was read before: many rounds and branches end with the same chunks."""

    def answer(self, question: str, note: Note, turn: Turn) -> tuple[Reading, Cost]:
        """The reader's answer; it rests on the chunk of its span, or on all where it has none."""
        passages = tuple(turn.sources.text(chunk_id) for chunk_id in note.chunk_ids)
        answer = self._read.get((question, *passages))
        if answer is None:
            answer = self._read[question, *passages] = self.reader.read(question, passages)
        citations = () if not answer.text else (note.chunk_ids[answer.span.passage],) if answer.span else note.chunk_ids
        return Reading(answer.text, answer.confidence, citations), Cost()


class RuleEvaluator:
    """Stops when the reader is sure enough; the more the agent would still take, the surer it has to be."""

    def judge(self, question: str, query: str, reading: Reading, note: Note, turn: Turn) -> tuple[Verdict, str, Cost]:  # noqa: ARG002 - what counts is the question
        """See the class."""
        if not reading.answer:
            return "continue", "rules: the reader finds no answer in the evidence", Cost()
        confidence, left = reading.confidence or 0.0, turn.sources.left_to_find(question, note.chunk_ids)
        bar, why = _bar(left)
        if confidence < bar:
            return "continue", f"rules: the reader's confidence {confidence:.2f} is below {bar:.2f}{why}", Cost()
        return "stop", f"rules: the reader's confidence {confidence:.2f} reaches {bar:.2f}{why}", Cost()


def _bar(left: Remaining | None) -> tuple[float, str]:
    """The confidence that it takes to stop, and in words what raised it: from CONFIDENT, where the agent would take nothing more, to 1 at a Q of 1."""
    if left is None:
        return CONFIDENT, ""
    if left.q_value < left.threshold:
        return CONFIDENT, f"; the agent would take nothing more (Q {left.q_value:.2f}, threshold {left.threshold:.2f})"
    share = min(1.0, (left.q_value - left.threshold) / max(1.0 - left.threshold, 1e-6))
    return CONFIDENT + (1 - CONFIDENT) * share, f", as the agent would still take chunk {left.chunk_id} (Q {left.q_value:.2f}, threshold {left.threshold:.2f})"


def rule_agents(reader: Reader, size: int) -> Agents:
    """A full set. `size`: chunks of the memory."""
    return Agents(f"rules and {reader.name}", RuleRewriter(), RuleManager(size), ReaderGenerator(reader), RuleEvaluator())
