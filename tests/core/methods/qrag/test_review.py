"""The review: what a stopped agent takes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import Stopped, Trace, event_from_json, event_to_json, fold
from core.corpus.index import Corpus
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from tests.core.conftest import CorpusOf
from tests.core.methods.qrag.test_agent import CHUNKS, QUERY

THRESHOLDS = (-10.0, 0.0, 0.3, 0.6, 10.0)


@pytest.fixture(scope="module", params=["relative10", "none"])
def agent(agents: dict[str, Agent], request: pytest.FixtureRequest) -> Agent:
    return agents[request.param]


@pytest.fixture(scope="module")
def corpus(agent: Agent, corpus_of: CorpusOf) -> Corpus:
    return corpus_of(agent.encoder, CHUNKS)


def run(agent: Agent, corpus: Corpus, **config: Any) -> Trace:
    return fold(agent.run(QUERY, corpus, EpisodeConfig(**{"step_budget": 5} | config)))


def q_beside(agent: Agent, corpus: Corpus, chunk_id: int, others: Sequence[int]) -> float:
    """Q of one chunk in the state of others, as a look at all chunks has it."""
    [look] = agent.look([(Episode(QUERY, corpus, EpisodeConfig()), list(others))])
    return float(look.scores.q_values[chunk_id])


def by_hand(
    agent: Agent, corpus: Corpus, chosen: Sequence[int], threshold: float
) -> tuple[list[int], dict[int, float]]:
    """(what is taken back, what each choice was last worth), a look at a time."""
    kept, taken_back, worth = list(chosen), [], {}
    while len(kept) > 1:
        worth |= {
            chunk_id: q_beside(agent, corpus, chunk_id, [other for other in kept if other != chunk_id])
            for chunk_id in kept
        }
        least = min(kept, key=worth.__getitem__)
        if worth[least] >= threshold:
            break
        kept.remove(least)
        taken_back.append(least)
    return taken_back, worth


def test_what_is_taken_back_is_what_looks_by_hand_take_back(agent: Agent, corpus: Corpus) -> None:
    """A low threshold keeps all, a high one leaves one, and in between it decides."""
    sizes = []
    for threshold in THRESHOLDS:
        trace = run(agent, corpus, review_threshold=threshold)
        taken_back, worth = by_hand(agent, corpus, trace.chosen, threshold)
        assert list(trace.taken_back) == taken_back
        expected = [worth[chunk_id] for chunk_id in trace.chosen]
        assert trace.stopped.review == pytest.approx(expected, abs=1e-5)
        assert trace.evidence == tuple(sorted({*trace.chosen} - {*taken_back}))
        sizes.append(len(trace.evidence))
    assert (sizes[0], sizes[-1]) == (5, 1)
    assert sizes == sorted(sizes, reverse=True)
    alone = run(agent, corpus, step_budget=1, review_threshold=10.0).stopped
    assert (alone.review, alone.taken_back) == ((), ()), "one choice is not reviewed"
    with pytest.raises(BadRequest, match=r"review threshold .* must be a finite number, or none to keep all"):
        EpisodeConfig(review_threshold=float("nan"))


def test_choices_do_not_hang_on_the_review_and_none_means_none(agent: Agent, corpus: Corpus) -> None:
    plain, reviewed = run(agent, corpus), run(agent, corpus, review_threshold=10.0)
    assert plain.chosen == reviewed.chosen
    assert (plain.stopped.review, plain.taken_back, plain.evidence) == ((), (), tuple(sorted(plain.chosen)))


def test_who_chose_a_chunk_makes_no_difference(agent: Agent, corpus: Corpus) -> None:
    """A run that goes on from another's choices and one in which they are forced, as a replay has it, come to
    the same.
    """
    for threshold in THRESHOLDS:
        config = EpisodeConfig(step_budget=4, review_threshold=threshold)
        whole = fold(agent.run(QUERY, corpus, config))
        kept = whole.chosen[:3]
        forced = fold(agent.run(QUERY, corpus, config.with_(forced=tuple(enumerate(kept, start=1)))))
        *_, end = agent.run(QUERY, corpus, config, kept)
        assert whole.taken_back == forced.taken_back == end.taken_back


def test_batches_and_beams_review_as_a_single_run_does(agent: Agent, corpus: Corpus) -> None:
    thresholds = [(budget, threshold) for budget in (1, 3, 5) for threshold in (None, 0.3, 10.0)]
    configs = [
        EpisodeConfig(step_budget=budget, review_threshold=at_least) for budget, at_least in thresholds
    ]
    together: list[list[Any]] = [[] for _ in configs]
    for i, event in agent.run_batch([Episode(QUERY, corpus, config) for config in configs]):
        together[i].append(event)
    for config, events in zip(configs, together, strict=True):
        assert fold(events).taken_back == fold(agent.run(QUERY, corpus, config)).taken_back
    config = EpisodeConfig(step_budget=3, beam_width=2, review_threshold=0.3)
    planned = fold(agent.run(QUERY, corpus, config))
    assert list(planned.taken_back) == by_hand(agent, corpus, planned.chosen, 0.3)[0]


def test_the_event_survives_json_also_one_from_before_there_were_reviews() -> None:
    stopped = Stopped("threshold", 3, 7, 0.1, 12.5, review=(0.9, 0.05, 0.7), taken_back=(4,))
    told = event_to_json(stopped)
    assert event_from_json(told) == stopped
    before = {name: value for name, value in told.items() if name not in ("review", "taken_back")}
    assert event_from_json(before) == Stopped("threshold", 3, 7, 0.1, 12.5)
