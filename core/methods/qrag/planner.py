"""Plan Q-RAG: beam search over Q (Q-RAG appendix D).

The paper does not say what a path is worth. Q is a return to go, and the one reward comes when all support is
in, so each Q on a path estimates the same return: a path is worth their mean. Their sum, which counts that
return once a step, made longer paths worth more. Of six rankings none was better than the greedy agent on
validation questions beyond chance, and the last step's Q, the least and the largest were worse
(docs/log/2026-11-23-beam-search.md). A path that has stopped keeps its worth and competes with those that go
on. Where the state text is in document order, paths that hold the same set of chunks are one state, and the
better one is kept. A beam of one is the greedy agent.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from statistics import fmean as mean

import numpy as np

from core.base.config import EpisodeConfig
from core.base.events import Event, RunStarted, StepTaken, Stopped
from core.corpus.index import Searchable
from core.methods.qrag.agent import Agent, step_event
from core.methods.qrag.episode import Episode, Look
from core.methods.qrag.policy import ChosenAction, candidates, greedy
from core.methods.qrag.stop import stop_of


@dataclass(frozen=True)
class _Path:
    steps: tuple[StepTaken, ...] = ()
    stopped: Stopped | None = None

    @property
    def worth(self) -> float:
        """Mean Q of its steps; 0 before the first."""
        return mean(step.q_value for step in self.steps) if self.steps else 0.0

    @property
    def chosen(self) -> tuple[int, ...]:
        return tuple(step.chunk_id for step in self.steps)


def plan(agent: Agent, query: str, corpus: Searchable, config: EpisodeConfig) -> Generator[Event]:
    """Events of the best path, steps after the search. Raises BadRequest before the first event."""
    agent.check(query, corpus, config)
    yield RunStarted(query, agent.name, agent.spec.name, len(corpus), config)
    episode = Episode(query, corpus, config)
    paths = [_Path()]
    for _ in range(config.step_budget):
        open_paths = [path for path in paths if path.stopped is None]
        if not open_paths:
            break
        grown = [path for path in paths if path.stopped is not None]
        for path, look in zip(
            open_paths, agent.look([(episode, path.chosen) for path in open_paths]), strict=True
        ):
            grown += _expand(episode, path, look)
        paths = _best(grown, config.beam_width, same_set_is_same_state=agent.spec.state_order == "document")
    best = paths[0]
    yield from best.steps
    yield agent.review([(episode, best.chosen, best.stopped or Stopped("budget", len(best.steps)))])[0]


def _expand(episode: Episode, path: _Path, look: Look) -> list[_Path]:
    """The path's successors: stopped, or with each of its best `beam_width` chunks."""
    config, q_values = episode.config, look.scores.q_values
    n, threshold = len(path.steps), config.stop_threshold
    if (end := stop_of(look, n, threshold)) is not None:
        return [_Path(path.steps, end)]
    best, n_tied = greedy(q_values, look.available)
    ids = candidates(q_values, look.available, config.beam_width)
    # equals by rounding: the first in document order leads, as for the agent
    ids = np.concatenate([[best], ids[ids != best]])[: config.beam_width]
    grown = []
    for chunk_id in ids.tolist():
        q_value = float(q_values[chunk_id])
        if threshold is not None and q_value < threshold:
            break
        choice = ChosenAction(
            chunk_id, q_value, 1.0, float(q_values[best]), n_tied if chunk_id == best else 1
        )
        step = step_event(episode, n + 1, choice, look)
        grown.append(_Path((*path.steps, step)))
    return grown


def _best(paths: list[_Path], width: int, *, same_set_is_same_state: bool) -> list[_Path]:
    kept: dict[object, _Path] = {}
    for path in sorted(paths, key=lambda path: -path.worth):
        state = frozenset(path.chosen) if same_set_is_same_state else path.chosen
        kept.setdefault(state, path)
    return list(kept.values())[:width]
