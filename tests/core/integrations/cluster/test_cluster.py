"""Shards against one index: the same Q, best chunks, tiles, counts and events."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.config import EpisodeConfig
from core.base.errors import BadDocument, BadRequest
from core.base.events import Event, StepTaken, Stopped, Trace, fold
from core.base.rows import EpisodeRow, read_rows
from core.base.types import join_workspaces, workspace_of_chunks
from core.cli import main
from core.cli.evaluate import BatchEvaluator, EpisodeEvaluation
from core.corpus.index import ChunkIndex, Corpus
from core.corpus.opening import index_of
from core.corpus.tiles import best_chunks
from core.encode.checkpoint import CheckpointSpec
from core.encode.encoder import DualEncoder, load_encoder
from core.integrations.cluster import workers
from core.integrations.cluster.agent import FEWEST, ShardedAgent
from core.integrations.cluster.embedding import CorpusMade, _line_ranges, embed_corpus
from core.integrations.cluster.parts import (
    CorpusFile,
    CorpusParts,
    CorpusPlan,
    EmbeddedCorpus,
    PartDocument,
    read_plan,
    write_part,
)
from core.integrations.cluster.sharded import LocalShards, ShardedIndex, shard_settings
from core.integrations.cluster.workers import LOCAL, RayShards, joined_cluster, n_cores, opened_index
from core.lab.evaluate.documents import DocumentRow, read_document_rows
from core.lab.evaluate.run import BATCH, Setting
from core.lab.tasks.narrative import generate_narrative
from core.methods.qrag.agent import Agent
from core.methods.qrag.retriever import AgentRetriever
from tests.conftest import CAMPAIGN

if TYPE_CHECKING:
    from ray._private.node import Node
    from ray.cluster_utils import Cluster

SPEC = CheckpointSpec(
    name="vectors", trained=False, position_kind="relative", position_resolution=0.25, halves=2
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Of two nodes with a core each: the one that --cluster local starts, and another."""
    from ray._private.worker import global_worker
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        patch.setenv("RAY_health_check_period_ms", "500")  # a lost node is missed after 3 s, not 17
        with joined_cluster(LOCAL):
            nodes = Cluster()
            nodes.head_node, nodes.redis_address = global_worker.node, None
            add_node(nodes)
            yield nodes
            for node in [*nodes.worker_nodes]:
                nodes.remove_node(node)


def add_node(cluster: Cluster) -> Node:
    """One more node with a core, once it can be used."""
    n_cores_before = n_cores()
    node = cluster.add_node(wait=False)
    while n_cores() == n_cores_before:
        time.sleep(0.05)
    return node


def lose(cluster: Cluster, node: Node, processes: Sequence[int]) -> None:
    """Kills a node and waits until one of the workers is dead: that of the node outlives it for a moment, and
    answers.
    """
    cluster.remove_node(node, allow_graceful=False)
    while all(map(lives, processes)):
        time.sleep(0.05)


def lives(process: int) -> bool:
    """Whether it still works: not one that is dead and that nobody has waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def write_corpus(folder: Path, parts: Sequence[np.ndarray], checkpoint: str = "vectors") -> CorpusParts:
    files = tuple((CorpusFile(f"{number}.txt", len(part)),) for number, part in enumerate(parts))
    CorpusPlan(checkpoint, "vectors", parts[0].shape[1], files).save(folder)
    for number, part in enumerate(parts):
        texts = [f"chunk {row} of part {number}" for row in range(len(part))]
        write_part(folder, number, [PartDocument(f"{number}.txt", len(part))], texts, part)
    return CorpusParts(folder)


def local_index(parts: CorpusParts, spec: CheckpointSpec, n_shards: int) -> ShardedIndex:
    settings = shard_settings(parts, spec, n_shards)
    return ShardedIndex(parts, settings, LocalShards(settings))


def test_no_cluster_at_an_address_is_said(tmp_path: Path) -> None:
    """First in this file: later this process has joined a cluster."""
    parts = write_corpus(tmp_path, [np.eye(4, dtype=np.float16)])
    with (
        pytest.raises(BadRequest, match="no Ray cluster answers at 'nowhere'"),
        opened_index(parts, SPEC, "nowhere"),
    ):
        pass


@given(st.integers(0, 2**32 - 1), st.sampled_from([None, 0.25, 1.0]), st.integers(1, 5))
def test_shards_tell_what_one_index_tells(
    tmp_path_factory: pytest.TempPathFactory, seed: int, grid: float | None, n_shards: int
) -> None:
    rng, spec = np.random.default_rng(seed), SPEC.model_copy(update={"position_resolution": grid})
    sizes = rng.integers(0, 30, size=6)
    sizes[rng.integers(6)] += 1
    vectors = rng.integers(-3, 4, size=(sizes.sum(), 8)).astype(np.float16)  # small whole numbers: many ties
    parts = write_corpus(tmp_path_factory.mktemp("corpus"), np.split(vectors, np.cumsum(sizes)[:-1]))
    sharded = local_index(parts, spec, n_shards)
    whole = ChunkIndex(vectors, halves=spec.halves, theta=spec.rope_theta, resolution=grid)
    n = len(vectors)
    state, positions = rng.standard_normal(8).astype(np.float32), np.sort(rng.uniform(0, 9, n))
    q_values = whole.q_values(state, positions)
    np.testing.assert_allclose(sharded.q_values(state, positions), q_values, atol=1e-5)
    np.testing.assert_allclose(sharded.norms, whole.norms, rtol=1e-6)
    chunk_id = int(rng.integers(n))
    assert sharded.q_value(state, chunk_id, 2.3) == whole.q_value(state, chunk_id, 2.3)

    words = rng.random(n, np.float32)
    added = rng.choice(n, size=min(3, n), replace=False)
    left_out = rng.choice(n, size=int(rng.integers(n)), replace=False)
    look = sharded.look(
        state,
        positions,
        words=sharded.keep(words),
        added=(added, np.ones(len(added), np.float32)),
        left_out=left_out.tolist(),
    )
    seen = sharded.q_values(state, positions) + words
    seen[added] += np.float32(1)
    seen[left_out] = -np.inf
    ids, values = sharded.best(look, 5)
    wanted = [i for i in best_chunks(seen, 0, 5).tolist() if np.isfinite(seen[i])]
    assert ids[: len(wanted)].tolist() == wanted
    assert values.tolist() == seen[ids].tolist()
    assert {*np.flatnonzero(seen >= seen.max() - 1e-6)} <= {*ids}


def test_top_k_is_by_products_without_positions(tmp_path: Path) -> None:
    parts = write_corpus(tmp_path, [np.eye(4, dtype=np.float16), 2 * np.eye(4, dtype=np.float16)])
    ids, products = local_index(parts, SPEC, 2).top_k(np.array([0, 0, 1, 0.5], np.float32), 3)
    assert ids.tolist() == [6, 2, 7]
    assert products.tolist() == [2, 1, 1]


QUESTIONS = {"narrative": "Where is the lantern?", "general": "Who carried the lantern to the harbour?"}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of three documents, told anew."""
    folder = tmp_path_factory.mktemp("story")
    sentences = generate_narrative(1_000).text.split("\n")
    for number, part in enumerate(np.array_split(np.array(sentences, dtype=object), 3)):
        (folder / f"{number}.txt").write_text("\n".join(part), encoding="utf-8")
    return folder


@pytest.fixture(scope="module", params=QUESTIONS if CAMPAIGN else ["narrative"])
def told(
    request: pytest.FixtureRequest, story: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[DualEncoder, Path]:
    """A shipped agent's encoder, and the story under it in three parts."""
    folder = tmp_path_factory.mktemp("corpus")
    embed_corpus(story, folder, request.param, "cpu", part_bytes=1)
    return load_encoder(request.param, "cpu"), folder


def inline(encoder: DualEncoder, parts: CorpusParts) -> Corpus:
    """The same chunks and vectors in memory, documents and all."""
    told = [list(part.texts()) for part in parts.parts]
    workspace = join_workspaces([workspace_of_chunks(texts, np.ones(len(texts))) for texts in told])
    return Corpus(workspace, index_of(encoder, np.concatenate([part.vectors for part in parts.parts])))


def run(agent: Agent, corpus: Corpus | EmbeddedCorpus, query: str, budget: int = 4) -> Trace:
    config = agent.spec.episode_config(step_budget=budget, stop_threshold=None)
    return fold(AgentRetriever(agent).retrieve(query, corpus, config))


def assert_same_events(ours: Trace, theirs: Trace) -> None:
    """All that events say, but for clocks and the last bits of products."""

    def said(event: Event) -> object:
        if isinstance(event, StepTaken | Stopped):
            event = replace(event, milliseconds=0.0, q_value=None)  # type: ignore[arg-type]
        if isinstance(event, Stopped):
            return replace(event, review=())
        if isinstance(event, StepTaken):
            return replace(event, state_value=0.0, content_q=None, words_q=None)
        return event

    assert [said(step) for step in ours.steps] == [said(step) for step in theirs.steps]
    assert ours.started == theirs.started
    assert ours.stopped is not None
    assert theirs.stopped is not None
    assert said(ours.stopped) == said(theirs.stopped)
    for a, b in zip((*ours.steps, ours.stopped), (*theirs.steps, theirs.stopped), strict=True):
        for name in ("q_value", "state_value", "content_q", "words_q", "review"):
            first, second = getattr(a, name, None), getattr(b, name, None)
            assert (first is None) == (second is None), name
            if first is not None:
                assert first == pytest.approx(second, abs=1e-5), name


@pytest.mark.parametrize("budget", [1, 4])
def test_a_run_over_shards_is_the_run_over_one_index(told: tuple[DualEncoder, Path], budget: int) -> None:
    encoder, folder = told
    parts, query = CorpusParts(folder), QUESTIONS[encoder.spec.name]
    expected = run(Agent(encoder), inline(encoder, parts), query, budget)
    corpus = EmbeddedCorpus(parts, local_index(parts, encoder.spec, 3))
    assert_same_events(run(Agent(encoder), corpus, query, budget), expected)
    few = run(ShardedAgent(encoder), corpus, query, budget)
    assert_same_events(few, expected)
    scores = few.scores_at(1)
    n_told = np.isfinite(scores.q_values).sum()
    assert FEWEST <= n_told < max(len(corpus), 3 * FEWEST + 1)  # three shards know all of a short corpus


@pytest.mark.campaign
@pytest.mark.parametrize("told", ["narrative"], indirect=True)
def test_a_run_over_three_nodes_survives_a_worker_and_a_node(
    told: tuple[DualEncoder, Path], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard on each node. One worker is killed, and a node removed and another put in its place; then one is
    removed for good, and the run ends with a sentence.
    """
    encoder, folder = told
    parts, query = CorpusParts(folder), QUESTIONS[encoder.spec.name]
    expected = run(Agent(encoder), inline(encoder, parts), query)
    n_cores_before = n_cores()
    node = add_node(cluster)
    settings = shard_settings(parts, encoder.spec, 3)
    with closing(RayShards(settings)) as shards:
        corpus = EmbeddedCorpus(parts, ShardedIndex(parts, settings, shards))
        agent, asked = ShardedAgent(encoder), [()] * 3
        config = agent.spec.episode_config(step_budget=4, stop_threshold=None)
        first = shards.ask_all("process", asked)
        events = []
        for event in AgentRetriever(agent).retrieve(query, corpus, config):
            match event:
                case StepTaken(step=1):
                    os.kill(first[0], signal.SIGKILL)
                case StepTaken(step=2):
                    lose(cluster, node, shards.ask_all("process", asked))
                    node = cluster.add_node(wait=False)
            events.append(event)
        assert_same_events(fold(events), expected)
        last = shards.ask_all("process", asked)
        assert len({*first} & {*last}) == 1
        lose(cluster, node, last)
        assert n_cores() == n_cores_before
        monkeypatch.setattr(workers, "ANSWER_SECONDS", 3.0)
        with pytest.raises(BadRequest, match=r"^shard \d of 3, parts .* not all chunks can be searched"):
            run(agent, corpus, query)


@pytest.mark.campaign
@pytest.mark.usefixtures("cluster")
def test_a_shard_that_is_gone_is_said(tmp_path: Path) -> None:
    parts = write_corpus(tmp_path, [np.eye(4, dtype=np.float16)] * 3)
    settings = shard_settings(parts, SPEC, 1)
    with closing(RayShards(settings)) as shards:
        shutil.rmtree(tmp_path / "000002")
        with pytest.raises(
            BadDocument, match=r"^part 2 of the corpus, .* so not all chunks can be searched; .*$"
        ):
            ShardedIndex(parts, settings, shards).q_values(np.ones(4, np.float32), np.zeros(12))
    with pytest.raises(BadDocument, match="1 of the 3 parts"):
        CorpusParts(tmp_path)


def test_a_damaged_part_is_said(tmp_path: Path) -> None:
    index = local_index(write_corpus(tmp_path, [np.eye(4, dtype=np.float16)] * 2), SPEC, 1)
    path = tmp_path / "000001" / "vectors.npy"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(BadDocument, match="part 1 of the corpus"):
        index.norms  # noqa: B018


@pytest.mark.campaign
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("told", ["general"], indirect=True)
def test_the_command_asks_workers_and_says_the_same(
    told: tuple[DualEncoder, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    encoder, folder = told
    printed = []
    for flags in ([], ["--cluster", LOCAL], ["--full"]):
        query = QUESTIONS[encoder.spec.name]
        assert (
            main(["trace", "--corpus", str(folder), "--query", query, "--device", "cpu", "--json", *flags])
            == 0
        )
        values = json.loads(capsys.readouterr().out)
        assert {*values["documents"].values()} <= {"0.txt", "1.txt", "2.txt"}
        printed.append(
            ([step["chunk_id"] for step in values["steps"]], values["answer"]["text"], values["completeness"])
        )
    assert printed[0][0]
    assert printed[0] == printed[1] == printed[2]


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A folder of six documents, one of them beside the others and one that nobody can read."""
    folder = tmp_path / "many"
    (folder / "below").mkdir(parents=True)
    for number in range(4):
        (folder / f"{number}.txt").write_text(f"Ben took {number} lamps. Ada went home.", encoding="utf-8")
    (folder / "below" / "page.html").write_text(
        "<nav>Home</nav><h1>Boats</h1><p>The ferry left at noon.</p>", encoding="utf-8"
    )
    (folder / "5.txt").write_bytes(b"")
    (folder / ".hidden").write_text("not a document", encoding="utf-8")
    return folder


def held(folder: Path) -> list[tuple[list[tuple[str, int]], list[str], np.ndarray]]:
    return [
        ([(one.title, one.n_chunks) for one in part.documents], list(part.texts()), np.array(part.vectors))
        for part in CorpusParts(folder).parts
        if part.n_chunks
    ]


def assert_same_corpus(ours: Path, theirs: Path) -> None:
    for (documents, texts, vectors), (others, other_texts, other_vectors) in zip(
        held(ours), held(theirs), strict=True
    ):
        assert (documents, texts) == (others, other_texts)
        np.testing.assert_allclose(vectors, other_vectors, atol=1e-3)  # half precision


@pytest.fixture
def tiny(tiny_checkpoints: dict[str, Path]) -> str:
    return str(next(iter(tiny_checkpoints.values())))


def embed(source: Path, out: Path, checkpoint: str, cluster: str | None = None) -> CorpusMade:
    return embed_corpus(source, out, checkpoint, "cpu", cluster, part_bytes=1)


def test_documents_become_parts(many: Path, tmp_path: Path, tiny: str) -> None:
    made = embed(many, tmp_path / "out", tiny)
    assert (made.n_parts, made.n_parts_before, made.n_documents) == (6, 0, 5)
    assert len(made.left_out) == 1
    assert made.left_out[0].startswith("5.txt: ")
    assert made.told == ("below/page.html: Menus and side matter left out: 1 word; they can be kept.",)
    parts = CorpusParts(tmp_path / "out")
    corpus = EmbeddedCorpus(parts, local_index(parts, SPEC, 2))
    assert corpus.titles == ["0.txt", "1.txt", "2.txt", "3.txt", "below/page.html"]
    assert [corpus.text(i) for i in range(len(corpus))] == corpus.texts()
    assert corpus.title(int(corpus.borders[2])) == "2.txt"
    encoder = load_encoder(tiny, "cpu")
    stored = np.concatenate([part.vectors for part in parts.parts if part.n_chunks])
    np.testing.assert_allclose(stored, encoder.encode_chunks(corpus.texts()), atol=1e-3)


def test_rows_of_parquet_are_documents(tmp_path: Path, tiny: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    texts = [f"Row {row} of the table. It has two sentences." for row in range(7)]
    table = pa.table({"text": [*texts[:3], None, *texts[3:]], "title": [f"t{row}" for row in range(8)]})
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=3)
    made = embed(tmp_path / "rows.parquet", tmp_path / "out", tiny)
    assert (made.n_parts, made.n_documents, len(made.left_out)) == (8, 7, 1)
    whole = [" ".join(texts) for _, texts, _ in held(tmp_path / "out")]
    assert whole == texts
    parquet.write_table(pa.table({"body": texts}), tmp_path / "other.parquet")
    with pytest.raises(BadDocument, match="no column 'text'"):
        embed(tmp_path / "other.parquet", tmp_path / "out2", tiny)


HALF = '{"_id": "h", "text": "half a character: \\ud800"}'


def test_a_beir_folder_becomes_a_corpus_and_its_queries_a_trec_run(
    tmp_path: Path, tiny: str, capsys: pytest.CaptureFixture[str]
) -> None:
    beir, out, run_file = tmp_path / "beir", tmp_path / "out", tmp_path / "found.run"
    beir.mkdir()
    lines = [
        json.dumps({"_id": f"d {n}", "title": "Lamps" if n % 2 else "", "text": f"Ben took {n} lamps."})
        for n in range(9)
    ]
    (beir / "corpus.jsonl").write_text(
        "\n".join([*lines[:4], "no JSON", '{"_id": "x"}', HALF, *lines[4:]]), "utf-8"
    )
    (beir / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "Who took 3 lamps?"}\n{"_id": "q2", "text": "Lamps?"}\n', "utf-8"
    )
    made = embed_corpus(beir, out, tiny, "cpu", part_bytes=100)
    assert made.n_parts > 2
    assert made.n_documents == 9
    assert [notice.split(":")[0] for notice in made.left_out] == [
        f"corpus.jsonl, line at byte {len(chr(10).join(lines[:4])) + 1 + skipped}" for skipped in (0, 8, 21)
    ]
    assert "Lamps" in " ".join(
        EmbeddedCorpus(CorpusParts(out), local_index(CorpusParts(out), SPEC, 1)).texts()
    )
    flags = ["--corpus", str(out), "--queries", str(beir / "queries.jsonl"), "--run", str(run_file), "--json"]
    assert main(["trace", *flags, "--device", "cpu", "--step-budget", "3", "--stop-threshold", "none"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [values["id"] for values in printed] == ["q1", "q2"]
    for values in printed:
        names = [values["documents"][str(step["chunk_id"])].replace(" ", "_") for step in values["steps"]]
        wanted = [
            f"{values['id']} Q0 {name} {rank}" for rank, name in enumerate(dict.fromkeys(names), start=1)
        ]
        found = [line for line in run_file.read_text("utf-8").splitlines() if line.startswith(values["id"])]
        assert [line.rsplit(" ", 2)[0] for line in found] == wanted
    for wrong in (
        ["--corpus", str(out), "--json"],
        ["--corpus", str(out), "--query", "Lamps?", "--run", str(run_file), "--json"],
        ["--document", str(beir / "queries.jsonl"), *flags[2:]],
        [*flags[:3], str(beir / "corpus.jsonl"), *flags[4:]],
    ):
        assert main(["trace", *wrong]) == 2


def test_no_line_of_a_file_that_shrinks_meanwhile_is_lost(tmp_path: Path) -> None:
    lines = tmp_path / "corpus.jsonl"
    lines.write_bytes(b"x" * 99_999 + b"\n" + b"y\n" * 500_000)
    ranges = _line_ranges(lines, 100_000)
    first = next(ranges).rows
    os.truncate(lines, 950_001)
    assert [first, *(part.rows for part in ranges)][-2:] == [(800_000, 900_000), (900_000, 950_001)]


@pytest.mark.parametrize("change", ["documents", "encoder"])
def test_another_corpus_is_not_mixed_in(
    many: Path, tmp_path: Path, tiny_checkpoints: dict[str, Path], change: str
) -> None:
    first, second, *_ = map(str, tiny_checkpoints.values())
    embed(many, tmp_path / "out", first)
    if change == "documents":
        (many / "0.txt").write_text("Ben took no lamps at all that evening.", encoding="utf-8")
    with pytest.raises(BadRequest, match="is of other documents or another encoder"):
        embed(many, tmp_path / "out", first if change == "documents" else "narrative")
    assert second != first


def test_a_plan_comes_back_whatever_files_are_called_and_no_other_is_read(tmp_path: Path) -> None:
    files = (CorpusFile(os.fsdecode(b"caf\xe9.txt"), 11), CorpusFile("rows.parquet", 20, (0, 4)))
    plan = CorpusPlan("general", "a1", 4, (files,))
    plan.save(tmp_path)
    assert read_plan(tmp_path) == plan
    header = tmp_path / "corpus.json"
    values = json.loads(header.read_text(encoding="utf-8"))
    for other in (values | {"format": 2}, values | {"more": 1}, values | {"parts": 0}, []):
        header.write_text(json.dumps(other), encoding="utf-8")
        with pytest.raises(BadDocument, match="does not describe a corpus"):
            read_plan(tmp_path)


@pytest.mark.campaign
def test_a_killed_embedding_goes_on(many: Path, tmp_path: Path, tiny: str) -> None:
    for number in range(6, 60):
        (many / f"{number}.txt").write_text(f"Ada hid {number} keys in the shed.", encoding="utf-8")
    out, program = (
        tmp_path / "out",
        (
            "import sys; from pathlib import Path; from core.integrations.cluster.embedding import embed_corpus;"
            "embed_corpus(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], 'cpu', part_bytes=1)"
        ),
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(many), str(out), tiny])
    while not (out / "000003").is_dir():
        assert child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("[0-9]*")}
    made = embed(many, out, tiny)
    assert 4 <= made.n_parts_before == len(before) < made.n_parts == 60
    assert {name: (out / name).stat().st_mtime_ns for name in before} == before
    assert not [*out.glob(".[0-9]*")]
    embed(many, tmp_path / "whole", tiny)
    assert_same_corpus(out, tmp_path / "whole")


@pytest.mark.campaign
@pytest.mark.usefixtures("cluster")
def test_workers_embed_the_same_though_one_is_killed(many: Path, tmp_path: Path, tiny: str) -> None:
    for number in range(6, 60):
        (many / f"{number}.txt").write_text(f"Ada hid {number} keys in the shed.", encoding="utf-8")
    killed = []

    def kill(done: int, _total: int) -> None:
        if done == 5:
            killed.append(one_worker("PartEmbedder"))
            os.kill(killed[0], signal.SIGKILL)

    made = embed_corpus(many, tmp_path / "out", tiny, "cpu", LOCAL, kill, part_bytes=1)
    assert killed
    assert (made.n_parts, made.n_documents) == (60, 59)
    embed(many, tmp_path / "whole", tiny)
    assert_same_corpus(tmp_path / "out", tmp_path / "whole")


def one_worker(kind: str) -> int:
    """Process id of a worker that holds such an object, of the cluster that this process started."""

    def parent(pid: int) -> int:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            is_worker = (path / "cmdline").read_bytes().startswith(f"ray::{kind}".encode())
            if is_worker and parent(parent(int(path.name))) == os.getpid():
                return int(path.name)
    raise AssertionError(f"no worker holds a {kind}")


class Killing(io.StringIO):
    """A terminal; when the first words come, a worker that holds such an object is killed."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.killed = kind, False

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not self.killed:
            os.kill(one_worker(self.kind), signal.SIGKILL)
            self.killed = True
        return super().write(text)


@pytest.mark.campaign
@pytest.mark.usefixtures("cluster")
def test_workers_evaluate_the_same_though_one_is_killed(
    tmp_path: Path, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first document is short and the others are not: when its line is printed, one is in hand."""
    asked = []
    for number, n_sentences in enumerate([20, 500, 500, 20]):
        text = generate_narrative(1_000).text.split("\n")[:n_sentences]
        (tmp_path / f"{number}.txt").write_text("\n".join([f"Ada hid key {number}.", *text]), "utf-8")
        known = {"document": f"{number}.txt", "kind": "single", "answer": "Ada"}
        quotes = {"support": [f"Ada hid key {number}."]}
        asked += [
            {"id": f"{n} of {number}", "question": f"Who hid key {number}?", **known, **quotes}
            for n in range(2)
        ]
    questions = tmp_path / "questions.jsonl"
    questions.write_text("".join(json.dumps(one) + "\n" for one in asked), "utf-8")

    def evaluated(*flags: str) -> list[DocumentRow]:
        rows = tmp_path / "rows.jsonl"
        command = [
            "evaluate-documents",
            str(questions),
            str(tmp_path),
            "--methods",
            "auto,bm25,gold",
            "--json",
        ]
        assert main([*command, "--checkpoint", tiny, "--device", "cpu", "--rows", str(rows), *flags]) == 0
        return [replace(row, milliseconds=0.0) for row in read_document_rows(rows)]

    expected = evaluated()
    monkeypatch.setattr(sys, "stdout", out := Killing("DocumentEvaluator"))
    rows = evaluated("--cluster", LOCAL)
    assert out.killed
    assert [(row.id, row.method) for row in rows] == [
        (one["id"], method) for one in asked for method in ("auto", "bm25", "gold")
    ]
    for ours, theirs in zip(rows, expected, strict=True):
        assert ours.scores == pytest.approx(theirs.scores, abs=1e-5)
        assert replace(ours, scores=()) == replace(theirs, scores=())


@pytest.mark.campaign
@pytest.mark.usefixtures("cluster")
def test_workers_evaluate_a_task_the_same_though_one_is_killed(
    tmp_path: Path, tiny: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More batches than cores: when the first one is told, others are in hand or to come."""
    command = ["evaluate", task_file(tmp_path, 5 * BATCH + 6), "--step-budget", "2", "--json"]
    expected = episode_rows(tmp_path / "inline.jsonl", tiny, *command)
    monkeypatch.setattr(sys, "stderr", err := Killing("BatchEvaluator"))
    rows = episode_rows(tmp_path / "spread.jsonl", tiny, *command, "--cluster", LOCAL)
    assert err.killed
    assert len(rows) == 5 * BATCH + 6
    assert_same_rows(rows, expected)


def task_file(folder: Path, n: int) -> str:
    chunks = [f"Ada hid key {number} in the shed ." for number in range(8)]
    asked = [
        {"question": f"Who hid key {m % 8} ?", "chunks": chunks, "support": [m % 8], "answers": ["Ada"]}
        for m in range(n)
    ]
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in asked), "utf-8")
    return str(path)


def episode_rows(path: Path, checkpoint: str, *command: str) -> list[EpisodeRow]:
    """What a command writes, but for the time it took."""
    assert main([*command, "--checkpoint", checkpoint, "--device", "cpu", "--rows", str(path)]) == 0
    return [replace(row, milliseconds=0.0) for row in read_rows(path)]


def assert_same_rows(ours: Sequence[EpisodeRow], theirs: Sequence[EpisodeRow]) -> None:
    """Q to rounding, all else exactly."""
    for one, other in zip(ours, theirs, strict=True):
        for name in ("q_values", "best_q"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-5)
        assert replace(one, q_values=(), best_q=()) == replace(other, q_values=(), best_q=())


def test_a_worker_refuses_another_agent(tiny: str) -> None:
    how = EpisodeEvaluation(setting=Setting(split="test"), config=EpisodeConfig())
    worker = BatchEvaluator(how, ("qrag", tiny, "cpu"), "fingerprint of another")
    with pytest.raises(BadRequest, match="is another agent on one machine of the cluster"):
        worker.result([])


@pytest.mark.campaign
def test_a_key_stays_on_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "questions.jsonl").write_text(
        '{"id": "q", "document": "a", "kind": "unanswerable", "question": "Who?", "support": []}', "utf-8"
    )
    command = ["evaluate-documents", str(tmp_path / "questions.jsonl"), str(tmp_path), "--json"]
    model = ["--llm-url", "http://127.0.0.1:9", "--llm-model", "tiny", "--cluster", LOCAL]
    assert main([*command, *model]) == 2
    assert "would take the language model's key to other machines" in capsys.readouterr().err
