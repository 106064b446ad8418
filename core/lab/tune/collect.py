"""Preference pairs from the SPARC runs of a log (SPARC-RAG section 3.4).

Rewrites are compared by the support that they found, stop decisions by whether the answer was right. A prompt
is exactly what the agent sent: its own prompt for the state in the trace and, where the model got its schema
in words, those words. Only decisions of a language model count, in runs whose question has a label.

The paper leaves two things open. Here every judged answer gives one pair, right verdicts too, or the tuned
model would learn to go on (or stop) always. And a verdict that no run gave in some state gets a stock reason,
because verdicts are taken at temperature 0 and the other one never comes by itself. Traces may come from
anywhere: damaged ones are counted and left out, and all sizes are bounded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, get_args

from core.base.errors import BadRequest, LogError
from core.base.metrics import answer_accuracy, answer_em, fact_recall, plain_answer
from core.lab.tune.pairs import MAX_LINE_BYTES, MAX_PAIRS, Preference, pair_lines
from core.llm.client import with_words
from core.llm.protocol import Cost, Message
from core.methods.sparc.events import Verdict
from core.methods.sparc.llm_agents import (
    Judgement,
    WantedQueries,
    WantedQuery,
    evaluator_prompt,
    queries_schema,
    rewriter_prompt,
)
from core.methods.sparc.retriever import SPARC
from core.methods.sparc.trace import SparcRound, SparcTrace
from core.runs.log import LoggedRun, RunReader
from core.runs.log.records import sparc_trace_of, support_of

MAX_CHARACTERS = 200_000_000
"""Of all states kept at once; runs beyond it are left out."""
MAX_REWRITES_OF_A_STATE = 64
"""Different replies that are compared with each other; the oldest runs' are left out."""
MAX_PAIRS_OF_A_STATE = 8
"""Of one state's rewrites: those whose recall differs most."""
STOCK_REASONS: dict[Verdict, str] = {
    "stop": "The note states every fact on the way to the answer.",
    "continue": "A fact on the way to the answer is missing from the note, or only assumed.",
}
EARLY_STOP_WEIGHT = 2.0
"""lambda of SPARC-RAG section 3.4, as files carry it; `tune` may weigh otherwise."""


@dataclass(frozen=True)
class CollectReport:
    """What a log gave."""

    runs: int
    skipped: dict[str, int]
    """Of these runs, by reason."""
    decisions: dict[str, int]
    """Rewrites and verdicts of language models, verdicts as "wrong stop", "right continue" and so on."""
    pairs: dict[str, int]
    """By kind."""
    left_out: int
    """Pairs too long for a file, or beyond its bound."""


@dataclass
class _Rewrites:
    """What was searched for in one state: recall by reply."""

    question: str
    recalls: dict[str, float] = field(default_factory=dict)


@dataclass
class _Verdicts:
    """What was decided about one answer: whether it was right, and the reason of each verdict."""

    question: str
    right: bool
    reasons: dict[Verdict, str] = field(default_factory=dict)


class Collector:
    """Gathers decisions run by run, and pairs those of one state."""

    def __init__(self) -> None:
        self._rewrites: dict[tuple[Any, ...], _Rewrites] = {}
        self._verdicts: dict[tuple[Message, ...], _Verdicts] = {}
        self._skipped: Counter[str] = Counter()
        self._decisions: Counter[str] = Counter()
        self._runs = self._characters = 0

    def add(self, run: LoggedRun) -> None:
        """The decisions of one run."""
        self._runs += 1
        if reason := self._read(run):
            self._skipped[reason] += 1

    def pairs(self) -> tuple[list[Preference], CollectReport]:
        """All pairs, bounded, each once, and what they were made of."""
        pairs = dict.fromkeys([*self._stop_pairs(), *self._rewrite_pairs()])
        lines = zip(pairs, pair_lines(pairs), strict=True)
        short = [pair for pair, line in lines if len(line.encode("utf-8", "replace")) <= MAX_LINE_BYTES]
        kept = short[:MAX_PAIRS]
        counts = (self._skipped, self._decisions, Counter[str](pair.kind for pair in kept))
        skipped, decisions, kinds = (dict(sorted(counted.items())) for counted in counts)
        return kept, CollectReport(self._runs, skipped, decisions, kinds, len(pairs) - len(kept))

    def _read(self, run: LoggedRun) -> str | None:
        """Notes the decisions of a run; why it is left out, where it is."""
        support, answers = {*support_of(run)}, answers_of(run)
        if not support and not answers:
            return "no label"
        if self._characters > MAX_CHARACTERS:
            return "beyond the bound"
        try:
            trace = sparc_trace_of(run)
        except LogError:
            return "damaged trace"
        if trace is None:
            return "no trace"
        corpus = (run.record.document_hashes, trace.started.config.k)
        for played in trace.rounds:
            if support:
                self._add_rewrites(trace, played, support, corpus)
            if answers:
                self._add_verdicts(trace, played, answers)
        return None

    def _add_rewrites(
        self, trace: SparcTrace, played: SparcRound, support: Collection[int], corpus: tuple[Any, ...]
    ) -> None:
        task, found = trace.rewriter_task(played.number), [branch.retrieved for branch in played.branches]
        if task is None or not played.started.cost.calls or None in found:
            return
        prompt = _as_sent(rewriter_prompt(task), queries_schema(task), played.started.cost)
        queries = [
            WantedQuery(query=query.query, strategy=query.strategy, reason=query.reason)
            for query in played.started.queries
        ]
        reply = json.dumps(WantedQueries(queries=queries).model_dump(exclude_unset=True), ensure_ascii=False)
        state = self._rewrites.setdefault((prompt, *corpus), _Rewrites(task.question))
        if len(state.recalls) < MAX_REWRITES_OF_A_STATE:
            chunks = {chunk.chunk_id for search in found if search for chunk in search.found}
            state.recalls.setdefault(reply, fact_recall(chunks, support))
        self._decisions["rewrites"] += 1
        self._characters += _length(prompt) + len(reply)

    def _add_verdicts(self, trace: SparcTrace, played: SparcRound, answers: Collection[str]) -> None:
        question = trace.started.question
        for branch in played.branches:
            noted, answered, judged = branch.noted, branch.answered, branch.judged
            if noted is None or answered is None or judged is None or not judged.cost.calls:
                continue
            messages = evaluator_prompt(question, branch.query.query, answered.answer, noted.after)
            prompt = _as_sent(messages, Judgement, judged.cost)
            right = is_right(answered.answer, answers)
            state = self._verdicts.setdefault(prompt, _Verdicts(question, right))
            state.reasons.setdefault(judged.verdict, judged.reason)
            was_right = state.right == (judged.verdict == "stop")
            self._decisions[f"{'right' if was_right else 'wrong'} {judged.verdict}"] += 1
            self._characters += _length(prompt)

    def _stop_pairs(self) -> Iterator[Preference]:
        for prompt, state in self._verdicts.items():
            stop, go_on = (
                _verdict_reply(verdict, state.reasons.get(verdict, STOCK_REASONS[verdict]))
                for verdict in get_args(Verdict)
            )
            if state.right:
                yield Preference("stop_over_continue", state.question, prompt, stop, go_on)
            else:
                yield Preference("continue_over_stop", state.question, prompt, go_on, stop, EARLY_STOP_WEIGHT)

    def _rewrite_pairs(self) -> Iterator[Preference]:
        for (prompt, *_), state in self._rewrites.items():
            replies = sorted(state.recalls.items(), key=lambda item: (-item[1], item[0]))
            better = sorted(
                (low - high, chosen, rejected)
                for (chosen, high), (rejected, low) in combinations(replies, 2)
                if high > low
            )
            for _, chosen, rejected in better[:MAX_PAIRS_OF_A_STATE]:
                yield Preference("rewrite", state.question, prompt, chosen, rejected)


def collect_pairs(reader: RunReader) -> tuple[list[Preference], CollectReport]:
    """The pairs of all SPARC runs without an owner. Raises LogError, and BadRequest when they give none."""
    collector = Collector()
    found = (
        "SELECT run_id FROM runs WHERE owner IS NULL AND method = $method ORDER BY created_at DESC, run_id"
    )
    for row in reader.rows(found, {"method": SPARC}):
        collector.add(reader.get(row["run_id"]))
    pairs, report = collector.pairs()
    if not pairs:
        why = "".join(f"; {count:,} with {reason}" for reason, count in report.skipped.items())
        raise BadRequest(
            f"the {report.runs:,} SPARC runs of the log hold no decisions of a language model that give"
            f" pairs{why}; run labelled questions by SPARC with a language model and --log, several times for"
            " rewrites"
        )
    return pairs, report


def answers_of(run: LoggedRun) -> tuple[str, ...]:
    """The answers that the run's label knows; strangers bring logs, so what is no text doesn't count."""
    label = run.record.label or {}
    named = label.get("answers", label.get("answer"))
    answers = named if isinstance(named, list) else [named]
    return tuple(answer for answer in answers if isinstance(answer, str) and answer.strip())


def is_right(answer: str, accepted: Collection[str]) -> bool:
    """Whether an answer is an accepted one, or contains one; a bare yes or no has to be the whole answer.

    >>> is_right("It was Paris.", ["Paris"]), is_right("no idea", ["no"]), is_right("No.", ["no"])
    (True, False, True)
    """
    words = [answer for answer in accepted if plain_answer(answer) not in ("yes", "no")]
    return bool(answer_em(answer, accepted) or (words and answer_accuracy(answer, words)))


def _as_sent(
    messages: Iterable[Message], schema: type[Judgement] | type[WantedQueries], cost: Cost
) -> tuple[Message, ...]:
    """The conversation as the model got it."""
    return tuple(messages if cost.structure == "json_schema" else with_words([*messages], schema))


def _verdict_reply(verdict: Verdict, reason: str) -> str:
    return json.dumps(Judgement(reason=reason, verdict=verdict).model_dump(), ensure_ascii=False)


def _length(prompt: Iterable[Message]) -> int:
    return sum(len(message.content) for message in prompt)
