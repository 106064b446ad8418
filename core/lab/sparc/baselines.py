"""The baselines of SPARC-RAG (section 4.4, appendix A.5).

On the same retrieval, reader and language model as SPARC.

    vanilla      one search with the question, one answer
    parallel     W answers at temperature 0.7, the most frequent one
    sequential   an answer and a self-assessed confidence; below 0.7 it tries again, three times at most;
                 the surest attempt counts
    ircot        a reasoning sentence and a search with it, in turn
    iter-retgen  a search with the question and the last answer, three times

and, which need a language model, other ways to ask one:

    direct       an answer from what the model knows, without a search
    cot          one search, a chain of thought, an answer
    self-rag     a search, the passages that help, an answer from them, and whether they bear it out; else the
                 search is rewritten, three times at most
    search-r1    the model thinks and searches until it answers, four searches at most
    resrag-llm   the evidence set that the model writes (RES-RAG section 3), an answer from it

Self-RAG and Search-R1 train a model; here they are prompts, as Self-RAG is in the SPARC-RAG paper. Raw
chunks pile up, so their number is bounded as in the paper's `global_max_num_paras`. Without a language model
a reader answers: where a model would answer again, it reads what another strategy finds; its reasoning
sentence is that of the evidence which says most of what is asked; its confidence is its own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pydantic import BaseModel, Field, create_model

from core.base.config import EpisodeConfig, check_query
from core.base.errors import BadRequest
from core.base.metrics import plain_answer
from core.corpus.index import Searchable
from core.encode.encoder import DualEncoder
from core.llm.protocol import Cost, Llm, LlmError
from core.methods.resrag.llm.policy import set_prompt, taken_by
from core.methods.sparc.agents import SparcAgents, Turn
from core.methods.sparc.budget import Budget, OutOfBudget
from core.methods.sparc.config import check_sparc_config, strongest_first
from core.methods.sparc.events import EndReason, Note, SparcConfig, Strategy
from core.methods.sparc.llm_agents import GivenAnswer, ask, numbered, numbers_of, prompt, quoted
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.rules import coverage
from core.methods.sparc.words import sentences

Reply = TypeVar("Reply", bound=BaseModel)
MAX_PARAGRAPHS = 15
CONFIDENT, ATTEMPTS = 0.7, 3
"""Of the sequential baseline."""
SAMPLED = 0.7
"""Temperature of answers that are drawn several times."""
THOUGHTS = 4
"""Most reasoning sentences."""
ITERATIONS = 3
SEARCHES = 4
"""Most searches of a model that decides itself."""
SET_CONTEXT_TOKENS = 1_536
"""Of the prompt that an evidence set is written from, and its reply: some ten paragraphs."""
MAX_CHARACTERS = 1_000
"""Kept of a thought or a search that a model writes."""


@dataclass(frozen=True, slots=True)
class BaselineTrace:
    """One question through one baseline."""

    method: str
    agents: str
    answer: str
    confidence: float | None
    evidence: tuple[int, ...]
    """Chunks that the answer was read from, in order of retrieval."""
    queries: tuple[str, ...]
    """What each step searched for; the question where it searched nothing."""
    cost: Cost
    stop_reason: EndReason | None = None
    """What ended it before it had an answer; None where nothing did."""


class Thought(BaseModel):
    """One step of a chain of thought."""

    thought: str
    finished: bool = False


class Reasoned(BaseModel):
    """A chain of thought and where it leads. In this order: a server that is bound to the schema writes its
    fields one after the other."""

    reasoning: str
    answer: str


class Relevant(BaseModel):
    """Which passages help."""

    relevant: list[int]


class Critique(BaseModel):
    """Whether passages bear an answer out, and whether it is one."""

    supported: bool
    useful: bool


class NextSearch(BaseModel):
    """What is searched for next."""

    query: str


class Move(BaseModel):
    """What a model does next: a search, or an answer. Both are a search: the answer came before its
    result."""

    thought: str = ""
    search: str = ""
    answer: str = ""


class Confidence(BaseModel):
    """A model's opinion of its own answer."""

    confidence: float = Field(ge=0, le=1)


@dataclass(frozen=True)
class _Attempt:
    """An answer, and the chunks that it was read from."""

    ids: tuple[int, ...]
    answer: str = ""
    confidence: float | None = None


@dataclass(eq=False)
class _Bench:
    """What a baseline works with, and what it has spent."""

    question: str
    retrievals: Retrievals
    agents: SparcAgents
    llm: Llm | None
    config: SparcConfig
    turn: Turn
    plain: tuple[Searchable, DualEncoder] | None
    queries: list[str] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)

    def search(self, strategy: Strategy, query: str) -> tuple[int, ...]:
        """A step's chunks."""
        began = time.perf_counter()
        hits = self.retrievals.search(strategy, query, self.config.k)
        self.cost += Cost(milliseconds=1000 * (time.perf_counter() - began))
        self.queries.append(query)
        return tuple(hit.chunk_id for hit in hits)

    def answer(self, ids: Sequence[int], turn: Turn | None = None) -> _Attempt:
        """An answer from whole chunks."""
        began = time.perf_counter()
        note = Note("\n\n".join(map(self.retrievals.text, ids)), tuple(ids))
        reading, cost = self.agents.answer(self.question, note, turn or self.turn)
        self.cost += replace(cost, milliseconds=1000 * (time.perf_counter() - began))
        return _Attempt(tuple(ids), reading.answer, reading.confidence)

    def sampled(self, number: int) -> _Attempt:
        """The number-th answer, from 0: a model's next sample, or the reader's over another strategy's."""
        strategy = self.orders[0] if self.llm else self.orders[number % len(self.orders)]
        turn = replace(self.turn, temperature=SAMPLED, seed=self.turn.seed + number)
        return self.answer(self.search(strategy, self.question), turn)

    def ask(
        self, name: str, schema: type[Reply], ids: Sequence[int], temperature: float, **values: str
    ) -> Reply:
        """What the model says of the question and some chunks."""
        passages = numbered("passage", map(self.retrievals.text, ids))
        told = {"question": quoted("question", self.question), "passages": passages, **values}
        assert self.llm is not None
        value, reply = ask(self.llm, prompt(name, told), schema, self.turn, temperature)
        self.cost += reply.cost
        return value

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
    plain: tuple[Searchable, DualEncoder] | None = None,
) -> BaselineTrace:
    """One question through a baseline. `llm`: the model that `agents` ask, if any; `plain`: the chunks under
    an untrained encoder, which rank what an evidence set is written from.

    `config.strategies` says what is searched with, its first in the order qrag, dense, bm25 where only one is
    needed. Where a model fails or a budget is used up there is no answer, and one step with all that it took.
    Raises BadRequest, LlmCancelled.
    """
    if name not in BASELINES:
        raise BadRequest(f"baseline {name!r} does not exist; choose among {', '.join(BASELINES)}")
    check_sparc_config(config)
    if llm is None and name in PROMPTED:
        raise BadRequest(f"baseline {name} needs a language model; connect one, or leave the baseline out")
    turn = Turn(retrievals, Budget(config.max_tokens, config.max_calls), config.temperature, config.seed)
    bench = _Bench(check_query(question), retrievals, agents, llm, config, turn, plain)
    reason: EndReason | None = None
    try:
        end = BASELINES[name](bench)
    except (LlmError, OutOfBudget) as error:
        reason = error.reason if isinstance(error, OutOfBudget) else "failed"
        end, bench.queries, bench.cost = _Attempt(()), [bench.question], turn.budget.taken
    said = (name, agents.name, end.answer, end.confidence, end.ids)
    return BaselineTrace(*said, tuple(bench.queries), bench.cost, reason)


def _vanilla(bench: _Bench) -> _Attempt:
    return bench.answer(bench.search(bench.orders[0], bench.question))


def _parallel(bench: _Bench) -> _Attempt:
    attempts = [bench.sampled(number) for number in range(bench.config.width)]
    votes = Counter(plain_answer(attempt.answer) for attempt in attempts if attempt.answer)
    winner = votes.most_common(1)[0][0] if votes else ""
    return next((attempt for attempt in attempts if plain_answer(attempt.answer) == winner), attempts[0])


def _sequential(bench: _Bench) -> _Attempt:
    tried: list[tuple[float, _Attempt]] = []
    for number in range(ATTEMPTS):
        attempt = bench.sampled(number)
        sure = attempt.confidence or 0.0
        if bench.llm is not None:
            answer = quoted("answer", attempt.answer)
            sure = bench.ask("confidence", Confidence, attempt.ids, 0.0, answer=answer).confidence
        sure *= bool(attempt.answer)
        tried.append((sure, replace(attempt, confidence=sure)))
        if sure >= CONFIDENT:
            break
    return max(tried, key=lambda made: made[0])[1]


def _ircot(bench: _Bench) -> _Attempt:
    lexical: Strategy = "bm25" if "bm25" in bench.config.strategies else bench.orders[0]
    ids, thoughts, query = tuple[int, ...](), list[str](), bench.question
    for _ in range(THOUGHTS):
        ids = tuple(dict.fromkeys([*ids, *bench.search(lexical, query)]))[:MAX_PARAGRAPHS]
        thought = _thought(bench, ids, thoughts)
        if not thought.thought or thought.finished:
            break
        thoughts.append(thought.thought)
        query = thought.thought
    bench.queries.append(bench.question)
    return bench.answer(ids)


def _thought(bench: _Bench, ids: Sequence[int], thoughts: Sequence[str]) -> Thought:
    """A model's; or the sentence of the evidence that says most of what is asked and wasn't thought yet."""
    if bench.llm is not None:
        told, warmth = numbered("note", thoughts), bench.turn.temperature
        thought = bench.ask("thought", Thought, ids, warmth, thoughts=told)
        return Thought(thought=thought.thought.strip()[:MAX_CHARACTERS], finished=thought.finished)
    texts = map(bench.retrievals.text, ids)
    fresh = [part for text in texts for part in sentences(text) if part not in thoughts]
    best = max(fresh, key=lambda part: coverage(bench.question, part, bench.retrievals), default="")
    return Thought(thought=best)


def _iter_retgen(bench: _Bench) -> _Attempt:
    query = bench.question
    for _ in range(ITERATIONS):
        attempt = bench.answer(bench.search(bench.orders[0], query))
        following = f"{bench.question} {attempt.answer}".strip()
        if following == query:
            break
        query = following
    return attempt


def _direct(bench: _Bench) -> _Attempt:
    bench.queries.append(bench.question)
    return _Attempt((), bench.ask("direct", GivenAnswer, (), bench.turn.temperature).answer.strip())


def _cot(bench: _Bench) -> _Attempt:
    ids = bench.search(bench.orders[0], bench.question)
    return _Attempt(ids, bench.ask("reasoned", Reasoned, ids, bench.turn.temperature).answer.strip())


def _self_rag(bench: _Bench) -> _Attempt:
    query, best = bench.question, _Attempt(())
    for number in range(ATTEMPTS):
        if number:
            searched = numbered("query", dict.fromkeys(bench.queries))
            wanted = bench.ask("again", NextSearch, (), bench.turn.temperature, asked=searched)
            query = wanted.query.strip()[:MAX_CHARACTERS] or bench.question
        found = bench.search(bench.orders[0], query)
        schema = create_model("Relevant", __base__=Relevant, relevant=numbers_of(len(found)))
        numbers = bench.ask("relevant", schema, found, 0.0).relevant
        ids = [chunk_id for at, chunk_id in enumerate(found, start=1) if at in numbers]
        if not ids:
            continue
        best = bench.answer(ids)
        if best.answer:
            critique = bench.ask("critique", Critique, ids, 0.0, answer=quoted("answer", best.answer))
            if critique.supported and critique.useful:
                break
    return best


def _search_r1(bench: _Bench) -> _Attempt:
    ids, thoughts = tuple[int, ...](), list[str]()
    for _ in range(SEARCHES):
        told = {"thoughts": numbered("note", thoughts), "asked": numbered("query", bench.queries)}
        move = bench.ask("move", Move, ids, bench.turn.temperature, **told)
        thoughts += filter(None, [move.thought.strip()[:MAX_CHARACTERS]])
        query = move.search.strip()[:MAX_CHARACTERS]
        if not query or (query in bench.queries and move.answer.strip()):
            bench.queries = bench.queries or [bench.question]
            return _Attempt(ids, move.answer.strip())
        ids = tuple(dict.fromkeys([*ids, *bench.search(bench.orders[0], query)]))[:MAX_PARAGRAPHS]
    return bench.answer(ids)


def _resrag_llm(bench: _Bench) -> _Attempt:
    assert bench.llm is not None
    assert bench.plain is not None
    corpus, encoder = bench.plain
    config = EpisodeConfig(step_budget=bench.config.k)
    task = set_prompt(bench.question, corpus, config, encoder, SET_CONTEXT_TOKENS)
    action, reply = ask(bench.llm, task.messages, task.schema, bench.turn, 0.0)
    bench.cost += reply.cost
    bench.queries.append(bench.question)
    return bench.answer(taken_by(action, corpus.borders, bench.config.k))


PROMPTED: dict[str, Callable[[_Bench], _Attempt]] = {
    "direct": _direct,
    "cot": _cot,
    "self-rag": _self_rag,
    "search-r1": _search_r1,
    "resrag-llm": _resrag_llm,
}
"""Nothing without a language model."""
BASELINES: dict[str, Callable[[_Bench], _Attempt]] = {
    "vanilla": _vanilla,
    "parallel": _parallel,
    "sequential": _sequential,
    "ircot": _ircot,
    "iter-retgen": _iter_retgen,
    **PROMPTED,
}
