"""Why a chunk was chosen: what each choice was worth without each of the choices before it (leave one out).

Asks the agent again with one chunk fewer in the state, which changes the state's text and, with relative positions, where chunks lie.
Two choices may each be dispensable while the other is there: the differences don't add up to Q.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.config import EpisodeConfig
from core.index import Searchable
from core.qrag.agent import Agent, Episode

Influence = tuple[tuple[float, ...], ...]
"""Row s - 1 has, for every step i < s in order, Q of the chunk chosen at step s in the state that lacks the choice of step i."""


def leave_one_out(agent: Agent, query: str, corpus: Searchable, config: EpisodeConfig, chosen: Sequence[int]) -> Influence:
    """`chosen`: chunk ids in order of choice. T * (T - 1) / 2 states are embedded, one step's in a batch."""
    episode = Episode(query, corpus, config)
    rows = []
    for step, chunk_id in enumerate(chosen):
        states = [(episode, [*chosen[:left_out], *chosen[left_out + 1 : step]]) for left_out in range(step)]
        rows.append(tuple(float(look.scores.q_values[chunk_id]) for look in agent.look(states)))
    return tuple(rows)
