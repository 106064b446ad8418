"""The baselines of SPARC-RAG (section 4.4, appendix A.5).

On the same retrieval, reader and language model as SPARC.

    vanilla      one search with the question, one answer
    parallel     W answers at temperature 0.7, the most frequent one
    sequential   an answer and a self-assessed confidence; below 0.7 it tries again, three times at most;
                 the surest attempt counts
    ircot        a reasoning sentence and a search with it, in turn
    iter-retgen  a search with the question and the last answer, three times

Raw chunks pile up here, no note is kept, so their number is bounded as in the paper's `global_max_num_paras`.
Without a language model a reader gives the answers. It is not sampled, so where a model would answer again,
the reader reads what another strategy finds; its reasoning sentence is the sentence of the evidence that says
most of what is asked; its confidence is its own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field

from core.base.config import check_query
from core.base.errors import BadRequest
from core.base.metrics import plain_answer
from core.llm.protocol import Cost, Llm, LlmError
from core.methods.sparc.agents import SparcAgents, SupportedAnswer, Turn
from core.methods.sparc.budget import Budget, OutOfBudget
from core.methods.sparc.config import check_sparc_config, strongest_first
from core.methods.sparc.events import EndReason, Hit, Note, SparcConfig, Strategy
from core.methods.sparc.llm_agents import ask, numbered, prompt, quoted
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.rules import coverage
from core.methods.sparc.words import sentences

MAX_PARAGRAPHS = 15
"""Most chunks that pile up."""
CONFIDENT, ATTEMPTS = 0.7, 3
"""Of the sequential baseline."""
SAMPLED = 0.7
"""Temperature of answers that are drawn several times."""
THOUGHTS = 4
"""Most reasoning sentences."""
ITERATIONS = 3


@dataclass(frozen=True, slots=True)
class BaselineStep:
    """One search, thought or answer."""

    query: str
    strategy: Strategy | None
    """None where nothing was searched."""
    found: tuple[int, ...]
    text: str
    """What was answered or thought."""
    confidence: float | None
    cost: Cost


@dataclass(frozen=True, slots=True)
class BaselineTrace:
    """One question through one baseline."""

    method: str
    question: str
    agents: str
    answer: str
    confidence: float | None
    evidence: tuple[int, ...]
    """Chunks that the answer was read from, in order of retrieval."""
    steps: tuple[BaselineStep, ...]
    stop_reason: EndReason | None = None
    """What ended it before it had an answer; None where nothing did."""

    @property
    def cost(self) -> Cost:
        """Of all steps."""
        spent = Cost()
        for step in self.steps:
            spent += step.cost
        return spent


class Thought(BaseModel):
    """One step of a chain of thought."""

    thought: str
    finished: bool = False


class Confidence(BaseModel):
    """A model's opinion of its own answer."""

    confidence: float = Field(ge=0, le=1)


@dataclass(frozen=True, eq=False)
class _Bench:
    """What a baseline works with."""

    question: str
    retrievals: Retrievals
    agents: SparcAgents
    llm: Llm | None
    config: SparcConfig
    turn: Turn

    def search(self, strategy: Strategy, query: str) -> tuple[tuple[Hit, ...], float]:
        """(chunks, milliseconds)."""
        began = time.perf_counter()
        return self.retrievals.search(strategy, query, self.config.k), 1000 * (time.perf_counter() - began)

    def answer(self, chunk_ids: Sequence[int], turn: Turn | None = None) -> tuple[SupportedAnswer, Cost]:
        """An answer from whole chunks."""
        began = time.perf_counter()
        note = Note("\n\n".join(map(self.retrievals.text, chunk_ids)), tuple(chunk_ids))
        reading, cost = self.agents.answer(self.question, note, turn or self.turn)
        return reading, replace(cost, milliseconds=1000 * (time.perf_counter() - began))

    def attempt(
        self, strategy: Strategy, query: str, turn: Turn | None = None
    ) -> tuple[list[int], SupportedAnswer, BaselineStep]:
        """(chunks, answer, step) of one search and an answer from what it finds."""
        hits, spent = self.search(strategy, query)
        ids = [hit.chunk_id for hit in hits]
        reading, cost = self.answer(ids, turn)
        cost += Cost(milliseconds=spent)
        return (
            ids,
            reading,
            BaselineStep(query, strategy, tuple(ids), reading.answer, reading.confidence, cost),
        )

    def trace(
        self, method: str, reading: SupportedAnswer, evidence: Sequence[int], steps: Sequence[BaselineStep]
    ) -> BaselineTrace:
        return BaselineTrace(
            method,
            self.question,
            self.agents.name,
            reading.answer,
            reading.confidence,
            tuple(evidence),
            tuple(steps),
        )

    @property
    def orders(self) -> tuple[Strategy, ...]:
        """Strategies, the first for a single search."""
        return strongest_first(self.config.strategies)


def run_baseline(
    name: str,
    question: str,
    agents: SparcAgents,
    retrievals: Retrievals,
    config: SparcConfig,
    llm: Llm | None = None,
) -> BaselineTrace:
    """One question through a baseline. `llm` is the model that `agents` ask, if any.

    `config.strategies` says what is searched with, its first in the order qrag, dense, bm25 where only one is
    needed. Where a language model fails or a budget is used up there is no answer, and one step with all that
    it took. Raises BadRequest, LlmCancelled.
    """
    if name not in BASELINES:
        raise BadRequest(f"baseline {name!r} does not exist; choose among {', '.join(BASELINES)}")
    check_sparc_config(config)
    turn = Turn(retrievals, Budget(config.max_tokens, config.max_calls), config.temperature, config.seed)
    bench = _Bench(check_query(question), retrievals, agents, llm, config, turn)
    try:
        return BASELINES[name](bench)
    except (LlmError, OutOfBudget) as error:
        reason: EndReason = error.reason if isinstance(error, OutOfBudget) else "failed"
        step = BaselineStep(bench.question, None, (), "", None, turn.budget.taken)
        return replace(bench.trace(name, SupportedAnswer("", None, ()), (), [step]), stop_reason=reason)


def _vanilla(bench: _Bench) -> BaselineTrace:
    ids, reading, step = bench.attempt(bench.orders[0], bench.question)
    return bench.trace("vanilla", reading, ids, [step])


def _attempt(bench: _Bench, number: int) -> tuple[list[int], SupportedAnswer, BaselineStep]:
    """The number-th answer, from 0: a model's next sample, or the reader's over another strategy's chunks."""
    strategy = bench.orders[0] if bench.llm else bench.orders[number % len(bench.orders)]
    turn = replace(bench.turn, temperature=SAMPLED, seed=bench.turn.seed + number)
    return bench.attempt(strategy, bench.question, turn)


def _parallel(bench: _Bench) -> BaselineTrace:
    attempts = [_attempt(bench, number) for number in range(bench.config.width)]
    votes = Counter(plain_answer(reading.answer) for _, reading, _ in attempts if reading.answer)
    winner = votes.most_common(1)[0][0] if votes else ""
    ids, reading, _ = next(
        (attempt for attempt in attempts if plain_answer(attempt[1].answer) == winner), attempts[0]
    )
    return bench.trace("parallel", reading, ids, [step for _, _, step in attempts])


def _sequential(bench: _Bench) -> BaselineTrace:
    tried: list[tuple[float, list[int], SupportedAnswer]] = []
    steps = []
    for number in range(ATTEMPTS):
        ids, reading, step = _attempt(bench, number)
        confidence, cost = (
            (reading.confidence or 0.0, Cost())
            if bench.llm is None
            else _self_confidence(bench, bench.llm, reading, ids)
        )
        confidence *= bool(reading.answer)
        steps.append(replace(step, confidence=confidence, cost=step.cost + cost))
        tried.append((confidence, ids, replace(reading, confidence=confidence)))
        if confidence >= CONFIDENT:
            break
    _, ids, reading = max(tried, key=lambda attempt: attempt[0])
    return bench.trace("sequential", reading, ids, steps)


def _self_confidence(
    bench: _Bench, llm: Llm, reading: SupportedAnswer, ids: Sequence[int]
) -> tuple[float, Cost]:
    values = {
        "question": quoted("question", bench.question),
        "passages": numbered("passage", map(bench.retrievals.text, ids)),
        "answer": quoted("answer", reading.answer),
    }
    reply, cost = ask(llm, prompt("confidence", values), Confidence, bench.turn, 0.0)
    return reply.confidence, cost


def _ircot(bench: _Bench) -> BaselineTrace:
    lexical: Strategy = "bm25" if "bm25" in bench.config.strategies else bench.orders[0]
    ids, thoughts, steps, query = list[int](), list[str](), list[BaselineStep](), bench.question
    for _ in range(THOUGHTS):
        hits, spent = bench.search(lexical, query)
        ids = _piled(ids, hits)
        thought, cost = (
            _rule_thought(bench, ids, thoughts)
            if bench.llm is None
            else _thought(bench, bench.llm, ids, thoughts)
        )
        found, cost = tuple(hit.chunk_id for hit in hits), cost + Cost(milliseconds=spent)
        steps.append(BaselineStep(query, lexical, found, thought.thought, None, cost))
        if not thought.thought or thought.finished:
            break
        thoughts.append(thought.thought)
        query = thought.thought
    reading, cost = bench.answer(ids)
    last = BaselineStep(bench.question, None, (), reading.answer, reading.confidence, cost)
    return bench.trace("ircot", reading, ids, [*steps, last])


def _thought(bench: _Bench, llm: Llm, ids: Sequence[int], thoughts: Sequence[str]) -> tuple[Thought, Cost]:
    values = {
        "question": quoted("question", bench.question),
        "passages": numbered("passage", map(bench.retrievals.text, ids)),
        "thoughts": numbered("note", thoughts),
    }
    thought, cost = ask(llm, prompt("thought", values), Thought, bench.turn, bench.turn.temperature)
    return Thought(thought=thought.thought.strip()[:1_000], finished=thought.finished), cost


def _rule_thought(bench: _Bench, ids: Sequence[int], thoughts: Sequence[str]) -> tuple[Thought, Cost]:
    """The sentence of the evidence that says most of what is asked and wasn't thought yet."""
    fresh = [
        part
        for chunk_id in ids
        for part in sentences(bench.retrievals.text(chunk_id))
        if part not in thoughts
    ]
    best = max(fresh, key=lambda part: coverage(bench.question, part, bench.retrievals), default="")
    return Thought(thought=best), Cost()


def _iter_retgen(bench: _Bench) -> BaselineTrace:
    query, steps = bench.question, list[BaselineStep]()
    for _ in range(ITERATIONS):
        ids, reading, step = bench.attempt(bench.orders[0], query)
        steps.append(step)
        following = f"{bench.question} {reading.answer}".strip()
        if following == query:
            break
        query = following
    return bench.trace("iter-retgen", reading, ids, steps)


def _piled(ids: Sequence[int], hits: Sequence[Hit]) -> list[int]:
    return list(dict.fromkeys([*ids, *(hit.chunk_id for hit in hits)]))[:MAX_PARAGRAPHS]


BASELINES: dict[str, Callable[[_Bench], BaselineTrace]] = {
    "vanilla": _vanilla,
    "parallel": _parallel,
    "sequential": _sequential,
    "ircot": _ircot,
    "iter-retgen": _iter_retgen,
}
