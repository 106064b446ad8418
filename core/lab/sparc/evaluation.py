"""Questions over a pooled corpus through SPARC and its baselines.

Of every method's evidence the first k chunks count, so that all are compared at the same size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.base.metrics import answer_accuracy, answer_em, answer_f1
from core.base.statistics import mean
from core.corpus.index import Searchable
from core.lab.sparc.baselines import run_baseline
from core.lab.sparc.rows import SparcRow
from core.lab.tasks.example import Example
from core.llm.protocol import Cost, Llm
from core.methods.sparc.agents import SparcAgents
from core.methods.sparc.events import Merged, SparcConfig
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.retriever import SPARC
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import SparcTrace, extended


@dataclass(frozen=True, kw_only=True)
class SparcVariation:
    """One method to evaluate."""

    method: str = SPARC
    config: SparcConfig
    depths: tuple[int, ...] = ()
    """Rows for these depths, read off one run of the largest; of SPARC only."""


@dataclass(frozen=True, eq=False)
class Ground:
    """What questions are asked of, and by whom they are answered."""

    retrievals: Retrievals
    corpus: Searchable
    """The one that `retrievals` searches."""
    agents: Callable[[SparcConfig], SparcAgents]
    llm: Llm | None
    count: Callable[[Sequence[str]], Sequence[int]]
    """Tokens of texts."""
    about: dict[str, Any]
    """split, seed, checkpoint, fingerprint of the rows."""


def evaluate_sparc(
    examples: Sequence[Example],
    variations: Sequence[SparcVariation],
    ground: Ground,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> Iterator[SparcRow]:
    """Rows, all questions a variation. Raises ValueError for a question without support or answer."""
    unlabelled = next((example.id for example in examples if not (example.support and example.answers)), None)
    if unlabelled is not None:
        raise ValueError(
            f"question {unlabelled!r} has no support or no answer, so it can't be scored; leave it out"
        )
    done, total = 0, len(examples) * len(variations)
    ground.retrievals.prepare()
    for variation in variations:
        for example in examples:
            yield from (
                _sparc_rows(example, variation, ground)
                if variation.method == SPARC
                else [_baseline_row(example, variation, ground)]
            )
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
    return tuple(
        dict.fromkeys(
            chunk.chunk_id
            for branch in trace.rounds[1].branches
            if branch.retrieved
            for chunk in branch.retrieved.found
        )
    )


def _baseline_row(example: Example, variation: SparcVariation, ground: Ground) -> SparcRow:
    config = variation.config
    began = time.perf_counter()
    trace = run_baseline(
        variation.method, example.question, ground.agents(config), ground.retrievals, config, ground.llm
    )
    return _row(
        example,
        ground,
        replace(config, depth=1),
        method=variation.method,
        agents=trace.agents,
        evidence=trace.evidence,
        answer=trace.answer,
        confidence=trace.confidence,
        rounds=len(trace.steps),
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
        **ground.about,
        **more,
    )
