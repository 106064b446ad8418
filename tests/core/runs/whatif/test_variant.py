"""A corpus with one chunk changed against the corpus that was made of the changed texts from the start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import Trace, fold
from core.base.types import join_workspaces, workspace_of_chunks
from core.corpus.index import Corpus
from core.corpus.opening import index_of
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from core.runs.whatif.variant import MAX_TEXT, Change, TryOut, try_out, vary
from tests.core.conftest import CorpusOf

CHUNKS = [
    f"{name} went to the {place} ."
    for name in ("mary", "john", "sandra")
    for place in ("garden", "office", "kitchen")
]
QUERY = "where is john ?"
OTHER = "john got the milk there ."
CONFIG = EpisodeConfig(step_budget=4)


def run(agent: Agent, corpus: Corpus, config: EpisodeConfig = CONFIG) -> Trace:
    return fold(agent.run(QUERY, corpus, config))


def documents(encoder: DualEncoder, *parts: Sequence[str]) -> Corpus:
    """Several documents, each of the given chunks."""
    workspace = join_workspaces(
        [workspace_of_chunks(chunks, encoder.tokenizer.count(chunks)) for chunks in parts]
    )
    return Corpus(workspace, index_of(encoder, encoder.encode_chunks(workspace.texts())))


def assert_same_run(tried: TryOut, expected: Trace) -> None:
    assert tried.after.chosen == expected.chosen
    assert [step.text for step in tried.after.steps] == [step.text for step in expected.steps]
    for ours, theirs in zip(tried.after.steps, expected.steps, strict=True):
        np.testing.assert_allclose(ours.scores.q_values, theirs.scores.q_values, atol=1e-5)


def test_a_text_longer_than_is_read_says_by_how_much(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    encoder = agents["none"].encoder
    room = encoder.spec.readable_tokens
    for n_words, n_unread in ((room, 0), (room + 7, 7)):
        variant = vary(corpus_of(encoder, CHUNKS), encoder, Change(3, "mary " * n_words))
        assert (variant.n_unread, int(encoder.tokenizer.count([variant.text(3)])[0])) == (n_unread, n_words)


@pytest.mark.parametrize(("name", "changed"), [("none", 0), ("absolute", 4), ("relative10", 8)])
def test_a_changed_text_is_a_corpus_of_the_changed_texts(
    agents: dict[str, Agent], corpus_of: CorpusOf, name: str, changed: int
) -> None:
    agent = agents[name]
    corpus = corpus_of(agent.encoder, CHUNKS)
    tried = try_out(agent.encoder, run(agent, corpus), corpus, Change(changed, OTHER))
    assert tried.variant.n_embedded == 1
    assert tried.variant.texts() == [*CHUNKS[:changed], OTHER, *CHUNKS[changed + 1 :]]
    assert_same_run(tried, run(agent, corpus_of(agent.encoder, tried.variant.texts())))
    assert corpus.texts() == CHUNKS


@pytest.mark.parametrize("gone", [0, 3, 8])
def test_a_chunk_that_is_gone_leaves_no_gap(agents: dict[str, Agent], gone: int) -> None:
    agent = agents["relative20"]
    parts = [CHUNKS[:3], CHUNKS[3:4], CHUNKS[4:]]
    corpus = documents(agent.encoder, *parts)
    left = [[chunk for chunk in part if chunk != CHUNKS[gone]] for part in parts]
    tried = try_out(agent.encoder, run(agent, corpus), corpus, Change(gone, None))
    assert tried.variant.n_embedded == 0
    assert tried.variant.borders.tolist() == [0, *np.cumsum([len(part) for part in left])]
    assert tried.variant.texts() == [chunk for part in left for chunk in part]
    if all(left):
        assert_same_run(tried, run(agent, documents(agent.encoder, *left)))
    own = [None if i == gone else i - (i > gone) for i in range(9)]
    assert [tried.variant.own(i) for i in range(9)] == own
    assert [tried.variant.original(i) for i in range(8)] == [i for i in range(9) if i != gone]


def test_pairs_tell_what_changed_and_what_each_choice_was_worth_in_the_other_run(
    agents: dict[str, Agent], corpus_of: CorpusOf
) -> None:
    agent = agents["relative10"]
    corpus = corpus_of(agent.encoder, CHUNKS)
    before = run(agent, corpus)
    gone = before.chosen[1]
    tried = try_out(agent.encoder, before, corpus, Change(gone, None))
    assert tried.differs_from == 2
    first, second = tried.pairs[:2]
    assert first.same_chunk
    assert (first.before.q_value, first.before.other_q) == (first.after.other_q, first.after.q_value)
    assert (second.before.chunk_id, second.before.other_q) == (gone, None)
    assert second.after.chunk_id != gone
    assert second.after.text == CHUNKS[second.after.chunk_id]
    assert second.after.other_q == before.steps[1].scores.q_values[second.after.chunk_id]


def test_runs_of_different_lengths_are_paired_to_the_longer(
    agents: dict[str, Agent], corpus_of: CorpusOf
) -> None:
    agent = agents["none"]
    corpus = corpus_of(agent.encoder, CHUNKS)
    free = run(agent, corpus)
    # only the best chunk of the first look reaches it
    threshold = sorted(free.steps[0].scores.q_values)[-2] + 1e-6
    before = run(agent, corpus, CONFIG.with_(stop_threshold=float(threshold)))
    tried = try_out(agent.encoder, before, corpus, Change(before.chosen[0], None))
    assert tried.after.steps == ()
    assert tried.after.stopped.reason == "threshold"
    assert all(pair.after is None for pair in tried.pairs)
    assert len(tried.pairs) == len(before.steps)
    assert tried.differs_from == 1


def test_forced_and_forbidden_chunks_keep_their_texts(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    agent = agents["none"]
    corpus = corpus_of(agent.encoder, CHUNKS)
    variant = vary(corpus, agent.encoder, Change(2, None))
    config = variant.renumbered(CONFIG.with_(forced=((1, 5), (2, 2)), forbidden=(1, 2, 8)))
    assert config.forced == ((1, 4),)
    assert config.forbidden == (1, 7)
    assert variant.text(4) == CHUNKS[5]


def test_changes_that_can_not_be_are_one_sentence(agents: dict[str, Agent], corpus_of: CorpusOf) -> None:
    encoder = agents["none"].encoder
    corpus = corpus_of(encoder, CHUNKS)
    for change, words in (
        (Change(9, None), "chunk 9 does not exist"),
        (Change(-1, "text"), "chunk -1 does not exist"),
        (Change(0, " \n"), "the changed text is empty"),
        (Change(0, CHUNKS[0]), "the text is as it was"),
        (Change(0, "x" * (MAX_TEXT + 1)), "10,001 characters"),
        (Change(0, "half \ud800"), "half a character at position 6"),
    ):
        with pytest.raises(BadRequest, match=words):
            vary(corpus, encoder, change)
    with pytest.raises(BadRequest, match="the only chunk"):
        vary(corpus_of(encoder, CHUNKS[:1]), encoder, Change(0, None))
