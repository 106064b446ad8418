"""Why a run lacks support: every remedy holds when it is done."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.base.events import Stopped, Trace, fold
from core.base.progress import finish
from core.base.types import Document
from core.corpus.index import Corpus
from core.corpus.opening import open_corpus
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.runs.whatif.cuts import chunks_of
from core.runs.whatif.diagnosis import Diagnosis, Remedy, cut_that_helps, diagnose, n_found_by

TEXT = (
    "The ferry leaves the island at noon. The keeper of the lighthouse is Hedda. Her brother paints boats. It"
    " rained all week. Hedda was born in Aldermouth. The mill grinds rye. Cows graze by the river. The school"
    " has two rooms."
)
QUESTION = "Where was the keeper of the lighthouse born?"


@pytest.fixture(scope="module")
def agent(minilm: DualEncoder) -> Agent:
    return Agent(minilm)


def cut(encoder: DualEncoder, size: int) -> Corpus:
    ways = [encoder.spec.chunk_config("sentences", size)]
    return finish(open_corpus([Document("Island", TEXT, "text")], encoder, ways)).corpus


@pytest.fixture(scope="module")
def corpus(minilm: DualEncoder) -> Corpus:
    return cut(minilm, 12)


def ran(agent: Agent, corpus: Corpus, steps: int) -> Trace:
    return fold(agent.run(QUESTION, corpus, agent.spec.episode_config(step_budget=steps)))


def ways(found: Diagnosis) -> dict[str, Remedy]:
    return {remedy.way: remedy for remedy in found.remedies}


def test_what_lacks_nothing_or_goes_on_is_not_diagnosed(agent: Agent, corpus: Corpus) -> None:
    trace = ran(agent, corpus, 2)
    assert diagnose(agent, corpus, trace, []) is None
    assert diagnose(agent, corpus, trace, trace.chosen) is None
    assert diagnose(agent, corpus, replace(trace, stopped=None), [7]) is None


def test_more_steps_find_what_they_promise(agent: Agent, corpus: Corpus) -> None:
    whole = ran(agent, corpus, len(corpus))
    gold = [whole.chosen[0], whole.chosen[3]]
    found = diagnose(agent, corpus, ran(agent, corpus, 2), gold)
    assert (found.chunk_id, found.n_found, found.n_support, len(found.ranks)) == (gold[1], 1, 2, 2)
    longer = ways(found)["longer"]
    assert longer.n_found == 2
    assert {*gold} <= {*ran(agent, corpus, longer.value).picks}
    assert not {*gold} <= {*ran(agent, corpus, longer.value - 1).picks}


def test_a_neighbour_of_a_choice_is_named(agent: Agent, corpus: Corpus) -> None:
    trace = ran(agent, corpus, 1)
    missed = trace.chosen[0] + 1
    found = diagnose(agent, corpus, trace, [missed])
    assert found.beside == trace.chosen[0]
    assert Remedy("take", missed, 1) in found.remedies


def test_what_the_review_took_back_can_be_kept(agent: Agent, corpus: Corpus) -> None:
    trace = ran(agent, corpus, 2)
    reviewed = replace(trace, stopped=Stopped("budget", 2, review=(0.1, 0.5), taken_back=trace.chosen[:1]))
    found = diagnose(agent, corpus, reviewed, list(trace.chosen))
    assert (found.chunk_id, found.taken_back_at, found.n_found) == (trace.chosen[0], 1, 1)
    assert ways(found)["keep"] == Remedy("keep", 0, 2)


def test_bm25_is_named_only_where_it_has_the_chunk_in_reach(agent: Agent, corpus: Corpus) -> None:
    trace = ran(agent, corpus, 2)
    lacking = [chunk_id for chunk_id in range(len(corpus)) if chunk_id not in trace.chosen]
    named = [ways(diagnose(agent, corpus, trace, [chunk_id])).get("bm25") for chunk_id in lacking]
    scores = corpus.words.scores(["keeper", "lighthouse", "born", "where"])
    for chunk_id, remedy in zip(lacking, named, strict=True):
        rank = 1 + sum(bool(score > scores[chunk_id]) for score in scores)
        assert (remedy is not None) == (scores[chunk_id] > 0 and rank <= 2), chunk_id
        assert remedy is None or remedy.value == rank


def test_another_agent_is_counted_by_what_it_keeps(agent: Agent, corpus: Corpus) -> None:
    trace = ran(agent, corpus, 1)
    own = ran(agent, corpus, agent.spec.step_budget)
    assert n_found_by(agent, corpus, trace, own.chosen) == len(own.picks)


def test_a_passage_that_is_cut_in_two_is_found_whole_in_larger_chunks(agent: Agent) -> None:
    words = "The keeper of the lighthouse is Hedda. Her brother paints boats."
    span = (0, TEXT.index(words), TEXT.index(words) + len(words))
    small = cut(agent.encoder, 8)
    gold = chunks_of(small.workspace, [span])
    assert len(gold) > 1
    trace = ran(agent, small, 1)
    found = diagnose(agent, small, trace, gold, [span])
    assert found.split == gold
    helps = cut_that_helps(found, agent, small, trace, gold, [span])
    assert (helps.way, helps.n_found) == ("cut", len(gold))
    larger = cut(agent.encoder, helps.value)
    assert {*chunks_of(larger.workspace, [span])} <= {*ran(agent, larger, 1).picks}


def test_a_passage_in_one_chunk_asks_for_no_other_cut_unless_it_lies_beside_a_choice(
    agent: Agent, corpus: Corpus
) -> None:
    trace = ran(agent, corpus, 1)
    for missed, asks in ((trace.chosen[0] + 1, True), ((trace.chosen[0] + 4) % len(corpus), False)):
        chunk = corpus.workspace[missed]
        span = (0, chunk.start, chunk.end)
        found = diagnose(agent, corpus, trace, [missed], [span])
        assert found.split == ()
        helps = cut_that_helps(found, agent, corpus, trace, [missed], [span])
        assert (helps is not None) == asks, missed
