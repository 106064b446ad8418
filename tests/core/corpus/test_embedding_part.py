"""Asking while chunks are embedded."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest, Cancelled
from core.base.events import Trace, fold
from core.base.progress import finish
from core.base.types import Workspace, workspace_of_chunks
from core.cli import main
from core.corpus.opening import LIKELIEST_CHUNKS, Embedded, Opened, OpenProgress, index_workspace
from core.encode.encoder import DualEncoder
from core.encode.spread import LEAST_STRETCH, MOST_STRETCHES, PART_CHARACTERS, ranges_of, spread
from core.encode.turns import urgent
from core.methods.bm25 import Bm25
from core.methods.qrag.agent import Agent
from core.runs.again.records import log_trace
from core.runs.again.replay import replay_run
from core.runs.export.logged import settings_of
from core.runs.log import ExperimentLog
from core.views.draw.words import percent
from core.views.report import trace_json
from core.views.trail import gold_trails

QUERY = "where did john go ?"
FILLER = "x" * 500  # one token, however long: quick to embed, and much text
TEXTS = [f"john went {i} {FILLER} ." for i in range(960)]


Asked = tuple[Opened, list[tuple[Embedded, Trace]]]
"""An opened text, and its parts as they came, each with a run over it."""


@pytest.fixture(scope="module")
def opened(agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """A text of three parts, asked each time that there was more of it."""
    runs: list[tuple[Embedded, Trace]] = []

    def ask(event: OpenProgress) -> None:
        part = event.so_far
        if part is not None and (not runs or part.mask is not runs[-1][0].mask):
            config = EpisodeConfig(step_budget=3, searched=part.ranges)
            runs.append((part, fold(agent.run(QUERY, part.corpus(), config))))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("QRAG_HOME", str(tmp_path_factory.mktemp("home")))
        yield finish(index_workspace(_workspace(agent.encoder), agent.encoder), ask), runs


@pytest.mark.parametrize("n", [0, 1, 1_000, 3 * LEAST_STRETCH * MOST_STRETCHES + 7])
def test_every_beginning_of_the_order_lies_evenly(n: int) -> None:
    order = spread(n)
    assert sorted(order.tolist()) == list(range(n))
    for share in (4, 2):
        counts = np.histogram(order[: n // share], bins=4, range=(0, max(n, 1)))[0]
        if n > 100:
            assert counts.min() > 0.8 * n / share / 4, "each quarter has its share"
    assert len(ranges_of(np.isin(np.arange(n), order[: n // 2]), n + 1)) <= MOST_STRETCHES
    known = np.array([1, 0, 1, 1, 1, 0, 1, 1], dtype=bool)
    assert ranges_of(known, 2) == ((2, 5), (6, 8)), "the longest stay"


@pytest.mark.usefixtures("home")
def test_embedding_gives_way_to_what_somebody_waits_for(agent: Agent) -> None:
    asked, answered, reported = threading.Event(), threading.Event(), []

    def hear(event: OpenProgress) -> None:
        if event.so_far is not None and not asked.is_set():
            work.enter_context(urgent())
            asked.set()
        reported.append(answered.is_set())

    with ThreadPoolExecutor(1) as pool, ExitStack() as work:
        opening = pool.submit(finish, index_workspace(_workspace(agent.encoder), agent.encoder), hear)
        assert asked.wait(60)
        n_before = len(reported)
        time.sleep(0.5)
        assert len(reported) == n_before, "nothing was embedded meanwhile"
        answered.set()
        work.close()
        opening.result(60)
    assert any(reported), "it went on"


def test_parts_grow_and_are_even(opened: Asked) -> None:
    parts = [part for part, _ in opened[1]]
    assert len(parts) >= 2
    assert parts[0].mask.sum() == LEAST_STRETCH, "the first comes at once"
    assert 0 < parts[0].share < 0.5 < parts[-1].share < 1
    for part in parts:
        eighths = part.mask.reshape(8, -1).mean(axis=1)
        assert abs(eighths - part.share).max() < 0.35
    for before, after in pairwise(parts):
        assert (before.mask < after.mask).any()
        assert (before.mask <= after.mask).all()


def test_a_run_sees_what_is_there_and_nothing_else(agent: Agent, opened: Asked) -> None:
    corpus = opened[0].corpus
    for part, trace in opened[1]:
        assert part.mask[list(trace.chosen)].all()
        for step in trace.steps:
            np.testing.assert_array_equal(np.isnan(step.scores.q_values), ~part.mask)
        again = fold(agent.run(QUERY, corpus, trace.started.config))
        assert again.chosen == trace.chosen, "the vectors that come later change nothing"
    whole = fold(agent.run(QUERY, corpus, EpisodeConfig(step_budget=3)))
    (part, trace), worth = opened[1][0], whole.steps[0].scores.q_values
    np.testing.assert_allclose(trace.steps[0].scores.q_values[part.mask], worth[part.mask], atol=1e-4)
    missing, there = int(np.argmin(part.mask)), trace.chosen[1]
    lost, found = gold_trails(trace, [missing, there])
    assert set(lost.standings) == {None}
    assert found.standings[1].rank == 2


def test_the_log_and_json_say_that_it_was_a_part(agent: Agent, opened: Asked, tmp_path: Path) -> None:
    part, trace = opened[1][0]
    values = json.loads(json.dumps(trace_json(trace, timings={}, full=True), allow_nan=False))
    assert values["searched"] == pytest.approx(part.share, abs=1e-6)
    assert [q is None for q in values["steps"][0]["q_values"]] == (~part.mask).tolist()
    assert EpisodeConfig.from_json(values["config"]) == trace.started.config
    with ExperimentLog.open(tmp_path / "log.duckdb") as log:
        run_id = log_trace(log, trace, part.workspace, agent.encoder)
        logged = log.get(run_id)
        assert settings_of(logged)["Searched"].startswith(f"{100 * part.share:.0f} %")
        assert replay_run(logged, log.documents(run_id), agent.encoder).report.holds


def test_bounds(agent: Agent, opened: Asked) -> None:
    corpus, part = opened[0].corpus, opened[1][0][0]
    missing = int(np.argmin(part.mask))
    refused = {
        "not embedded yet": EpisodeConfig(searched=part.ranges, forced=((1, missing),)),
        "must ascend": EpisodeConfig(searched=((5, 9), (2, 4))),
        "hold a chunk each": EpisodeConfig(searched=((5, 5),)),
        "between 0 and 960": EpisodeConfig(searched=((0, 961),)),
        "above 3, the number": EpisodeConfig(searched=((0, 3),)),
    }
    for words, config in refused.items():
        with pytest.raises(BadRequest, match=words):
            fold(agent.run(QUERY, corpus, config))
    with pytest.raises(BadRequest, match="only an agent"):
        fold(Bm25().retrieve(QUERY, corpus, EpisodeConfig(searched=part.ranges)))


@pytest.mark.usefixtures("home")
def test_the_likeliest_by_words_are_embedded_first(agent: Agent) -> None:
    far = [700 + i for i in range(3)]
    texts = [f"mary took the apple {text}" if i in far else text for i, text in enumerate(TEXTS)]
    workspace = workspace_of_chunks(texts, agent.encoder.tokenizer.count(texts))
    parts: list[Embedded] = []
    seen: list[np.ndarray] = []

    def ask(event: OpenProgress) -> None:
        if (part := event.so_far) is not None and not parts:
            likeliest = part.with_likeliest("who took the apple ?")
            parts.extend((part, likeliest))
            seen.append(likeliest.vectors[likeliest.mask].copy())

    whole = finish(index_workspace(workspace, agent.encoder), ask).corpus
    part, likeliest = parts
    assert not part.mask[far].any()
    assert np.flatnonzero(likeliest.mask & ~part.mask).tolist() == far, "those that share a word, no others"
    np.testing.assert_allclose(seen[0], whole.index.vectors[likeliest.mask].numpy(), atol=1e-3)
    config = EpisodeConfig(step_budget=3, searched=likeliest.ranges)
    assert fold(agent.run("who took the apple ?", whole, config)).started.config.n_searched(len(texts)) == 35

    assert part.with_likeliest("zebra ?").ranges == part.ranges
    hurried = part.with_likeliest("john ?", seconds=0)
    assert 0 < hurried.mask.sum() - part.mask.sum() < LIKELIEST_CHUNKS, (
        "some in any case, then the time is over"
    )
    everything = Embedded(workspace, agent.encoder, part.vectors, np.ones(len(texts), bool))
    assert everything.ranges == (), "a run over all is bound to nothing"


@pytest.mark.usefixtures("home")
def test_cancel_keeps_the_part_and_the_next_opening_goes_on(agent: Agent) -> None:
    encoder, workspace = agent.encoder, _workspace(agent.encoder)
    parts: list[Embedded] = []

    def cancel_with_a_part(event: OpenProgress) -> None:
        if event.so_far is not None:
            parts.append(event.so_far)
            raise Cancelled

    with pytest.raises(Cancelled):
        finish(index_workspace(workspace, encoder), cancel_with_a_part)
    n_done = int(parts[-1].mask.sum())
    opened = finish(index_workspace(workspace, encoder))
    assert opened.n_embedded <= len(TEXTS) - n_done
    assert sum(map(len, TEXTS)) > 2 * PART_CHARACTERS


@pytest.mark.usefixtures("home")
def test_trace_within_seconds(
    tiny_checkpoints: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is there is asked, and its share is told."""
    (tmp_path / "chunks.json").write_text(json.dumps(TEXTS))
    command = ["trace", "--chunks", str(tmp_path / "chunks.json"), "--query", QUERY, "--json"]
    command += ["--checkpoint", str(tiny_checkpoints["relative10"]), "--device", "cpu"]
    assert main([*command, "--within", "0"]) == 0
    shown = capsys.readouterr()
    share = json.loads(shown.out)["searched"]
    assert 0 < share < 1
    assert f"searched {percent(share)} of the chunks, among them those that share" in shown.err
    assert main([*command[:1], "--episodes", "none.jsonl", "--json", "--within", "1"]) == 2


def _workspace(encoder: DualEncoder) -> Workspace:
    return workspace_of_chunks(TEXTS, encoder.tokenizer.count(TEXTS))
