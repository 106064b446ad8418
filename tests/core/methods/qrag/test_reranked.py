"""A reranker's part of Q: only the best chunks have it, it is the same in every step."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from core.base.config import EpisodeConfig
from core.base.errors import BadCheckpoint, Cancelled
from core.base.events import fold
from core.corpus.index import Corpus
from core.encode.checkpoint import CheckpointSpec, read_spec, write_spec
from core.encode.encoder import DualEncoder
from core.encode.engine import ENGINE_VARIABLE
from core.encode.reranker import (
    CHUNK_TOKENS,
    HEAD_FILE,
    LARGEST_ODDS,
    MOST_CHOSEN,
    QUESTION_TOKENS,
    RERANKER_FOLDER,
    STATE_WINDOW,
    WINDOW,
    Reranker,
    pair,
)
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode, Reranked
from core.methods.qrag.reranked import parts_beside, read_again, read_best, rerank_parts
from core.views.figures import parts_figure
from tests.core.conftest import CorpusOf
from tests.reranker import add_reranker

CHUNKS = [
    f"The {thing} was left in the {place}."
    for thing, place in zip(["milk", "apple", "football", "lamp", "letter"], "abcde", strict=True)
]
QUERY = "Where is the milk?"


def changed(folder: Path, to: Path, changes: dict[str, object]) -> Path:
    made = Path(shutil.copytree(folder, to))
    write_spec(made, read_spec(made).model_copy(update=changes))
    return made


@pytest.fixture
def served(folder: Path, tmp_path: Path) -> Path:
    """The same agent with vectors in half precision, as ours have them, so that either engine may serve it."""
    return changed(folder, tmp_path / "served", {"vectors": "float16"})


@pytest.fixture(scope="module")
def folder(tiny_checkpoints: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Path(shutil.copytree(tiny_checkpoints["none"], tmp_path_factory.mktemp("reranked") / "agent"))
    add_reranker(made)
    return made


@pytest.fixture(scope="module")
def encoder(folder: Path) -> DualEncoder:
    return DualEncoder(folder, "cpu")


@pytest.fixture(scope="module")
def corpus(encoder: DualEncoder, corpus_of: CorpusOf) -> Corpus:
    return corpus_of(encoder, CHUNKS)


def test_the_best_chunks_are_read_again_and_all_steps_agree(
    encoder: DualEncoder, corpus: Corpus, tiny_checkpoints: dict[str, Path]
) -> None:
    plain = DualEncoder(tiny_checkpoints["none"], "cpu")
    plain.spec = plain.spec.model_copy(update={"reads_choices": False})
    config = EpisodeConfig(step_budget=4, review_threshold=-10.0)
    trace, without = (fold(Agent(one).run(QUERY, corpus, config)) for one in (encoder, plain))
    best = np.argsort(-without.steps[0].scores.q_values, kind="stable")[:3]
    wanted = np.zeros(len(CHUNKS), np.float32)
    odds = encoder.reranker.log_odds(QUERY, [CHUNKS[i] for i in best])
    wanted[best] = 0.5 * (odds - odds.min())
    assert len({round(float(part), 6) for part in wanted[best]}) > 1, "they are told apart"
    for step in trace.steps:
        np.testing.assert_allclose(step.scores.q_values - without.steps[0].scores.q_values, wanted, atol=1e-5)
        assert step.reranked_q == pytest.approx(float(wanted[step.chunk_id]), abs=1e-6)
        assert step.content_q + step.reranked_q == pytest.approx(step.q_value, abs=1e-5)
    worth = [step.q_value for step in trace.steps]
    assert trace.stopped.review == pytest.approx(worth, abs=1e-5), "a review counts it too"
    assert [bar["name"] for bar in parts_figure(trace)["data"]] == ["content", "reranker"]
    assert encoder.fingerprint != plain.fingerprint
    assert encoder.vector_fingerprint == plain.vector_fingerprint, "chunks are embedded as before"


@pytest.mark.parametrize(
    ("belonging", "wanted"),
    [
        ((), [16, 20, 24, 28]),
        ((14,), [20, 24, 28, 30]),
        ((14, 21), [20, 28, 30, 30]),
    ],
)
def test_a_step_reads_four_more_and_goes_on_as_long_as_that_changes_what_leads(
    belonging: tuple[int, ...], wanted: list[int]
) -> None:
    """Twelve, then four at a time, of thirty chunks of falling Q."""
    odds = np.full(30, -3, np.float32)
    odds[list(belonging)] = 5
    asked: list[int] = []

    def read(chunk_ids: np.ndarray) -> np.ndarray:
        asked.extend(chunk_ids.tolist())
        return odds[chunk_ids - 100]

    spec = CheckpointSpec(name="x", trained=True, rerank_weight=0.3, rerank_pool=30, rerank_first=12)
    pool, q_values = 100 + np.arange(30), 1 - np.arange(30, dtype=np.float32) / 100
    of_pool = pool, q_values, np.array([0, 200])
    reranked = None
    for n_leading, n_read in enumerate(wanted, start=1):
        reranked = read_best(read, *of_pool, spec, n_leading, reranked)
        assert asked == reranked.chunk_ids.tolist() == pool[:n_read].tolist(), "each is read once"
        np.testing.assert_allclose(reranked.parts, rerank_parts(odds[:n_read], 0.3))
    assert reranked is not None
    back = read_best(read, *of_pool, spec, 1, reranked)
    assert len(back.chunk_ids) == wanted[0], "what a step reads hangs on no step behind it"
    whole = read_best(read, *of_pool, spec.model_copy(update={"rerank_first": None}), 1)
    assert len(whole.chunk_ids) == 30
    few = read_best(read, pool[:5], q_values[:5], np.array([0, 200]), spec, 4)
    assert few.chunk_ids.tolist() == pool[:5].tolist()


def test_a_forbidden_chunk_does_not_lead() -> None:
    """The best of the others changes with what is read behind the first twelve."""
    odds = np.full(30, -3, np.float32)
    odds[0], odds[13] = 5, -1
    of_pool = 100 + np.arange(30), 1 - np.arange(30, dtype=np.float32) / 100, np.array([0, 200])
    spec = CheckpointSpec(name="x", trained=True, rerank_weight=0.3, rerank_pool=30, rerank_first=12)
    read = lambda ids: odds[ids - 100]  # noqa: E731
    assert len(read_best(read, *of_pool, spec, 1).chunk_ids) == 16
    assert len(read_best(read, *of_pool, spec, 1, forbidden=[100]).chunk_ids) == 20


def test_chunks_next_to_one_that_belongs_get_a_share() -> None:
    ids, parts = np.array([7, 3, 8, 6, 20]), np.array([3, 1, 0, 2, 5], np.float32)
    assert parts_beside(ids, parts, np.array([0, 30])).tolist() == [2, 0, 3, 3, 0]
    assert parts_beside(ids, parts, np.array([0, 7, 30])).tolist() == [0, 0, 3, 0, 0], "another document"
    settings = {"rerank_weight": 0.5, "rerank_pool": 5, "rerank_beside": 0.25, "step_budget": 2}
    spec = CheckpointSpec(name="x", trained=True, **settings)
    odds = dict(zip(ids.tolist(), [2.0, -2, -4, 0, 6], strict=True))
    read = lambda asked: np.array([odds[i] for i in asked.tolist()], np.float32)  # noqa: E731
    reranked = read_best(read, ids, np.zeros(5, np.float32), np.array([0, 30]), spec, 2)
    assert reranked.parts.tolist() == [3 + 0.25 * 2, 1, 0.25 * 3, 2 + 0.25 * 3, 5]


def test_a_question_is_read_again_once_and_says_how_far_it_is(folder: Path, corpus: Corpus) -> None:
    agent, config = Agent(DualEncoder(folder, "cpu")), EpisodeConfig(step_budget=2)
    told: list[tuple[int, int]] = []

    def ask(config: EpisodeConfig, query: str = QUERY) -> list[tuple[int, int]]:
        told.clear()
        fold(agent.run(query, corpus, config, hears=lambda done, total: told.append((done, total))))
        return told

    first = ask(config)
    assert (first[0], first[-1]) == ((0, agent.spec.rerank_pool), (agent.spec.rerank_pool,) * 2)
    assert not ask(config.with_(step_budget=4, temperature=0.5))
    assert ask(config, "Where is the lamp?")
    assert ask(config.with_(searched=((0, 2),), step_budget=1))

    def cancel(*_: int) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        fold(agent.run("Who has it?", corpus, config, hears=cancel))


def test_what_was_chosen_is_read_before_each_chunk(folder: Path, tmp_path: Path, corpus_of: CorpusOf) -> None:
    changes = {"reads_choices": True, "state_order": "choice"}
    encoder = DualEncoder(changed(folder, tmp_path / "reading", changes), "cpu")
    agent, corpus, reranker = Agent(encoder), corpus_of(encoder, CHUNKS), encoder.reranker
    asked = Episode(QUERY, corpus, EpisodeConfig(step_budget=3))
    trace = fold(agent.run(QUERY, corpus, asked.config))
    for step in trace.steps:
        chosen = trace.chosen[: step.step - 1]
        texts = [CHUNKS[i] for i in chosen]
        (state,) = encoder.encode_states([encoder.state_tokens(QUERY, texts)])
        plain = corpus.index.q_values(state, np.zeros(len(corpus)))
        pool = [i for i in np.argsort(-plain, kind="stable").tolist() if i not in chosen][:3]
        odds = reranker.log_odds(QUERY, [CHUNKS[i] for i in pool], texts)
        wanted = np.zeros(len(corpus), np.float32)
        wanted[pool] = 0.5 * (odds - odds.min())
        np.testing.assert_allclose(step.scores.q_values - plain, wanted, atol=1e-5)
    beside, alone = (reranker.log_odds(QUERY, CHUNKS[:1], chosen)[0] for chosen in (CHUNKS[1:2], ()))
    assert abs(beside - alone) > 1e-6, "what was chosen tells"
    review = fold(agent.run(QUERY, corpus, asked.config.with_(review_threshold=-10.0))).stopped.review
    others = agent.look([(asked, trace.chosen[:2])])[0].scores.q_values
    assert review[2] == pytest.approx(float(others[trace.chosen[2]]), abs=1e-5)


def test_what_leads_is_read_once_more_behind_the_chosen_chunks(
    folder: Path, tmp_path: Path, corpus_of: CorpusOf
) -> None:
    encoder = DualEncoder(changed(folder, tmp_path / "again", {"rerank_pool": 5, "rerank_again": 5}), "cpu")
    corpus, reranker, told = corpus_of(encoder, CHUNKS), encoder.reranker, []
    asked = Episode(QUERY, corpus, EpisodeConfig(step_budget=3), hears=lambda *read: told.append(read))
    agent = Agent(encoder)
    trace = fold(event for _, event in agent.run_batch([asked]))
    odds = reranker.log_odds(QUERY, CHUNKS)
    first = trace.steps[0].scores.q_values
    for step in trace.steps[1:]:
        chosen = trace.chosen[: step.step - 1]
        change = step.scores.q_values - first
        (read,) = np.nonzero(np.abs(change) > 1e-6)
        assert step.chunk_id in read, "what is chosen was read behind the others"
        behind = reranker.log_odds(QUERY, [CHUNKS[i] for i in read], [CHUNKS[i] for i in chosen])
        np.testing.assert_allclose(change[read], 0.5 * (behind - odds[read]), atol=1e-5)
        assert step.content_q + step.reranked_q == pytest.approx(step.q_value, abs=1e-5)
    n_told = len(told)
    fold(agent.run(QUERY, corpus, asked.config, hears=asked.hears))
    assert len(told) == n_told, "nothing is read a third time"
    assert encoder.max_state_chunks == min(MOST_CHOSEN, (encoder.max_positions - 1) // 2 - 1)
    with pytest.raises(ValidationError, match="reads anew at every step anyway"):
        CheckpointSpec(name="x", trained=True, rerank_again=4)


def test_those_that_may_be_chosen_and_lead_are_read_again() -> None:
    odds = np.array([4.0, 3, 2, 1, 0], np.float32)
    parts = rerank_parts(odds, 0.5)
    spec = CheckpointSpec(name="x", trained=True, rerank_weight=0.5, reads_choices=False, rerank_again=2)
    before = Reranked(np.arange(5) + 100, parts, odds)
    after = read_again(lambda ids: odds[ids - 100] - 3, before, np.zeros(5, np.float32), odds != 4, spec)
    np.testing.assert_allclose(after.parts - parts, [0, -1.5, -1.5, 0, 0])
    nothing = read_again(lambda ids: odds[ids - 100], before, np.zeros(5, np.float32), odds > 4, spec)
    np.testing.assert_array_equal(nothing.parts, parts)


def test_pairs_are_cut_to_the_window_and_chosen_chunks_share_what_is_left(encoder: DualEncoder) -> None:
    tokenizer = encoder.tokenizer
    query, chunk, chosen = [5] * 90, [7] * 300, [[8] * 400, [9] * 10, [8] * 400]
    tokens, n_first = pair(tokenizer, query, chunk, STATE_WINDOW, chosen)
    assert len(tokens) <= STATE_WINDOW
    assert tokens.count(5) == QUESTION_TOKENS
    assert tokens[n_first:] == [*chunk[:CHUNK_TOKENS], tokenizer.sep_id]
    assert tokens.count(9) == 10
    assert tokens.count(8) == 2 * ((STATE_WINDOW - (QUESTION_TOKENS + 2) - CHUNK_TOKENS - 4) // 3)
    assert pair(tokenizer, query, chunk)[0] == pair(tokenizer, query, chunk, WINDOW, ())[0]
    tokens, n_question = pair(tokenizer, query, chunk, window=96)
    assert (len(tokens), n_question) == (96, QUESTION_TOKENS + 2)
    for n in (MOST_CHOSEN, 300, 600):
        tokens, n_first = pair(tokenizer, query, chunk, STATE_WINDOW, [[8] * 9] * n)
        assert n_first < len(tokens) <= STATE_WINDOW
    assert pair(tokenizer, query, chunk, STATE_WINDOW, [[8] * 9] * MOST_CHOSEN)[0].count(8) == MOST_CHOSEN
    assert pair(tokenizer, [7], [8]) == ([tokenizer.cls_id, 7, tokenizer.sep_id, 8, tokenizer.sep_id], 3)


def test_a_text_has_the_same_part_beside_others_and_alone(encoder: DualEncoder) -> None:
    reranker = encoder.reranker
    together = reranker.log_odds(QUERY, [*CHUNKS, "word " * 900])
    alone = [float(reranker.log_odds(QUERY, [text])[0]) for text in CHUNKS]
    np.testing.assert_allclose(together[:-1], alone, atol=1e-5)
    assert (np.abs(together) <= LARGEST_ODDS).all()
    nothing = reranker.log_odds(QUERY, [])
    assert nothing.shape == rerank_parts(nothing, 0.5).shape == (0,)


@pytest.mark.campaign
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.bfloat16, 0.1)])
def test_both_engines_read_alike(
    served: Path, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, bound: float
) -> None:
    """Several batches under way in several threads; the base reads segments."""
    spec, tokenizer = read_spec(served), DualEncoder(served, "cpu").tokenizer
    readers = []
    for engine in ("torch", "openvino"):
        monkeypatch.setenv(ENGINE_VARIABLE, engine)
        readers.append(Reranker(served, spec, tokenizer, torch.device("cpu"), dtype))
    texts = [*CHUNKS, *("The milk is there. " * n for n in range(1, 60))]
    ours, theirs = (reader.log_odds(QUERY, texts) for reader in readers)
    if dtype == torch.float32:
        assert np.ptp(ours) > 100 * bound, "texts are told apart"
    np.testing.assert_allclose(theirs, ours, atol=bound)
    with ThreadPoolExecutor(4) as threads:
        for odds in threads.map(lambda _: readers[1].log_odds(QUERY, texts), range(8)):
            np.testing.assert_array_equal(odds, theirs)


def test_a_reranker_that_can_t_be_used_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    head = broken / RERANKER_FOLDER / HEAD_FILE
    head.write_bytes(b"nothing")
    with pytest.raises(
        BadCheckpoint, match=r"of the reranker of checkpoint .* is no readable safetensors file"
    ):
        _ = DualEncoder(broken, "cpu").reranker
    head.unlink()
    with pytest.raises(BadCheckpoint, match=r"head\.safetensors is missing in the reranker of checkpoint"):
        DualEncoder(broken, "cpu")
    with pytest.raises(ValidationError, match="read no positions"):
        CheckpointSpec(name="x", trained=True, rerank_weight=0.2, position_kind="relative")
