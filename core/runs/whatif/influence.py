"""Why a chunk was chosen.

What each choice was worth without each of the choices before it (leave one out). The agent is asked again
with one chunk fewer in the state, which changes the state's text and, with relative positions, where chunks
lie. The chunk that is left out can't be chosen there, as it can't after it was. Two choices may each be
dispensable while the other is there: the differences don't add up to Q.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.base.config import EpisodeConfig
from core.corpus.index import Searchable
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode

Influence = tuple[tuple[float, ...], ...]
"""Row s - 1 has, for each step i < s, Q of the chunk chosen at s in the state without the choice of i."""


def leave_one_out(
    agent: Agent, query: str, corpus: Searchable, config: EpisodeConfig, chosen: Sequence[int]
) -> Influence:
    """`chosen`: chunk ids in order of choice. T * (T - 1) / 2 states are embedded, one step's in a batch."""
    return tuple(
        without_each(agent, query, corpus, config, chosen[: step + 1]) for step in range(len(chosen))
    )


def without_each(
    agent: Agent, query: str, corpus: Searchable, config: EpisodeConfig, chosen: Sequence[int]
) -> tuple[float, ...]:
    """Q of the last of `chosen` without each before it: a row of `leave_one_out`, its states in a batch."""
    *before, chunk_id = chosen
    states = []
    for i, left_out in enumerate(before):
        without = config.with_(forbidden=(*config.forbidden, left_out), forced=())
        states.append((Episode(query, corpus, without), [*before[:i], *before[i + 1 :]]))
    return tuple(float(look.scores.q_values[chunk_id]) for look in agent.look(states))
