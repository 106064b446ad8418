"""Evidence sets for the page.

One run from question to log, the set at any other budget from the same look, and the frontier that the
project measured. A run is logged at the budget that was set when it was started; moving the budget afterwards
shows the set that a run at that budget would take, from the features that were computed once, and logs
nothing; what the page compares with comes from the untrained encoder, whichever one the policy reads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from app.services.agents import PLAIN
from app.services.in_view import OpenDocuments, RunInView
from app.services.pulse import Pulse
from app.services.recent import Recent
from app.services.shared import Services
from app.services.visitors import check_known
from core.answer.evidence import EvidenceAnswer
from core.answer.metadata import MAX_KEPT, metadata_json
from core.base.config import RESRAG, RESRAG_LLM, SETS, EpisodeConfig, check_query
from core.base.errors import BadRequest, Cancelled
from core.base.events import RunStarted
from core.base.home import ROOT
from core.base.metrics import answer_f1
from core.base.progress import finish
from core.corpus.opening import OpenProgress
from core.ingest.json_ld import json_ld_types
from core.lab.studies.frontier import Curve, FrontierRow, curves, read_frontier
from core.llm.protocol import Llm, LlmCancelled
from core.methods.protocol import query_cosines
from core.methods.registry import vectors_of
from core.methods.resrag.features import QuestionFeatures, look
from core.methods.resrag.llm.policy import LlmEvidenceSet
from core.methods.resrag.retriever import EvidenceSet
from core.methods.resrag.sets import (
    LEAST_CHANCE,
    DocumentSet,
    RewardTerms,
    Rival,
    document_sets,
    most_probable_set,
    reward_terms,
    rivals,
    token_counts,
)
from core.methods.threshold import Threshold
from core.runs.again.records import logged_json_ld

MAX_BUDGET = 24
"""Right end of the slider."""
USUAL_BUDGET = 8
MAX_LOOKS_BYTES = 256 * 2**20
"""Memory for looks: some 140 bytes a chunk each. One that is gone is taken again."""
MAX_JSON_LD_CHARACTERS = 50_000_000
"""Of all runs in view."""
MAX_TYPES = 8
"""Types of a document's JSON-LD that are named."""
MAX_ANSWERS = 1_000
"""Answers to sets that stay in memory."""
RESULTS = ROOT / "results"
FRONTIERS = (RESULTS / "frontier-methods.jsonl.gz", RESULTS / "frontier.jsonl.gz")
"""Rows of the project's own measurement, which installed copies may lack. Those of a later file count for
sets of questions that an earlier one lacks, so that no curve mixes readers.
"""


@dataclass(frozen=True)
class SetOrder:
    """What a person asks for."""

    query: str
    budget: int
    by_model: bool = False
    """The language model chooses, not the light policy."""


@dataclass(frozen=True, eq=False)
class PageLook:
    """What a run's page asks of its question once."""

    policy: QuestionFeatures | None
    """What the light policy sees; None where a language model chose."""
    cosines: np.ndarray
    """(N,) float32 of the untrained encoder."""
    products: np.ndarray
    """(N,) float32 what top-k sorts by."""
    threshold: float
    """Least cosine of the threshold rule."""

    @property
    def nbytes(self) -> int:
        """Of its arrays."""
        seen = 0 if self.policy is None else self.policy.features.nbytes
        return seen + self.cosines.nbytes + self.products.nbytes


@dataclass(frozen=True, eq=False)
class SetInView:
    """A run's set at one budget, with all that is said about it."""

    run: RunInView
    budget: int
    """As it was asked for; the documents may have fewer chunks."""
    chances: np.ndarray
    """(N,) of every chunk at this budget; what a language model says of it, see `LlmEvidenceSet`."""
    taken: tuple[int, ...]
    """The likeliest first."""
    documents: tuple[DocumentSet, ...]
    n_tokens: np.ndarray
    """(N,) of every chunk."""
    rivals: tuple[Rival, ...]
    answer: EvidenceAnswer | None = None
    """None until somebody read the set."""
    json_ld: tuple[str, ...] = ()
    """By document, empty where it has none."""
    types: tuple[tuple[str, ...], ...] = ()
    """What each document's JSON-LD is about; nothing for a run out of the log, which keeps the text alone."""

    @property
    def least(self) -> float:
        """Chance above which a chunk is taken."""
        threshold = self.run.config.stop_threshold
        return LEAST_CHANCE if threshold is None else threshold

    @property
    def by_model(self) -> bool:
        """Whether a language model chose."""
        return self.run.trace.started.method == RESRAG_LLM

    @property
    def tokens(self) -> int:
        """Of the set."""
        return sum(one.n_tokens for one in self.documents)

    @property
    def is_logged(self) -> bool:
        """Whether this is the set that the log has."""
        return self.taken == self.run.trace.picks

    @property
    def n_support_found(self) -> int:
        """Support chunks in the set."""
        return len({*self.taken} & {*self.run.gold})

    @property
    def reward(self) -> RewardTerms | None:
        """None where support or answer aren't known, or the set isn't read yet."""
        if self.answer is None or not self.run.gold or not self.run.known_answer:
            return None
        f1 = answer_f1(self.answer.text, [self.run.known_answer]) if self.answer.text else None
        return reward_terms(self.taken, self.run.gold, self.run.documents.workspace.borders, f1)


Report = Callable[[OpenProgress], None]


class EvidenceSets:
    """One per process."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._looks: Recent[PageLook] = Recent(MAX_LOOKS_BYTES, lambda seen: seen.nbytes)
        self._answers: Recent[EvidenceAnswer] = Recent(MAX_ANSWERS, lambda _: 1)
        self._json_ld: Recent[tuple[str, ...]] = Recent(
            MAX_JSON_LD_CHARACTERS, lambda texts: sum(map(len, texts))
        )
        self._idle = threading.Event()
        self._idle.set()
        services.forgets.append(self._forget)

    def wait_idle(self, seconds: float) -> bool:
        """Whether the run that was at work has ended by then."""
        return self._idle.wait(seconds)

    def run(
        self, documents: OpenDocuments, order: SetOrder, report: Report, llm: Llm | None = None
    ) -> RunInView:
        """A whole run, logged. `report` hears of the documents being embedded for the policy and may raise
        Cancelled. `llm`: who chooses where the order wants a model. Raises BadRequest before it begins,
        BadCheckpoint.
        """
        check_known(documents.owner)
        query = check_query(order.query)
        check_budget(order.budget)
        if not len(documents.corpus):
            raise BadRequest("there are no chunks to choose from; open a document that has text")
        self._idle.clear()
        try:
            return self._run(documents, replace(order, query=query), report, llm)
        finally:
            self._idle.set()

    def _run(self, documents: OpenDocuments, order: SetOrder, report: Report, llm: Llm | None) -> RunInView:
        name = PLAIN if order.by_model else vectors_of(RESRAG, documents.agent.spec.name)
        library, agents = self.services.library, self.services.agents
        opened = finish(library.under(documents, agents.load(name)), report)
        plain = finish(library.under(documents, agents.load(PLAIN)), report)
        query, corpus, encoder = order.query, opened.corpus, opened.agent.encoder
        config = EpisodeConfig(step_budget=min(order.budget, len(corpus)))
        _ = corpus.words  # counting them is no part of a search's time
        started = time.perf_counter()
        seen = None if order.by_model else look(query, corpus, encoder)
        if seen is None:
            embedded = OpenProgress("embedding", len(corpus), len(corpus))
            chooser = LlmEvidenceSet(llm, encoder)
            chooser.cancelled = Pulse(report, last=embedded).is_over
            events = chooser.retrieve(query, corpus, config)
        else:
            events = EvidenceSet(encoder).events(query, corpus, config, seen, started)
        run: RunInView | None = None
        try:
            for event in events:
                run = (
                    self.services.begin_run(event, opened)
                    if isinstance(event, RunStarted)
                    else self.services.add_event(run, event)
                    if run is not None
                    else None
                )
        except LlmCancelled as error:  # before the run began
            raise Cancelled from error
        except Exception as error:
            if run is not None and not run.ended:
                self.services.end_run(run, "failed", str(error))
            raise
        assert run is not None  # a run says at least that it started
        self._looks.put(run.token, _page_look(query, plain, seen))
        return self.services.answer(run)

    def open(self, run_id: str, owner: str | None, report: Report) -> RunInView:
        """A logged run with its documents open. Raises BadRequest, RunNotFound, LogError, BadCheckpoint."""
        logged = self.services.own_log.get(run_id, owner)
        if logged.record.method not in SETS:
            raise BadRequest(f"run {run_id[:8]} is one of {logged.record.method}, no evidence set")
        run = finish(self.services.attach(run_id, owner), report)
        if run.trace.scores_at(1) is None:
            raise BadRequest(f"run {run_id[:8]} came without its chances; run its question again")
        self._json_ld.put(run.token, logged_json_ld(logged))
        return run

    def at(self, run: RunInView, budget: int) -> SetInView:
        """The run's set at a budget, not read yet unless it was read before. Raises BadRequest."""
        check_budget(budget)
        corpus, workspace = run.documents.corpus, run.documents.workspace
        size, seen = min(budget, len(corpus)), self._seen(run)
        by_model = seen.policy is None
        chances = (
            run.q_values(1)
            if seen.policy is None or size == run.config.step_budget
            else EvidenceSet(run.documents.agent.encoder).policy.chances(seen.policy.with_budget(size))
        )
        view = SetInView(run, budget, chances, (), (), token_counts(workspace), ())
        chunk_ids = (
            run.trace.picks[:size]
            if by_model
            else tuple(most_probable_set(chances, size, view.least, run.config.forbidden))
        )
        view = replace(
            view,
            taken=chunk_ids,
            documents=tuple(document_sets(chunk_ids, workspace.borders, view.n_tokens)),
            rivals=tuple(
                rivals(chunk_ids, run.gold, seen.products, seen.cosines, seen.threshold, view.n_tokens)
            ),
            json_ld=self._written(run),
            types=tuple(json_ld_types(document.json_ld, MAX_TYPES) for document in workspace.documents),
        )
        answer = run.answer if view.is_logged else self._answers.get(_key(view))
        return replace(view, answer=answer)

    def answered(self, view: SetInView) -> SetInView:
        """The set with what the reader says of it. Raises BadCheckpoint."""
        if view.answer is None:
            view = replace(view, answer=self.services.read(view.run, view.taken))
            assert view.answer is not None
            self._answers.put(_key(view), view.answer)
        return view

    def _written(self, run: RunInView) -> tuple[str, ...]:
        """JSON-LD of the documents: out of the log where the run came from there."""
        written = self._json_ld.get(run.token)
        if not written:
            written = tuple(metadata_json(run.documents.workspace.documents, MAX_KEPT))
            self._json_ld.put(run.token, written)
        return written

    def _seen(self, run: RunInView) -> PageLook:
        seen = self._looks.get(run.token)
        if seen is None:
            query, documents = run.trace.started.query, run.documents
            policy = None
            if run.trace.started.method != RESRAG_LLM:
                policy = look(query, documents.corpus, documents.agent.encoder)
            plain = finish(self.services.library.under(documents, self.services.agents.load(PLAIN)))
            seen = _page_look(query, plain, policy)
            self._looks.put(run.token, seen)
        return seen

    def _forget(self, run_ids: Collection[str]) -> None:
        """Takes runs that were deleted out of memory."""
        for run in self.services.library.runs.all():
            if run.run_id in run_ids:
                self._looks.drop(run.token)
                self._json_ld.drop(run.token)


def _page_look(query: str, plain: OpenDocuments, policy: QuestionFeatures | None) -> PageLook:
    """plain: the documents under the untrained encoder."""
    encoder, corpus = plain.agent.encoder, plain.corpus
    cosines = query_cosines(encoder, query, corpus)
    return PageLook(policy, cosines, cosines * corpus.index.norms, Threshold(encoder).threshold)


def _key(view: SetInView) -> str:
    return f"{view.run.token} {sorted(view.taken)}"


def check_budget(budget: int) -> None:
    """Raises BadRequest for a budget that is not on offer."""
    if not 1 <= budget <= MAX_BUDGET:
        raise BadRequest(f"budget {budget} must be between 1 and {MAX_BUDGET} chunks; choose one in between")


@lru_cache(maxsize=1)
def measured() -> tuple[Curve, ...]:
    """The frontier of the project's own rows; nothing where the copy came without them."""
    rows: list[FrontierRow] = []
    for path in FRONTIERS:
        known = {row.task for row in rows}
        rows += [row for row in read_frontier(path) if row.task not in known] if path.exists() else []
    return tuple(curves(rows))
