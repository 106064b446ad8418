"""The agent of Q-RAG section 3 and the one episode loop.

An episode is a generator of frozen events. Episodes run in lockstep, their states embedded in one batch; a single run is a batch of
one. The transition is deterministic, so a run can start from any `prefix` of choices: stepping, going back, forcing a chunk and
continuing a logged run are all new episodes with another prefix. Sampling draws from a generator seeded by (seed, episode id, step),
so a run doesn't depend on batching nor on how a person paused it.
Stop rule (appendix B): before acting, stop when the best available Q is below the threshold; the rejected action is part of the event.
Knows nothing of logs, training or pages.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.config import EpisodeConfig, check_query
from core.encode.encoder import DualEncoder
from core.encode.forward import StateTokens
from core.errors import BadRequest
from core.events import Event, RunStarted, StepScores, StepTaken, Stopped
from core.index import Searchable
from core.qrag.policy import Choice, choose, greedy
from core.qrag.positions import chunk_positions


@dataclass(frozen=True, eq=False)
class Episode:
    """One query over one corpus. `id` only separates the random streams of a batch."""

    query: str
    corpus: Searchable
    config: EpisodeConfig
    id: str = ""
    prefix: tuple[int, ...] = ()
    """Chunks already chosen, in order of choice."""


@dataclass(frozen=True, eq=False, slots=True)
class Look:
    """What the agent sees before an action: Q of all chunks, which are available, and what it cost."""

    state_vector: np.ndarray
    """(D,) float32."""
    scores: StepScores
    available: np.ndarray
    tokens: StateTokens
    milliseconds: float


@dataclass
class _Running:
    episode: Episode
    chosen: list[int] = field(default_factory=list)
    stopped: bool = False


class Agent:
    """A dual encoder that acts. Stateless but for its weights. `name` is the method's name in events."""

    def __init__(self, encoder: DualEncoder, name: str = "qrag") -> None:
        self.name = name
        self.encoder = encoder
        self.spec = encoder.spec

    def run(self, query: str, corpus: Searchable, config: EpisodeConfig, prefix: Sequence[int] = ()) -> Generator[Event]:
        """One episode. Raises BadRequest before the first event."""
        for _, event in self.run_batch([Episode(query, corpus, config, prefix=tuple(prefix))]):
            yield event

    def run_batch(self, episodes: Sequence[Episode]) -> Iterator[tuple[int, Event]]:
        """(index into `episodes`, event): every episode's own events in order, interleaved by step. Raises BadRequest before the first."""
        for episode in episodes:
            self.check(episode.query, episode.corpus, episode.config)
        running = {i: _Running(episode, list(episode.prefix)) for i, episode in enumerate(episodes)}
        for i, episode in enumerate(episodes):
            yield i, RunStarted(episode.query, self.name, self.spec.name, len(episode.corpus), episode.config)
        while running:
            for i in [i for i, run in running.items() if len(run.chosen) >= run.episode.config.step_budget]:
                yield i, Stopped("budget", len(running.pop(i).chosen))
            looks = self.look([(run.episode, run.chosen) for run in running.values()])
            for (i, run), look in zip(list(running.items()), looks, strict=True):
                event = self._act(run, look)
                yield i, event
                if isinstance(event, Stopped):
                    del running[i]

    def check(self, query: str, corpus: Searchable, config: EpisodeConfig) -> None:
        """Raises BadRequest when the run can't be made."""
        check_query(query)
        config.check_against(len(corpus))
        if config.step_budget > self.encoder.max_state_chunks:
            most = self.encoder.max_state_chunks
            raise BadRequest(f"step_budget={config.step_budget} is above {most}, the number of chunks that a state of {self.spec.name} holds; lower the budget")

    def look(self, states: Sequence[tuple[Episode, Sequence[int]]]) -> list[Look]:
        """Q-values of all chunks for several (episode, chosen ids) states, embedded in one batch."""
        if not states:
            return []
        started = time.perf_counter()
        tokens = [self.encoder.state_tokens(*self._state_parts(episode, chosen)) for episode, chosen in states]
        vectors = self.encoder.encode_states(tokens)
        shared = (time.perf_counter() - started) / len(states)
        looks = []
        for (episode, chosen), state_tokens, vector in zip(states, tokens, vectors, strict=True):
            started = time.perf_counter()
            corpus, config = episode.corpus, episode.config
            positions = chunk_positions(self.spec, corpus.borders, chosen, use_positions=config.use_positions)
            q_values = corpus.index.q_values(vector, positions)
            available = np.ones(len(corpus), dtype=bool)
            available[list(chosen)] = False
            available[list(config.forbidden)] = False
            turned = self.spec.position_kind != "none" and config.use_positions
            scores = StepScores(q_values, positions if turned else None)
            looks.append(Look(vector, scores, available, state_tokens, 1000 * (shared + time.perf_counter() - started)))
        return looks

    def _state_parts(self, episode: Episode, chosen: Sequence[int]) -> tuple[str, list[str]]:
        order = sorted(chosen) if self.spec.state_order == "document" else chosen
        return check_query(episode.query), [episode.corpus.text(chunk_id) for chunk_id in order]

    def _act(self, run: _Running, look: Look) -> Event:
        config, step = run.episode.config, len(run.chosen) + 1
        q_values = look.scores.q_values
        forced = dict(config.forced).get(step)
        if forced is not None and not look.available[forced]:
            forced = None  # the agent took it by itself at an earlier step
        if forced is None and not look.available.any():
            return Stopped("exhausted", len(run.chosen), milliseconds=look.milliseconds, scores=look.scores)
        if forced is None and config.stop_threshold is not None:
            best, _ = greedy(q_values, look.available)
            if q_values[best] < config.stop_threshold:
                return Stopped("threshold", len(run.chosen), best, float(q_values[best]), look.milliseconds, look.scores)
        rng = np.random.default_rng([config.seed, zlib.crc32(run.episode.id.encode()), step])
        choice = choose(q_values, look.available, config.temperature, config.top_k_actions, rng)
        if forced is not None:
            choice = Choice(forced, float(q_values[forced]), 1.0, choice.state_value, 1)
        run.chosen.append(choice.chunk_id)
        return step_event(run.episode, step, choice, look, by_person=forced is not None)


def step_event(episode: Episode, step: int, choice: Choice, look: Look, *, by_person: bool = False) -> StepTaken:
    """The event of one action."""
    positions = look.scores.positions
    return StepTaken(
        step=step,
        chunk_id=choice.chunk_id,
        q_value=choice.q_value,
        probability=choice.probability,
        state_value=choice.state_value,
        position=None if positions is None else float(positions[choice.chunk_id]),
        text=episode.corpus.text(choice.chunk_id),
        milliseconds=look.milliseconds,
        content_q=None if positions is None else episode.corpus.index.content_q(look.state_vector, choice.chunk_id),
        chosen_by="person" if by_person else "agent",
        n_tied=choice.n_tied,
        n_state_tokens=len(look.tokens.ids),
        n_state_tokens_dropped=look.tokens.n_dropped,
        scores=look.scores,
    )
