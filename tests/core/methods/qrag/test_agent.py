"""The episode loop: what it may choose, when it stops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.config import EpisodeConfig
from core.base.errors import BadCheckpoint, BadRequest
from core.base.events import Event, StepTaken, Stopped, Trace, fold
from core.corpus.index import Corpus
from core.corpus.opening import index_of
from core.corpus.words import words_of
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from tests.core.conftest import CorpusOf, timeless

CHUNKS = [
    "mary went to the kitchen .",
    "john got the milk there .",
    "sandra moved to the garden .",
    "the river was cold and long .",
    "john travelled to the office .",
    "john left the milk .",
    "daniel picked up the apple .",
    "the captain looked upon the city .",
    "mary went to the kitchen .",
]
QUERY = "where is the milk ?"


@pytest.fixture(scope="module")
def corpus(agent: Agent, corpus_of: CorpusOf) -> Corpus:
    return corpus_of(agent.encoder, CHUNKS)


def run(agent: Agent, corpus: Corpus, prefix: Sequence[int] = (), **config: Any) -> Trace:
    return fold(agent.run(QUERY, corpus, EpisodeConfig(**config), prefix))


@given(
    st.builds(
        EpisodeConfig,
        step_budget=st.integers(1, 9),
        temperature=st.sampled_from([0.0, 0.05, 2.0]),
        seed=st.integers(0, 5),
        forbidden=st.sets(st.integers(0, 8), max_size=4).map(sorted).map(tuple),
        top_k_actions=st.none() | st.integers(1, 4),
    )
)
def test_no_chunk_twice_and_never_a_forbidden_one(
    agent: Agent, corpus: Corpus, config: EpisodeConfig
) -> None:
    trace = fold(agent.run(QUERY, corpus, config))
    n_left = 9 - len(config.forbidden)
    assert len(trace.chosen) == len(set(trace.chosen)) == min(config.step_budget, n_left)
    assert not set(trace.chosen) & {*config.forbidden}
    assert [step.step for step in trace.steps] == list(range(1, len(trace.steps) + 1))
    assert trace.stopped.reason == ("budget" if len(trace.chosen) == config.step_budget else "exhausted")
    for step in trace.steps:
        assert step.text == CHUNKS[step.chunk_id]
        assert step.q_value == step.scores.q_values[step.chunk_id]
        assert step.position == step.scores.positions[step.chunk_id]


def test_every_step_says_what_all_chunks_were_worth(agent: Agent, corpus: Corpus) -> None:
    """Greedy: the chosen one is the best available, its value the state's, its probability 1."""
    trace = run(agent, corpus, step_budget=4)
    for step in trace.steps:
        assert step.scores.q_values.shape == step.scores.positions.shape == (9,)
        available = np.delete(step.scores.q_values, list(trace.chosen[: step.step - 1]))
        assert step.q_value == pytest.approx(available.max(), abs=1e-6)
        assert (step.probability, step.state_value) == (1.0, available.max())


def test_content_and_position_parts_add_up_to_q(agent: Agent, corpus: Corpus) -> None:
    first = run(agent, corpus, step_budget=1).steps[0]
    plain = run(agent, corpus, step_budget=1, use_positions=False).steps[0]
    assert first.content_q == pytest.approx(plain.scores.q_values[first.chunk_id], abs=1e-5)
    assert (plain.content_q, plain.position, plain.scores.positions) == (None, None, None)


def test_words_of_the_question_are_a_part_of_q(
    tiny_checkpoints: dict[str, Path], agents: dict[str, Agent], corpus: Corpus
) -> None:
    """The same in every state, in reviews too; without a weight nothing is counted."""
    encoder = DualEncoder(tiny_checkpoints["none"], "cpu")
    encoder.spec = encoder.spec.model_copy(update={"word_weight": 0.5})
    counting, plain = Agent(encoder), agents["none"]
    config = EpisodeConfig(step_budget=3, forced=((1, 5), (2, 1), (3, 6)), review_threshold=-10.0)
    with_words, without = (fold(agent.run(QUERY, corpus, config)) for agent in (counting, plain))
    shares = corpus.words.shares(words_of(QUERY))
    assert [shares[i] > 0 for i in range(9)] == ["milk" in chunk for chunk in CHUNKS]
    assert shares.max() == 1
    for step, other in zip(with_words.steps, without.steps, strict=True):
        np.testing.assert_allclose(step.scores.q_values - other.scores.q_values, 0.5 * shares, atol=1e-5)
        assert step.content_q + step.words_q == pytest.approx(step.q_value, abs=1e-5)
        assert (other.content_q, other.words_q) == (None, None)
    gained = np.subtract(with_words.stopped.review, without.stopped.review)
    np.testing.assert_allclose(gained, 0.5 * shares[list(with_words.chosen)], atol=1e-5)


def test_codes_of_the_question_are_a_part_of_q_of_their_own(
    tiny_checkpoints: dict[str, Path], corpus_of: CorpusOf
) -> None:
    """And a question without one reads no words."""
    encoder = DualEncoder(tiny_checkpoints["none"], "cpu")
    encoder.spec = encoder.spec.model_copy(update={"identifier_weight": 0.5})
    corpus = corpus_of(encoder, [*CHUNKS, "the milk is K-2210 .", "the milk is K-2211 ."])
    episodes = [Episode(query, corpus, EpisodeConfig()) for query in ("where is milk K-2210 ?", QUERY)]
    named, bare = Agent(encoder).look([(episode, ()) for episode in episodes])
    assert named.words.tolist() == [0.0] * len(CHUNKS) + [0.5, 0.0]
    assert bare.words is None


def test_threshold_stops_before_acting(agent: Agent, corpus: Corpus) -> None:
    """Between the second and the third largest Q on the path: two steps, and the third stands
    in the event.
    """
    free = run(agent, corpus, step_budget=9)
    values = [step.q_value for step in free.steps]
    n = next(i for i in range(1, len(values)) if values[i] < min(values[:i]))
    threshold = (min(values[:n]) + values[n]) / 2
    trace = run(agent, corpus, step_budget=9, stop_threshold=threshold)
    assert trace.chosen == free.chosen[:n]
    stopped = trace.stopped
    assert (stopped.reason, stopped.n_steps, stopped.chunk_id) == ("threshold", n, free.chosen[n])
    assert stopped.q_value == values[n] < threshold
    assert trace.scores_at(n + 1) is stopped.scores
    np.testing.assert_array_equal(stopped.scores.q_values, free.steps[n].scores.q_values)


def test_a_q_on_the_threshold_is_taken(agent: Agent, corpus: Corpus) -> None:
    first = run(agent, corpus, step_budget=1).steps[0]
    assert len(run(agent, corpus, step_budget=1, stop_threshold=first.q_value).steps) == 1
    above = float(np.nextafter(np.float32(first.q_value), np.float32(np.inf)))
    assert run(agent, corpus, step_budget=1, stop_threshold=above).steps == ()


def test_a_spent_budget_is_not_called_threshold(agent: Agent, corpus: Corpus) -> None:
    """Both would stop after step 2: the budget is looked at first, and nothing is scored for it."""
    trace = run(agent, corpus, prefix=(0, 1), step_budget=2, stop_threshold=1e9)
    assert trace.stopped == Stopped("budget", 2)
    assert trace.n_looks == 0


def test_forced_steps_are_the_persons(agent: Agent, corpus: Corpus) -> None:
    """The stop rule binds the agent only; a forced chunk that is taken already changes nothing."""
    trace = run(agent, corpus, step_budget=3, forced=((2, 3),), stop_threshold=None)
    assert trace.chosen[1] == 3
    assert [step.chosen_by for step in trace.steps] == ["agent", "person", "agent"]
    assert trace.steps[1].probability == 1.0
    assert trace.steps[1].q_value == trace.steps[1].scores.q_values[3]
    below = run(agent, corpus, step_budget=3, forced=((1, 3),), stop_threshold=1e6)
    assert (below.chosen, below.stopped.reason) == ((3,), "threshold")
    free = run(agent, corpus, step_budget=3)
    late = run(agent, corpus, step_budget=3, forced=((3, free.chosen[0]),))
    assert late.chosen == free.chosen
    assert {step.chosen_by for step in late.steps} == {"agent"}


@pytest.mark.parametrize(("temperature", "kept"), [(0.0, 1), (0.3, 0), (0.3, 3)])
def test_going_on_from_a_prefix_equals_not_having_paused(
    agent: Agent, corpus: Corpus, temperature: float, kept: int
) -> None:
    whole = run(agent, corpus, step_budget=5, temperature=temperature, seed=11)
    rest = run(agent, corpus, prefix=whole.chosen[:kept], step_budget=5, temperature=temperature, seed=11)
    assert timeless(rest.steps) == timeless(whole.steps[kept:])
    assert rest.stopped == whole.stopped


def test_another_seed_gives_another_trace(agent: Agent, corpus: Corpus) -> None:
    traces = [run(agent, corpus, step_budget=6, temperature=5.0, seed=seed) for seed in range(8)]
    assert len({trace.chosen for trace in traces}) > 1


def test_a_batch_gives_each_episode_its_own_run(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    """Different corpora, budgets and ends in one batch; chunks and their Q as in single runs."""
    agent = agents["absolute"]
    corpora = [corpus_of(agent.encoder, CHUNKS[:n]) for n in (9, 1, 4)]
    configs = [
        EpisodeConfig(step_budget=5, temperature=0.4, seed=2),
        EpisodeConfig(step_budget=1, forbidden=(0,)),
        EpisodeConfig(step_budget=3, stop_threshold=1e6),
    ]
    episodes = [Episode(QUERY, *each) for each in zip(corpora, configs, strict=True)]
    together: list[list[Event]] = [[] for _ in episodes]
    for i, event in agent.run_batch(episodes):
        together[i].append(event)
    for episode, events in zip(episodes, together, strict=True):
        alone = fold(event for _, event in agent.run_batch([episode]))
        trace = fold(events)
        assert trace.chosen == alone.chosen
        assert trace.stopped.reason == alone.stopped.reason
        worth, of_one = ([step.q_value for step in each.steps] for each in (trace, alone))
        np.testing.assert_allclose(worth, of_one, atol=1e-5)
    assert [fold(events).stopped.reason for events in together] == ["budget", "exhausted", "threshold"]


def test_the_state_reads_chunks_in_document_order_or_order_of_choice(
    agents: dict[str, Agent], corpus_of: CorpusOf
) -> None:
    """The reference's sort_by_index; seen in what the next look is worth."""
    orders = {agent.spec.state_order: agent for agent in agents.values()}
    assert set(orders) == {"document", "choice"}
    for order, agent in orders.items():
        corpus = corpus_of(agent.encoder, CHUNKS)
        episode = Episode(QUERY, corpus, EpisodeConfig())
        forward, backward = agent.look([(episode, (1, 4)), (episode, (4, 1))])
        assert (forward.tokens.ids == backward.tokens.ids) == (order == "document")
        parts = agent.encoder.tokenizer.ids([QUERY, CHUNKS[4], CHUNKS[1]])
        inner = [token for part in parts for token in (*part, agent.encoder.tokenizer.sep_id)]
        if order == "choice":
            assert backward.tokens.ids == [agent.encoder.tokenizer.cls_id, *inner]


def test_what_can_not_be_run_is_told_in_a_sentence(agent: Agent, corpus: Corpus, corpus_of: CorpusOf) -> None:
    for config, words in [
        (EpisodeConfig(step_budget=10), "step budget 10 is above 9"),
        (EpisodeConfig(forbidden=(9,)), "chunk 9 does not exist"),
        (EpisodeConfig(forced=((1, -1),)), "chunk -1 does not exist"),
        (EpisodeConfig(forced=((1, 2),), forbidden=(2,)), "chunk 2 is both forced and forbidden"),
        (EpisodeConfig(forced=((1, 2), (1, 3))), "several chunks are forced at step 1"),
        (EpisodeConfig(forced=((1, 2), (2, 2))), "chunk 2 is forced at several steps"),
        (EpisodeConfig(forced=((0, 2),)), "forced at step 0"),
        (EpisodeConfig(step_budget=3, forced=((4, 2),)), "forced at step 4; .* budget of 3"),
    ]:
        with pytest.raises(BadRequest, match=words):
            next(agent.run(QUERY, corpus, config))
    for query, words in [
        ("  ", "empty"),
        ("x" * 100_000, "100,000 characters"),
        ("a \ud800", "half a character"),
    ]:
        with pytest.raises(BadRequest, match=words):
            next(agent.run(query, corpus, EpisodeConfig()))
    broken = Corpus(corpus.workspace, index_of(agent.encoder, np.full((9, corpus.index.dim), np.nan)))
    with pytest.raises(BadCheckpoint, match=r"the Q-values of .* are no numbers, since its weights"):
        list(agent.run(QUERY, broken, EpisodeConfig()))
    many = corpus_of(agent.encoder, [f"chunk {i}" for i in range(300)])
    most = agent.encoder.max_state_chunks
    with pytest.raises(BadRequest, match=f"above {most}"):
        next(agent.run(QUERY, many, EpisodeConfig(step_budget=most + 1)))


def test_the_largest_budget_there_is_runs_to_its_end(agent: Agent, corpus_of: CorpusOf) -> None:
    """The last state holds as many chunks as fit the encoder's window with one token each."""
    most = agent.encoder.max_state_chunks
    corpus = corpus_of(agent.encoder, [f"the man said {i} and {i}" for i in range(most)])
    events = agent.run(QUERY, corpus, EpisodeConfig(step_budget=most), prefix=tuple(range(most - 1)))
    (step,) = (event for event in events if isinstance(event, StepTaken))
    assert step.chunk_id == most - 1
    assert step.n_state_tokens <= agent.encoder.max_positions
    assert step.n_state_tokens_dropped > 0
    assert math.isfinite(step.q_value)
