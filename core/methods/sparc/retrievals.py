"""The retriever of a SPARC run.

One corpus, three strategies (SPARC-RAG section 3.2, appendix A.3). bm25 leaves wh-words out of the query.
dense is top-k of the untrained encoder. qrag, beyond the paper, is the trained agent: it starts from the best
chunks of the memory, takes a few steps, and is topped up to k by the Q of its last look, which finds as much
as k steps in half the time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np

from core.base.config import MAX_QUERY_CHARACTERS, EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import StepTaken, Stopped
from core.corpus.index import Searchable
from core.encode.encoder import DualEncoder
from core.methods.bm25 import Bm25
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from core.methods.qrag.policy import candidates, greedy
from core.methods.sparc.config import STRATEGIES
from core.methods.sparc.events import Hit, Strategy
from core.methods.sparc.words import without_wh
from core.methods.topk import TopK

MAX_CHUNK_CHARACTERS = 4_000
"""What agents read of a chunk, and what the trace keeps of it."""
STEPS = 4
"""Most chunks that the agent chooses one after the other in one search."""
START = 2
"""Chunks of the memory that the agent starts from: its state has room for some three."""

NEEDS = 256
"""Memories of which it is kept what the agent needs of them: a branch asks four times."""
LOOK_BYTES, MIN_LOOKS = 32 * 2**20, 8
"""Memory for Q-values of all chunks that were computed before, and how many of them are kept in any case."""


@dataclass(frozen=True, slots=True)
class Remaining:
    """The best chunk that is not known yet, and the Q below which the agent takes none."""

    chunk_id: int
    q_value: float
    threshold: float


class Retrievals:
    """Searches one list of chunks. Safe to use from several threads."""

    def __init__(
        self,
        corpus: Searchable,
        *,
        agent: DualEncoder | None = None,
        plain: DualEncoder | None = None,
        plain_corpus: Searchable | None = None,
    ) -> None:
        """`corpus`: under the agent's vectors, if any; `plain_corpus`: under the untrained `plain`."""
        self._corpus, self._plain_corpus = corpus, plain_corpus
        self._agent = Agent(agent) if agent is not None else None
        self._one_look: dict[Strategy, tuple[Bm25 | TopK, Searchable]] = {"bm25": (Bm25(), corpus)}
        if plain is not None and plain_corpus is not None:
            self._one_look["dense"] = (TopK(plain), plain_corpus)
        self._preparing, self._looking = Lock(), Lock()
        self._looks: dict[tuple[str, tuple[int, ...]], np.ndarray] = {}
        self._needs: dict[tuple[str, frozenset[int]], tuple[int, ...]] = {}
        if plain_corpus is not None and len(plain_corpus) != len(corpus):
            raise ValueError(
                f"{len(corpus)} chunks but {len(plain_corpus)} under the untrained encoder: they must be the"
                " same"
            )

    @property
    def strategies(self) -> tuple[Strategy, ...]:
        """What can be searched with."""
        there = {*self._one_look, *(["qrag"] if self._agent else [])}
        return tuple(name for name in STRATEGIES if name in there)

    def check(self, *strategies: Strategy) -> None:
        """Raises BadRequest for one that can't be searched with."""
        if missing := [name for name in strategies if name not in self.strategies]:
            raise BadRequest(
                f"strategy {missing[0]!r} can't be searched with here; choose among"
                f" {', '.join(self.strategies)}"
            )

    def __len__(self) -> int:
        return len(self._corpus)

    def prepare(self) -> None:
        """Builds the indexes that searches need, once; without it the first searches do."""
        with self._preparing:
            _ = self._corpus.words
            if self._plain_corpus is not None:
                self._plain_corpus.index.prepare_top_k()

    def search(self, strategy: Strategy, query: str, k: int, memory: Sequence[int] = ()) -> tuple[Hit, ...]:
        """At most k chunks, best first. `memory`: chunks that only qrag starts from. Raises BadRequest."""
        query = query.strip()[:MAX_QUERY_CHARACTERS]
        k = min(k, len(self._corpus))
        self.check(strategy)
        if strategy == "qrag":
            return self._agent_search(query, k, memory)
        if strategy == "bm25" and self._corpus.words.is_empty:
            return ()  # the other branches may find something
        retriever, corpus = self._one_look[strategy]
        query = without_wh(query) if strategy == "bm25" else query
        events = retriever.retrieve(query, corpus, EpisodeConfig(step_budget=k))
        steps = [event for event in events if isinstance(event, StepTaken)]
        return tuple(Hit(step.chunk_id, float(step.q_value), self.text(step.chunk_id)) for step in steps)

    def _agent_search(self, query: str, k: int, memory: Sequence[int]) -> tuple[Hit, ...]:
        assert self._agent is not None
        start = tuple(memory[:START])
        budget = min(len(start) + min(k, STEPS), len(self._corpus))
        config = EpisodeConfig(step_budget=budget)
        events = self._agent.run(query, self._corpus, config, prefix=start)
        steps = [event for event in events if isinstance(event, StepTaken)]
        chosen = {step.chunk_id: float(step.q_value) for step in steps}
        if len(chosen) < k:
            episode = Episode(query, self._corpus, config)
            [look] = self._agent.look([(episode, [*start, *chosen])])
            q_values = look.scores.q_values
            more = candidates(q_values, look.available, k - len(chosen))
            chosen |= {chunk_id: float(q_values[chunk_id]) for chunk_id in more.tolist()}
        return tuple(Hit(chunk_id, score, self.text(chunk_id)) for chunk_id, score in chosen.items())

    def text(self, chunk_id: int) -> str:
        """The beginning of a chunk, as much as agents read."""
        return self._corpus.text(chunk_id)[:MAX_CHUNK_CHARACTERS]

    def rarity(self, word: str) -> float:
        """log(1 + N / (1 + chunks with the word))."""
        return math.log(1 + len(self._corpus) / (1 + self._corpus.words.frequency(word)))

    def worth(
        self, question: str, chunk_ids: Sequence[int], states: Sequence[Sequence[int]]
    ) -> np.ndarray | None:
        """(len(states), len(chunk_ids)) Q after each set of chunks; None without an agent."""
        if self._agent is None:
            return None
        return np.stack([row[list(chunk_ids)] for row in self._q_values(self._agent, question, states)])

    def needed(self, question: str, chunk_ids: Sequence[int]) -> tuple[int, ...] | None:
        """What the agent takes of these chunks alone, in order of choice, until none reaches its stop
        threshold, without what its review takes back.

        None without an agent that knows when to stop.
        """
        if self._agent is None or self._agent.spec.stop_threshold is None:
            return None
        key = (question, frozenset(chunk_ids))
        with self._looking:
            needed = self._needs.get(key)
        if needed is None:
            needed = self._taken_of(self._agent, question, chunk_ids, self._agent.spec.stop_threshold)
            with self._looking:
                self._needs[key] = needed
                while len(self._needs) > NEEDS:
                    del self._needs[next(iter(self._needs))]
        return needed

    def _taken_of(
        self, agent: Agent, question: str, chunk_ids: Sequence[int], threshold: float
    ) -> tuple[int, ...]:
        """An episode that may choose among these chunks only."""
        spec, offered, taken = agent.spec, np.zeros(len(self._corpus), dtype=bool), list[int]()
        offered[list(chunk_ids)] = True
        while offered.any() and len(taken) < spec.step_budget:
            row = self._q_values(agent, question, [taken])[0]
            best, _ = greedy(row, offered)
            if row[best] < threshold:
                break
            taken.append(best)
            offered[best] = False
        config = EpisodeConfig(step_budget=spec.step_budget, review_threshold=spec.review_threshold)
        episode = Episode(question, self._corpus, config)
        [end] = agent.review([(episode, taken, Stopped("threshold", len(taken)))])
        return tuple(chunk_id for chunk_id in taken if chunk_id not in end.taken_back)

    def left_to_find(self, question: str, memory: Sequence[int]) -> Remaining | None:
        """The best chunk that the agent would still take, `memory` being all of its state.

        None without an agent that knows when to stop, and when every chunk is known.
        """
        if self._agent is None or self._agent.spec.stop_threshold is None or len(memory) >= len(self._corpus):
            return None
        row = self._q_values(self._agent, question, [memory])[0]
        unknown = np.ones(len(self._corpus), dtype=bool)
        unknown[list(memory)] = False
        best, _ = greedy(row, unknown)
        return Remaining(best, float(row[best]), self._agent.spec.stop_threshold)

    def _q_values(self, agent: Agent, question: str, states: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """(N,) Q of all chunks a state. The last are kept: branches and rounds ask about the same ones."""
        keys = [(question, tuple(state)) for state in states]
        with self._looking:
            rows = {key: self._looks[key] for key in keys if key in self._looks}
        missing = [key for key in dict.fromkeys(keys) if key not in rows]
        episode = Episode(question, self._corpus, EpisodeConfig(step_budget=1))
        looks = agent.look([(episode, state) for _, state in missing])
        rows |= {key: look.scores.q_values for key, look in zip(missing, looks, strict=True)}
        with self._looking:
            self._looks |= rows
            while len(self._looks) > max(MIN_LOOKS, LOOK_BYTES // (4 * len(self._corpus))):
                del self._looks[next(iter(self._looks))]
        return [rows[key] for key in keys]
