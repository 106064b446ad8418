"""Evidence sets for the page.

A run is logged at the budget that was set when it was started; moving the budget afterwards shows the set
that a run at that budget would take, from the features that were computed once, and logs nothing. What the
page compares with comes from the untrained encoder, whichever one the policy reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from app.services.agents import PLAIN
from app.services.in_view import OpenDocuments, RunInView
from app.services.pulse import Idle, Pulse
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
MAX_JSON_LD = 50_000_000
"""Characters, of all runs in view."""
MAX_TYPES = 8
"""Types of a document's JSON-LD that are named."""
MAX_ANSWERS = 1_000
"""Answers to sets that stay in memory."""
FRONTIERS = [ROOT / "results" / f"{name}.jsonl.gz" for name in ("frontier-methods", "frontier")]
"""The project's own rows. Those of a later file count for questions that an earlier one lacks, so that no
curve mixes readers.
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
        return _least(self.run)

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
        self._json_ld: Recent[tuple[str, ...]] = Recent(MAX_JSON_LD, lambda texts: sum(map(len, texts)))
        self.idle = Idle()
        services.forgets.append(self._forget)

    def run(
        self, documents: OpenDocuments, order: SetOrder, report: Report, llm: Llm | None = None
    ) -> RunInView:
        """A whole run, logged. `report` hears of the documents being embedded and may raise Cancelled. `llm`:
        who chooses where the order wants a model. Raises BadRequest before it begins, BadCheckpoint.
        """
        check_known(documents.owner)
        query = check_query(order.query)
        check_budget(order.budget)
        if not len(documents.corpus):
            raise BadRequest("there are no chunks to choose from; open a document that has text")
        with self.idle:
            return self._run(documents, replace(order, query=query), report, llm)

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
            chooser = LlmEvidenceSet(llm, encoder)
            chooser.cancelled = Pulse(report, last=OpenProgress("reading", 0, 1)).is_over
            events = chooser.retrieve(query, corpus, config)
        else:
            events = EvidenceSet(encoder).events(query, corpus, config, seen, started)
        run: RunInView | None = None
        try:
            for event in events:
                if isinstance(event, RunStarted):
                    run = self.services.begin_run(event, opened)
                elif run is not None:
                    run = self.services.add_event(run, event)
        except LlmCancelled as error:  # before the run began
            raise Cancelled from error
        except Exception as error:
            if run is not None:
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
        if json_ld := logged_json_ld(logged):
            self._json_ld.put(run.token, json_ld)
        return run

    def at(self, run: RunInView, budget: int) -> SetInView:
        """The run's set at a budget, not read yet unless it was read before. Raises BadRequest."""
        check_budget(budget)
        workspace = run.documents.workspace
        seen = self._looks.made_once(run.token, partial(self._look_again, run))
        size, n_tokens = min(budget, len(workspace)), token_counts(workspace)
        chances, taken = run.q_values(1), run.trace.picks[:size]
        if seen.policy is not None:
            if size != run.config.step_budget:
                policy = EvidenceSet(run.documents.agent.encoder).policy
                chances = policy.chances(seen.policy.with_budget(size))
            taken = tuple(most_probable_set(chances, size, _least(run), run.config.forbidden))

        def written() -> tuple[str, ...]:
            return tuple(metadata_json(workspace.documents, MAX_KEPT))

        view = SetInView(
            run,
            budget,
            chances,
            taken,
            tuple(document_sets(taken, workspace.borders, n_tokens)),
            n_tokens,
            tuple(rivals(taken, run.gold, seen.products, seen.cosines, seen.threshold, n_tokens)),
            json_ld=self._json_ld.made_once(run.token, written),
            types=tuple(json_ld_types(document.json_ld, MAX_TYPES) for document in workspace.documents),
        )
        answer = run.answer if view.is_logged else self._answers.get(_key(view))
        return replace(view, answer=answer)

    def answered(self, view: SetInView) -> SetInView:
        """The set with what the reader says of it. Raises BadCheckpoint."""
        if view.answer is not None:
            return view
        read = partial(self.services.read, view.run, view.taken)
        return replace(view, answer=self._answers.made_once(_key(view), read))

    def _look_again(self, run: RunInView) -> PageLook:
        documents, started, policy = run.documents, run.trace.started, None
        if started.method != RESRAG_LLM:
            policy = look(started.query, documents.corpus, documents.agent.encoder)
        plain = finish(self.services.library.under(documents, self.services.agents.load(PLAIN)))
        return _page_look(started.query, plain, policy)

    def _forget(self, run_ids: Collection[str]) -> None:
        for run in self.services.library.runs.all():
            if run.run_id in run_ids:
                self._looks.drop(run.token)
                self._json_ld.drop(run.token)


def _page_look(query: str, plain: OpenDocuments, policy: QuestionFeatures | None) -> PageLook:
    """plain: the documents under the untrained encoder."""
    encoder, corpus = plain.agent.encoder, plain.corpus
    cosines = query_cosines(encoder, query, corpus)
    return PageLook(policy, cosines, cosines * corpus.index.norms, Threshold(encoder).threshold)


def _least(run: RunInView) -> float:
    threshold = run.config.stop_threshold
    return LEAST_CHANCE if threshold is None else threshold


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
