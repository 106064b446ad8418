"""Open documents and runs in view, as every page sees them.

Frozen, replaced as they go on.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from core.answer.cited import CitedAnswer
from core.answer.evidence import EvidenceAnswer
from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import StepScores, Trace
from core.base.types import Workspace
from core.corpus.index import Corpus
from core.encode.checkpoint import CheckpointSpec
from core.lab.evaluate.completeness import completeness
from core.methods.protocol import Method
from core.methods.qrag.agent import Agent
from core.methods.qrag.positions import Interval, chunk_positions, intervals
from core.methods.registry import facts_of
from core.runs.whatif.cuts import TextSpan
from core.runs.whatif.diagnosis import Diagnosis
from core.views.draw.strip import colour_scale
from core.views.report import trace_json


@dataclass(frozen=True)
class Labelled:
    """A question whose answer and support are known."""

    question: str
    answer: str
    hops: int
    """0 where nobody counted."""
    support: tuple[int, ...]
    """Chunk ids."""
    spans: tuple[TextSpan, ...] = ()
    """The support by its characters; empty where only the chunks are known."""
    marked: bool = False
    """It is the visitor's own question, and the support is what they marked."""


@dataclass(frozen=True, eq=False)
class OpenDocuments:
    """A workspace that somebody has open under one agent."""

    token: str
    corpus: Corpus
    agent: Agent
    milliseconds: dict[str, float] = field(default_factory=dict)
    n_embedded: int = 0
    notices: tuple[str, ...] = ()
    foreign: bool = False
    """Whether any of them is unlike what the agent was trained on."""
    trained: str = ""
    """The trained agent to be had instead of one that is not; empty where there is none."""
    questions: tuple[Labelled, ...] = ()
    """Known questions about a sample or a generated document."""
    owner: str | None = None
    """The visitor who opened them, and to whom runs over them belong; None in local mode."""
    searched: tuple[tuple[int, int], ...] = ()
    """The chunks that can be asked while the rest is embedded, as `EpisodeConfig.searched`; empty: all."""

    @cached_property
    def name(self) -> str:
        """Tells them apart on a page, which must not hold their token."""
        return hashlib.sha256(self.token.encode()).hexdigest()[:16]

    @property
    def share(self) -> float:
        """Of the chunks, how many can be asked."""
        return self.n_searched / len(self.corpus)

    @property
    def n_searched(self) -> int:
        """How many chunks can be asked."""
        return sum(last - first for first, last in self.searched) or len(self.corpus)

    @property
    def workspace(self) -> Workspace:
        return self.corpus.workspace

    def label_of(self, question: str) -> Labelled | None:
        """What came with them about a question."""
        return next((label for label in self.questions if label.question == question), None)

    @property
    def n_bytes(self) -> int:
        """Memory of vectors and texts, about."""
        texts = sum(len(document.text) for document in self.workspace.documents)
        return 4 * self.corpus.index.vectors.numel() + 2 * texts


@dataclass(frozen=True, eq=False)
class RunInView:
    """A run as far as it went, over documents that are open. Replaced, never changed, as events come in."""

    token: str
    run_id: str
    documents: OpenDocuments
    trace: Trace
    label: Labelled | None = None
    """What is known of its question."""
    parent_run_id: str | None = None
    fork_step: int = 0
    """Steps that a child run keeps of its parent."""
    ended: bool = False
    """Complete, cancelled or failed: the log holds it as it is."""
    others: bool = False
    """Another visitor's, who shared it: seen as it was when it was opened; going on makes a child run."""
    answer: EvidenceAnswer | None = None
    """What the reader says of its evidence, once it has stopped and was read."""
    cited: CitedAnswer | None = None
    """What a language model said of it, once one was asked."""
    diagnosis: Diagnosis | None = None
    """Why it lacks support that is known, once that was looked into."""
    imported: str = ""
    """What of a run that was made elsewhere was found again, in a sentence."""
    by_other_weights: bool = False
    """The agent has been trained further since it was made."""
    waited: float = 0.0
    """Seconds that its visitor has waited for it, its answer included."""

    @property
    def owner(self) -> str | None:
        """The visitor who has it in view."""
        return self.documents.owner

    @property
    def gold(self) -> tuple[int, ...]:
        """Support chunks of a labelled question."""
        return () if self.label is None else self.label.support

    @property
    def known_answer(self) -> str:
        """The answer that is known to its question, empty where nobody knows one."""
        return "" if self.label is None else self.label.answer

    @property
    def method(self) -> Method:
        return facts_of(self.trace.started.method)

    @property
    def spec(self) -> CheckpointSpec:
        return self.documents.agent.spec

    @property
    def n_chunks(self) -> int:
        return len(self.documents.corpus)

    @property
    def n_bytes(self) -> int:
        """Memory of the Q-values, and some for the rest."""
        return 4 * self.n_chunks * self.trace.n_looks + 20_000

    @property
    def config(self) -> EpisodeConfig:
        return self.trace.started.config

    def asks(self, text: str) -> bool:
        """Whether this is its question, as somebody may have typed it."""
        return self.trace.started.query == text.strip()

    def is_made_by(self, agent: Agent) -> bool:
        """Whether its scores are what an agent gives, so that a run of that agent may keep them."""
        return self.trace.started.method == agent.name and not self.by_other_weights

    def to_json(self) -> dict[str, Any]:
        """Id, trace and answer as plain JSON values; timings: what opening took and, as `steps`, the run."""
        timings = {**self.documents.milliseconds, "steps": self.trace.milliseconds}
        values = trace_json(self.trace, timings=timings, answer=self.answer, completeness=self.completeness)
        return {"run_id": self.run_id, **values}

    @cached_property
    def completeness(self) -> float | None:
        """How likely its evidence holds all that its question needs; None where nothing is known of it."""
        return completeness(self.spec, self.trace)

    def chosen_before(self, look: int) -> tuple[int, ...]:
        """Chunks that were chosen when the 1-based look was taken."""
        return self.trace.chosen[: look - 1]

    def scores(self, look: int) -> StepScores:
        """What was seen at a 1-based look. Raises BadRequest when the run has no such look."""
        scores = self.trace.scores_at(look)
        if scores is None:
            raise BadRequest(
                f"step {look} of this run has no Q-values; choose a step between 1 and {self.trace.n_looks}"
            )
        return scores

    def q_values(self, look: int) -> np.ndarray:
        """(N,) float32 at a 1-based look."""
        return self.scores(look).q_values

    @cached_property
    def scale(self) -> tuple[float, float]:
        """Ends of the colour scale."""
        if not self.method.foreign:
            later = map(self.trace.scores_at, range(2, self.trace.n_looks + 1))
            looks = [self.q_values(1), *(scores.q_values for scores in later if scores is not None)]
            return colour_scale(looks, self.spec)
        worth = [step.q_value for step in self.trace.steps]
        return min(0.0, *worth), max(1e-6, *worth)

    def unavailable(self, look: int) -> tuple[int, ...]:
        """Chunks that could not be chosen at a look: chosen before, or forbidden."""
        return (*self.chosen_before(look), *self.config.forbidden)

    def positions(self, look: int) -> np.ndarray | None:
        """(N,) rho at a look, None for an agent without positions."""
        if self.spec.position_kind == "none" or not self.config.use_positions or self.method.foreign:
            return None
        return chunk_positions(self.spec, self.documents.workspace.borders, self.chosen_before(look))

    def ruler(self, look: int) -> list[Interval]:
        """The intervals of rho at a look."""
        if self.method.foreign:
            return []
        borders, uses = self.documents.workspace.borders, self.config.use_positions
        return intervals(self.spec, borders, self.chosen_before(look), use_positions=uses)
