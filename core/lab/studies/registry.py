"""The studies by name.

How rows become a report, and which evaluations bring the rows when there are none yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core.base.rows import EpisodeRow
from core.lab.evaluate.documents import DocumentRow
from core.lab.evaluate.frontier import FrontierRow
from core.lab.reader.rows import AnswerRow
from core.lab.sparc.evaluation import SparcVariation
from core.lab.sparc.rows import SparcRow
from core.lab.studies import stopping, sweeps, trainings
from core.lab.studies.answering import answering
from core.lab.studies.answers import answers
from core.lab.studies.documents import documents
from core.lab.studies.frontier import frontier
from core.lab.studies.scores import scores
from core.lab.studies.set_ablations import set_ablations
from core.lab.studies.sparc import sparc
from core.lab.studies.tunings import tunings
from core.methods.bm25 import BM25
from core.methods.qrag.retriever import MULTISTEP, QRAG
from core.methods.sparc.events import SparcConfig, Strategy
from core.methods.topk import TOPK
from core.views.charts import Report

LENGTHS = ("1K", "4K", "32K", "128K", "1M", "10M")


@dataclass(frozen=True, kw_only=True)
class Variation:
    """One evaluation of a study, beside what the person asked for."""

    length: str | None = None
    method: str = QRAG.name
    beam_width: int = 1
    chunk_tokens: int | None = None
    """Join neighbouring chunks up to this many tokens."""
    one_by_one: bool = False
    """Run one question at a time, for the clock."""


@dataclass(frozen=True, kw_only=True)
class RowStudy:
    """A study of evaluation rows."""

    summary: str
    report: Callable[[Sequence[EpisodeRow]], Report]
    tasks: tuple[str, ...]
    """By default."""
    variations: tuple[Variation, ...] = (Variation(),)
    step_budget: int | None = None
    """None: the task's own."""
    stops: bool = True
    """False: run without the agent's threshold, as where T is what is studied."""
    n: int | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingStudy:
    """A study of trainings."""

    summary: str
    report: Callable[[Sequence[Sequence[dict[str, Any]]]], Report]
    told: str = "config"
    """Key that its first event must have: other trainings are refused."""


@dataclass(frozen=True, kw_only=True)
class AnswerStudy:
    """A study of the reader's answers."""

    summary: str
    report: Callable[[Sequence[AnswerRow]], Report]
    tasks: tuple[str, ...]
    """By default."""
    evidence: tuple[str, ...]
    """What is read: "gold", or the method that retrieves it."""
    n: int
    """Questions of each task by default."""


@dataclass(frozen=True, kw_only=True)
class DocumentStudy:
    """A study of questions about whole documents. Its rows are made by `evaluate-documents --rows`."""

    summary: str
    report: Callable[[Sequence[DocumentRow]], Report]


@dataclass(frozen=True, kw_only=True)
class SparcStudy:
    """A study of SPARC and its baselines over pooled corpora."""

    summary: str
    report: Callable[[Sequence[SparcRow]], Report]
    variations: tuple[SparcVariation, ...]
    tasks: tuple[str, ...] = ("hotpotqa", "musique")
    """By default."""
    n: int = 100
    """Questions of each set by default; all of its paragraphs are searched."""


@dataclass(frozen=True, kw_only=True)
class FrontierStudy:
    """A study of what evidence costs and brings."""

    summary: str
    report: Callable[[Sequence[FrontierRow]], Report]
    tasks: tuple[str, ...]
    """By default."""
    n: int
    """Questions of each set by default."""
    policies_alone: bool = False
    """Whether top-k, hybrid and threshold are left out."""
    makes_rows: bool = True
    """False where its rows are those of other studies."""


def _baseline(method: str, *strategies: Strategy) -> SparcVariation:
    return SparcVariation(method=method, config=SparcConfig(strategies=strategies, width=3))


_VANILLA = (_baseline("vanilla", "dense"), _baseline("vanilla", "bm25"), _baseline("vanilla", "qrag"))

STUDIES: dict[str, RowStudy | TrainingStudy | AnswerStudy | DocumentStudy | SparcStudy | FrontierStudy] = {
    "documents": DocumentStudy(
        summary="methods side by side on questions about whole documents, rows by evaluate-documents",
        report=documents,
    ),
    "scores": RowStudy(
        summary="every evaluation in one line",
        report=scores,
        tasks=("qa1", "qa2", "qa3", "qa4", "qa5"),
        step_budget=4,
    ),
    "methods": RowStudy(
        summary=(
            "the agent beside plain top-k, BM25 and multi-step without training, at the same number of chunks"
        ),
        report=scores,
        tasks=("hotpotqa", "musique"),
        variations=tuple(Variation(method=method.name) for method in (QRAG, TOPK, BM25, MULTISTEP)),
        stops=False,
    ),
    "early-stopping": RowStudy(
        summary="early, late and perfect stops over thresholds (tables 4, 5)",
        report=stopping.early_stopping,
        tasks=("qa2",),
        step_budget=6,
    ),
    "calibration": RowStudy(
        summary="Q against what was still gained", report=stopping.reliability, tasks=("qa2",), step_budget=6
    ),
    "budget": RowStudy(
        summary="facts by number of retrievals (table 6)",
        report=sweeps.budget,
        tasks=("hotpotqa",),
        step_budget=5,
        stops=False,
    ),
    "planning": RowStudy(
        summary="beam search against the greedy agent (appendix D)",
        report=sweeps.planning,
        tasks=("hotpotqa", "musique"),
        variations=tuple(Variation(beam_width=width) for width in (1, 2, 4, 8)),
        stops=False,
    ),
    "length": RowStudy(
        summary="scores from 1K to 10M tokens",
        report=sweeps.length,
        tasks=("qa3",),
        variations=tuple(Variation(length=length) for length in LENGTHS),
    ),
    "time": RowStudy(
        summary="retrieval time by length, beside untrained multi-step and top-k (figure 3 c)",
        report=sweeps.timing,
        tasks=("qa3",),
        variations=tuple(
            Variation(length=length, method=method.name, one_by_one=True)
            for method in (QRAG, MULTISTEP, TOPK)
            for length in LENGTHS
        ),
        stops=False,
        n=20,
    ),
    "chunk-size": RowStudy(
        summary="neighbouring chunks joined",
        report=sweeps.chunk_size,
        tasks=("qa2",),
        variations=tuple(Variation(length="4K", chunk_tokens=tokens) for tokens in (None, 32, 64, 96)),
        n=200,
    ),
    "answers": AnswerStudy(
        summary="the reader's answers from the support and from what was retrieved",
        report=answers,
        tasks=("squad", "nq", "hotpotqa", "2wiki", "musique", "qa1", "qa2", "qa3", "qa4", "qa5"),
        evidence=("gold", "qrag", "topk", "bm25"),
        n=100,
    ),
    "sparc": SparcStudy(
        summary=(
            "SPARC at widths 1, 2, 4 and depths 1, 2, 4 beside single searches, at equal evidence (tables 1,"
            " 7, figures 3, 5)"
        ),
        report=sparc,
        variations=(
            *_VANILLA,
            *(SparcVariation(config=SparcConfig(width=width), depths=(1, 2, 4)) for width in (1, 2, 4)),
        ),
    ),
    "sparc-baselines": SparcStudy(
        summary="SPARC beside naive scaling, IRCoT and Iter-RetGen",
        report=sparc,
        variations=(
            _VANILLA[0],
            *(_baseline(method, "dense", "bm25", "qrag") for method in ("parallel", "sequential")),
            _baseline("ircot", "bm25"),
            _baseline("iter-retgen", "dense"),
            SparcVariation(config=SparcConfig()),
        ),
    ),
    "sparc-strategies": SparcStudy(
        summary="SPARC with all strategies against a single one (table 6)",
        report=sparc,
        variations=(
            SparcVariation(config=SparcConfig()),
            SparcVariation(config=SparcConfig(strategies=("bm25", "dense"))),
            *(SparcVariation(config=SparcConfig(strategies=(name,))) for name in ("dense", "bm25", "qrag")),
        ),
    ),
    "sparc-first-round": SparcStudy(
        summary="the plain question in round 1 against rewrites",
        report=sparc,
        variations=tuple(
            SparcVariation(config=SparcConfig(width=2, first_round=first), depths=(1, 2, 4))
            for first in ("question", "rewrite")
        ),
    ),
    "frontier": FrontierStudy(
        summary=(
            "answers and support against evidence tokens, every method at every size (RES-RAG table 3, figure"
            " 4); with --n it goes on from the rows that are there"
        ),
        report=frontier,
        tasks=("hotpotqa", "nq", "conditionalqa", "natural", "natural-manuals"),
        n=100,
    ),
    "answering": FrontierStudy(
        summary="the answering model exchanged; rows of several runs of study frontier in one file",
        report=answering,
        tasks=(),
        n=0,
        makes_rows=False,
    ),
    "set-ablations": FrontierStudy(
        summary="RES-RAG under other rewards, over seeds (table 2, section 4.3); policies named VARIANT-SEED",
        report=set_ablations,
        tasks=("hotpotqa",),
        n=350,
        policies_alone=True,
    ),
    "curves": TrainingStudy(summary="learning curves (figure 6)", report=trainings.curves),
    "ablations": TrainingStudy(summary="parts of the method left out (table 3)", report=trainings.ablations),
    "alpha": TrainingStudy(summary="temperature of exploration (figure 3 a)", report=trainings.alpha),
    "lambda": TrainingStudy(summary="lambda of the returns (figure 3 b)", report=trainings.trace_lambda),
    "tunings": TrainingStudy(
        summary="language models that learn to write evidence sets, by tune-resrag",
        report=tunings,
        told="n_questions",
    ),
}
