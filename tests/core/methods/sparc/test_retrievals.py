"""Searching one list of chunks with three strategies, and what agents may look up."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import fold
from core.corpus.index import Corpus
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from core.methods.sparc.retrievals import START, STEPS, Retrievals
from tests.core.conftest import CorpusOf
from tests.core.methods.sparc.conftest import FIRST_HOP, QUESTION, STORY


@pytest.fixture
def all_three(agents: dict[str, Agent], corpus_of: CorpusOf) -> Retrievals:
    """A tiny agent's vectors on both sides: what counts is which calls are made, not what they find."""
    encoder = agents["none"].encoder
    corpus = corpus_of(encoder, STORY)
    return Retrievals(corpus, agent=encoder, plain=encoder, plain_corpus=corpus)


def test_what_isn_t_there_is_not_offered_and_refused(retrievals: Retrievals, all_three: Retrievals) -> None:
    assert retrievals.strategies == ("bm25",)
    assert all_three.strategies == ("bm25", "dense", "qrag")
    with pytest.raises(BadRequest, match="strategy 'qrag' can't be searched with here; choose among bm25"):
        retrievals.search("qrag", QUESTION, 2)
    assert retrievals.worth(QUESTION, [0], [()]) is None
    assert retrievals.left_to_find(QUESTION, ()) is None
    assert retrievals.needed(QUESTION, (0, 1)) is None


def test_lexical_search_leaves_question_words_out(retrievals: Retrievals) -> None:
    asked = retrievals.search("bm25", "Which what where Blue Lantern?", 3)
    assert asked[0].chunk_id == FIRST_HOP
    assert asked[0].text == STORY[FIRST_HOP]
    assert [one.score for one in asked] == sorted((one.score for one in asked), reverse=True)


@pytest.mark.parametrize("strategy", ["bm25", "dense", "qrag"])
def test_no_chunk_comes_twice_and_no_more_than_there_are(all_three: Retrievals, strategy) -> None:  # type: ignore[no-untyped-def]
    found = [one.chunk_id for one in all_three.search(strategy, QUESTION, 20)]
    assert len(found) == len(set(found)) <= len(STORY)
    assert found == [one.chunk_id for one in all_three.search(strategy, QUESTION, 20)]
    assert found[:2] == [one.chunk_id for one in all_three.search(strategy, QUESTION, 2)]


def test_the_agent_starts_from_the_memory_and_is_topped_up(all_three: Retrievals) -> None:
    known = [one.chunk_id for one in all_three.search("qrag", QUESTION, 3)]
    after = [one.chunk_id for one in all_three.search("qrag", QUESTION, STEPS + 1, known)]
    assert not set(after) & set(known[:START])
    assert len(after) == STEPS + 1
    assert after[0] == known[START]  # its third choice after its first two


def test_rare_words_count_more(retrievals: Retrievals) -> None:
    assert retrievals.rarity("quillmarsh") > retrievals.rarity("lantern") > 0
    assert retrievals.rarity("never-heard") >= retrievals.rarity("quillmarsh")


def test_worth_is_the_agent_s_q(all_three: Retrievals) -> None:
    values = all_three.worth(QUESTION, [0, 1, 2], [(), (0,)])
    assert values is not None
    assert values.shape == (2, 3)
    found = all_three.search("qrag", QUESTION, 1)[0]
    first = all_three.worth(QUESTION, range(len(STORY)), [()])
    assert first is not None
    assert first[0].max() == pytest.approx(found.score, abs=1e-5)


def test_what_the_agent_needs_is_what_it_takes_of_some_chunks(
    agents: dict[str, Agent], corpus_of: CorpusOf
) -> None:
    """With the whole document to choose from, that is its own episode."""
    encoder = agents["relative10"].encoder
    corpus = corpus_of(encoder, STORY)
    q_values = Agent(encoder).look([(Episode(QUESTION, corpus, EpisodeConfig()), [])])[0].scores.q_values
    for threshold, review in (
        (-1e6, None),
        (float(np.median(q_values)), None),
        (-1e6, float(q_values.mean())),
        (1e6, None),
    ):
        spec = encoder.spec.model_copy(
            update={"stop_threshold": threshold, "review_threshold": review, "step_budget": 3}
        )
        own = copy(encoder)
        own.spec = spec
        retrievals = Retrievals(corpus, agent=own)
        trace = fold(Agent(own).run(QUESTION, corpus, spec.episode_config()))
        assert retrievals.needed(QUESTION, range(len(STORY))) == trace.picks
        if trace.stopped is not None and trace.stopped.reason == "threshold" and not trace.taken_back:
            left = retrievals.left_to_find(QUESTION, trace.chosen)
            assert left is not None
            assert (left.chunk_id, left.threshold) == (trace.stopped.chunk_id, threshold)
        some = retrievals.needed(QUESTION, (1, 4))
        assert some is not None
        assert {*some} <= {1, 4}


def test_both_corpora_must_hold_the_same_chunks(
    story: Corpus, agents: dict[str, Agent], corpus_of: CorpusOf
) -> None:
    encoder = agents["none"].encoder
    with pytest.raises(ValueError, match="8 chunks but 2"):
        Retrievals(story, plain=encoder, plain_corpus=corpus_of(encoder, STORY[:2]))
