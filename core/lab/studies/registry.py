"""The studies by name: what becomes of rows, or of trainings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from core.base.rows import read_rows
from core.lab.evaluate.documents import read_document_rows
from core.lab.reader.evaluation import read_answers
from core.lab.sparc.evaluation import read_sparc_rows
from core.lab.studies import stopping, sweeps
from core.lab.studies.answers import answers
from core.lab.studies.documents import documents
from core.lab.studies.frontier import answering, frontier, read_frontier, set_ablations
from core.lab.studies.sparc import sparc
from core.lab.studies.sweeps import scores
from core.lab.studies.trainings import ablations, curves, read_training, sweep, tunings
from core.views.charts import Report


@dataclass(frozen=True)
class Study:
    """A report, and what it is made of."""

    summary: str
    report: Callable[[Sequence[Any]], Report]
    read: Callable[[Path], Any] = read_rows
    """The rows of a file, or the events of one training."""


STUDIES = {
    "documents": Study(
        "methods side by side on questions about whole documents", documents, read_document_rows
    ),
    "scores": Study("every evaluation in one line", scores),
    "methods": Study("an agent beside methods without training, at the same number of chunks", scores),
    "early-stopping": Study("early, late and perfect stops (tables 4, 5)", stopping.early_stopping),
    "calibration": Study("Q against what was still gained", stopping.reliability),
    "budget": Study("facts by number of retrievals (table 6)", sweeps.budget),
    "planning": Study("beam search against the greedy agent (appendix D)", sweeps.planning),
    "length": Study("scores by length of the haystack", sweeps.length),
    "time": Study("retrieval time by length (figure 3 c)", sweeps.timing),
    "chunk-size": Study("neighbouring chunks joined", sweeps.chunk_size),
    "answers": Study("the reader's answers from the support and from what was found", answers, read_answers),
    "sparc": Study("SPARC by width and depth (tables 1, 7, figures 3, 5)", sparc, read_sparc_rows),
    "sparc-baselines": Study("SPARC beside the paper's baselines (table 1)", sparc, read_sparc_rows),
    "sparc-model": Study("SPARC, others' ways and rules with a language model", sparc, read_sparc_rows),
    "sparc-strategies": Study("all strategies against a single one (table 6)", sparc, read_sparc_rows),
    "sparc-first-round": Study("the plain question in round 1 against rewrites", sparc, read_sparc_rows),
    "frontier": Study(
        "answers and support against evidence tokens (RES-RAG table 3, figure 4)", frontier, read_frontier
    ),
    "answering": Study(
        "the answering model exchanged, rows of several runs of study frontier", answering, read_frontier
    ),
    "set-ablations": Study(
        "RES-RAG under other rewards, over seeds (table 2, section 4.3); policies named VARIANT-SEED",
        set_ablations,
        read_frontier,
    ),
    "curves": Study("learning curves (figure 6)", curves, read_training),
    "ablations": Study("parts of the method left out (table 3)", ablations, read_training),
    "alpha": Study(
        "temperature of exploration (figure 3 a)",
        partial(sweep, setting="alpha", symbol="alpha"),
        read_training,
    ),
    "lambda": Study(
        "lambda of the returns (figure 3 b)",
        partial(sweep, setting="trace_lambda", symbol="lambda"),
        read_training,
    ),
    "tunings": Study(
        "language models that learn to write evidence sets, by tune-resrag",
        tunings,
        partial(read_training, told="n_questions"),
    ),
}
TRAININGS = ("curves", "ablations", "alpha", "lambda", "tunings")
