"""Questions over a pooled corpus through SPARC and its baselines.

One corpus has all paragraphs of a set's questions. Of every method's evidence the first k chunks count, so
that all are compared at the same size. A row holds ids, counts and scores, no texts; a run of some depth
gives a row for each smaller one as well.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import BaseModel
from pydantic.dataclasses import dataclass as checked_dataclass

from core.base.metrics import answer_accuracy, answer_em, answer_f1
from core.base.rows import CHECKED, grouped, read_lines
from core.base.statistics import mean
from core.corpus.index import Searchable
from core.encode.encoder import DualEncoder
from core.lab.sparc.baselines import PROMPTED, run_baseline
from core.lab.tasks.example import Example
from core.llm.draft import Draft
from core.llm.protocol import Cost, Llm, LlmError, Message, Reply, Sampling, UnfitReply, never
from core.methods.sparc.agents import SparcAgents
from core.methods.sparc.events import EndReason, Merged, SparcConfig, Strategy
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.retriever import SPARC
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import SparcTrace, extended


@checked_dataclass(frozen=True, slots=True, kw_only=True, config=CHECKED)
class SparcRow:
    """One question through one method."""

    id: str
    task: str
    split: str
    seed: int
    n_chunks: int
    support: tuple[int, ...]
    method: str
    """"sparc", or a baseline."""
    agents: str
    """Who decided and answered."""
    checkpoint: str
    """Agent behind the strategy qrag."""
    fingerprint: str
    strategies: tuple[Strategy, ...]
    """What could be searched with; of a baseline with a single search, the one."""
    width: int
    depth: int
    first_round: str
    k: int
    evidence: tuple[int, ...]
    """Final evidence, at most k chunks; IRCoT's is not cut."""
    second_round: tuple[int, ...] | None = None
    """Chunks that the branches of round 2 retrieved; None where there was none."""
    rounds: int
    """Rounds, or steps of a baseline."""
    stop_reason: EndReason | None
    """None for baselines that nothing ended early."""
    overlap: float | None
    """Mean over rounds of the branches' mean pairwise Jaccard index; None below two branches."""
    calls: int
    llm_tokens: int
    """In and out."""
    evidence_tokens: int
    seconds: float
    """Wall clock, branches at the same time, indexes being there."""
    empty: bool
    confidence: float | None
    em: float
    f1: float
    accuracy: float
    """The answer contains an accepted one."""
    retries: int = 0
    """Requests that were made again, over the whole run that this row was read off."""
    unfit: int = 0
    """Calls whose replies never kept the schema, over that run."""
    silent: int = 0
    """Calls that brought no reply: refused, timed out, not reached."""

    @property
    def question(self) -> tuple[str, str, int, str]:
        """What two methods' rows must have in common to be compared."""
        return self.task, self.split, self.seed, self.id


def read_sparc_rows(path: Path) -> list[SparcRow]:
    """The rows of a file, gzipped if its name ends in .gz. Raises BadRequest, naming the wrong line."""
    return read_lines(path, SparcRow, "SPARC row", "study sparc --rows")


def group_sparc(rows: Sequence[SparcRow]) -> list[tuple[SparcRow, ...]]:
    """Rows that differ in nothing but the question, in order of their first rows."""

    def setting(row: SparcRow) -> Hashable:
        about = (row.task, row.split, row.seed, row.method, row.agents, row.checkpoint)
        return (*about, row.fingerprint, row.strategies, row.width, row.depth, row.first_round, row.k)

    return grouped(rows, setting)


@dataclass(frozen=True, kw_only=True)
class SparcVariation:
    """One method to evaluate."""

    method: str = SPARC
    config: SparcConfig
    depths: tuple[int, ...] = ()
    """Rows for these depths, read off one run of the largest; of SPARC only."""

    def made(self, rows: Iterable[SparcRow], agents: str, about: dict[str, Any]) -> set[tuple[str, str]]:
        """(task, id) of the questions that have all its rows by these agents. `about`: see `Ground`."""
        config, depths = self.config, self.depths or (self.config.depth if self.method == SPARC else 1,)
        own = (self.method, agents, config.strategies, config.width, config.first_round, config.k)
        n_rows = Counter(
            (row.task, row.id)
            for row in rows
            if (row.method, row.agents, row.strategies, row.width, row.first_round, row.k) == own
            and row.depth in depths
            and all(getattr(row, name) == value for name, value in about.items())
        )
        return {question for question, n in n_rows.items() if n == len(depths)}


def _baseline(method: str, *strategies: Strategy, k: int = SparcConfig().k) -> SparcVariation:
    return SparcVariation(method=method, config=SparcConfig(strategies=strategies, width=3, k=k))


WINDOW_K = 3
"""Paragraphs that one window of a reader holds."""
STUDIED: dict[str, tuple[SparcVariation, ...]] = {
    "sparc": (
        *(_baseline("vanilla", strategy) for strategy in ("dense", "bm25", "qrag")),
        *(SparcVariation(config=SparcConfig(width=width), depths=(1, 2, 4)) for width in (1, 2, 4)),
    ),
    "sparc-baselines": (
        _baseline("vanilla", "dense"),
        *(_baseline(method, "dense", "bm25", "qrag") for method in ("parallel", "sequential")),
        _baseline("ircot", "bm25"),
        _baseline("iter-retgen", "dense"),
        SparcVariation(config=SparcConfig()),
    ),
    "sparc-strategies": (
        SparcVariation(config=SparcConfig()),
        SparcVariation(config=SparcConfig(strategies=("bm25", "dense"))),
        *(SparcVariation(config=SparcConfig(strategies=(name,))) for name in ("dense", "bm25", "qrag")),
    ),
    "sparc-first-round": tuple(
        SparcVariation(config=SparcConfig(width=2, first_round=first), depths=(1, 2, 4))
        for first in ("question", "rewrite")
    ),
    "sparc-model": (
        _baseline("vanilla", "dense", k=WINDOW_K),
        *(_baseline(name, "dense", k=WINDOW_K) for name in PROMPTED),
        _baseline("ircot", "bm25", k=WINDOW_K),
        SparcVariation(config=SparcConfig(width=1, k=WINDOW_K), depths=(1,)),
        SparcVariation(config=SparcConfig(width=2, k=WINDOW_K), depths=(2, 4)),
    ),
}


class Tally:
    """A language model whose replies are counted. Thread-safe."""

    def __init__(self, llm: Llm) -> None:
        self._llm, self.name, self.reply_tokens = llm, llm.name, llm.reply_tokens
        self._counting = Lock()
        self.restart()

    def restart(self) -> None:
        """Counts from 0."""
        self.replies: dict[str, Any] = {"retries": 0, "unfit": 0, "silent": 0}
        """As `SparcRow` says."""

    def chat(
        self,
        messages: Sequence[Message],
        sampling: Sampling = Sampling(),  # noqa: B008 - frozen
        *,
        schema: type[BaseModel] | None = None,
        draft: Draft | None = None,
        cancelled: Callable[[], bool] = never,
    ) -> Reply:
        """See Llm."""
        try:
            reply = self._llm.chat(messages, sampling, schema=schema, draft=draft, cancelled=cancelled)
        except LlmError as error:
            failure = "unfit" if isinstance(error, UnfitReply) else "silent"
            self._count(retries=max(0, error.spent.calls - 1), **{failure: 1})
            raise
        self._count(retries=reply.n_attempts - 1)
        return reply

    def _count(self, **more: int) -> None:
        with self._counting:
            for name, n in more.items():
                self.replies[name] += n


@dataclass(frozen=True, eq=False)
class Ground:
    """What questions are asked of, and by whom they are answered."""

    retrievals: Retrievals
    corpus: Searchable
    """The one that `retrievals` searches."""
    agents: Callable[[SparcConfig], SparcAgents]
    llm: Tally | None
    plain: tuple[Searchable, DualEncoder] | None
    """The chunks under an untrained encoder."""
    count: Callable[[Sequence[str]], Sequence[int]]
    """Tokens of texts."""
    about: dict[str, Any]
    """split, seed, checkpoint, fingerprint of the rows."""


def evaluate_sparc(
    examples: Sequence[Example],
    variations: Sequence[SparcVariation],
    ground: Ground,
    known: Sequence[SparcRow] = (),
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> Iterator[SparcRow]:
    """Rows, all variations a question, but those that are `known`, and without a model those of PROMPTED.
    Raises ValueError for a question without support or answer.
    """
    unlabelled = next((example.id for example in examples if not (example.support and example.answers)), None)
    if unlabelled is not None:
        raise ValueError(
            f"question {unlabelled!r} has no support or no answer, so it can't be scored; leave it out"
        )
    asked = [one for one in variations if ground.llm is not None or one.method not in PROMPTED]
    made = [one.made(known, ground.agents(one.config).name, ground.about) for one in asked]
    done, total = 0, len(examples) * len(asked)
    ground.retrievals.prepare()
    for example in examples:
        for variation, rows_made in zip(asked, made, strict=True):
            if (example.task, example.id) not in rows_made:
                if ground.llm is not None:
                    ground.llm.restart()
                if variation.method == SPARC:
                    yield from _sparc_rows(example, variation, ground)
                else:
                    yield _baseline_row(example, variation, ground)
            done += 1
            on_progress(done, total)


def _sparc_rows(example: Example, variation: SparcVariation, ground: Ground) -> Iterator[SparcRow]:
    depths = variation.depths or (variation.config.depth,)
    config = replace(variation.config, depth=max(depths))
    began = time.perf_counter()
    trace: SparcTrace | None = None
    seconds: list[float] = []
    for event in run_sparc(example.question, ground.corpus, ground.agents(config), ground.retrievals, config):
        trace = extended(trace, event)
        if isinstance(event, Merged):
            seconds.append(time.perf_counter() - began)
    assert trace is not None
    whole = time.perf_counter() - began
    for depth in depths:
        cut = trace.at_depth(depth)
        assert cut.stopped is not None
        yield _row(
            example,
            ground,
            replace(config, depth=depth),
            method=SPARC,
            agents=cut.started.agents,
            evidence=cut.stopped.evidence[: config.k],
            answer=cut.answer,
            confidence=cut.confidence,
            rounds=len(cut.rounds),
            stop_reason=cut.stopped.reason,
            overlap=mean(played.merged.overlap for played in cut.rounds if played.merged),
            second_round=_second_round(cut),
            cost=cut.cost,
            seconds=seconds[depth - 1] if depth <= len(seconds) else whole,
        )


def _second_round(trace: SparcTrace) -> tuple[int, ...] | None:
    if len(trace.rounds) < 2:
        return None
    retrieved = [branch.retrieved for branch in trace.rounds[1].branches if branch.retrieved]
    return tuple(dict.fromkeys(chunk.chunk_id for one in retrieved for chunk in one.found))


def _baseline_row(example: Example, variation: SparcVariation, ground: Ground) -> SparcRow:
    method, config = variation.method, variation.config
    began = time.perf_counter()
    asked = (method, example.question, ground.agents(config), ground.retrievals, config)
    trace = run_baseline(*asked, ground.llm, ground.plain)
    return _row(
        example,
        ground,
        replace(config, depth=1),
        method=method,
        agents=trace.agents,
        evidence=trace.evidence,
        answer=trace.answer,
        confidence=trace.confidence,
        rounds=len(trace.queries),
        stop_reason=trace.stop_reason,
        overlap=None,
        second_round=None,
        cost=trace.cost,
        seconds=time.perf_counter() - began,
    )


def _row(
    example: Example,
    ground: Ground,
    config: SparcConfig,
    *,
    answer: str,
    evidence: Sequence[int],
    cost: Cost,
    seconds: float,
    **more: Any,
) -> SparcRow:
    tokens = ground.count([ground.retrievals.text(chunk_id) for chunk_id in evidence]) if evidence else ()
    return SparcRow(
        id=example.id,
        task=example.task,
        n_chunks=len(ground.retrievals),
        support=example.support,
        strategies=config.strategies,
        width=config.width,
        depth=config.depth,
        first_round=config.first_round,
        k=config.k,
        evidence=tuple(evidence),
        calls=cost.calls,
        llm_tokens=cost.prompt_tokens + cost.completion_tokens,
        evidence_tokens=int(sum(tokens)),
        seconds=round(seconds, 3),
        empty=not answer,
        em=answer_em(answer, example.answers),
        f1=answer_f1(answer, example.answers),
        accuracy=answer_accuracy(answer, example.answers),
        **({} if ground.llm is None else ground.llm.replies),
        **ground.about,
        **more,
    )
