"""Random vectors in one worker of a Ray cluster, in two, and in this process.

Of --n chunks, ten million by default: 7.7 GB on disk and in the page cache, removed afterwards. A step is
what the agent does at each look but for encoding the state. One worker and two take turns over the same
states, and so do the ways of asking a tenth of the corpus; all have one thread. CPU seconds are those of this
process and of all workers. Vectors are random: time, memory and network don't depend on them. What embedding
and an index of words cost is measured on a stretch of a novel.
"""

from __future__ import annotations

import os
import pickle
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks import Row, Seconds, cpu_seconds, median_times
from benchmarks.prose import novels
from core.corpus.bm25 import WordIndex
from core.corpus.index import ChunkIndex
from core.corpus.tiles import best_chunks
from core.encode.checkpoint import CheckpointSpec, find_checkpoint, read_spec
from core.encode.encoder import load_encoder
from core.integrations.cluster.agent import FEWEST
from core.integrations.cluster.embedding import embed_corpus
from core.integrations.cluster.parts import (
    CorpusFile,
    CorpusParts,
    CorpusPlan,
    EmbeddedCorpus,
    PartDocument,
    write_part,
)
from core.integrations.cluster.sharded import LocalShards, LookView, ShardedIndex, Shards, shard_settings
from core.integrations.cluster.workers import STORE_BYTES, RayShards
from core.methods.qrag.positions import chunk_positions

POSITIONS, TEXTS = "narrative", "general"
"""Agents: whose positions are turned, and who embeds a novel."""
DIM = 384
PART_CHUNKS = 4_000
"""Of a part: about 1 MB of sentences, as `embed-corpus` cuts."""
N_WORKERS = 2
N_TOKENS = 20_000
"""Of the novel that is embedded."""
REPEATS = 5
IN_MEMORY = "this process, in memory"
Step = Callable[[np.ndarray], np.ndarray]
"""A state (D,) -> ids of the best chunks."""


@dataclass(frozen=True)
class StepSeconds(Seconds):
    """What a step took."""

    busiest: float
    """CPU seconds of the process that took most: the time of a step on cores that do nothing else."""


def rows(n: int = 10_000_000) -> list[Row]:
    """Seconds, bytes and rates of this machine."""
    torch.set_num_threads(1)  # as a worker has
    spec = read_spec(find_checkpoint(POSITIONS))
    out = _texts()
    with tempfile.TemporaryDirectory() as folder, _cluster():
        for size in (max(n // 10, 1), n):
            parts = _random_corpus(Path(folder, str(size)), size)
            out += _compare(parts, spec, with_inline=size < n)
    return out


@contextmanager
def _cluster() -> Iterator[None]:
    """A core for each of the workers that take turns."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    ray.init(
        num_cpus=1 + N_WORKERS,
        object_store_memory=STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _system_config={"worker_niceness": 0},  # as this process; Ray's workers else give way to others
    )
    try:
        yield
    finally:
        ray.shutdown()


def _random_corpus(folder: Path, n: int) -> CorpusParts:
    """Half-precision vectors of length about 1, and no words."""
    rng = np.random.default_rng(0)
    sizes = [min(PART_CHUNKS, n - first) for first in range(0, n, PART_CHUNKS)]
    files = tuple((CorpusFile(f"{number}.txt", 1),) for number in range(len(sizes)))
    CorpusPlan("random", "random", DIM, files).save(folder)
    for number, size in enumerate(sizes):
        vectors = rng.standard_normal((size, DIM), dtype=np.float32) / np.float32(np.sqrt(DIM))
        documents = [PartDocument(f"{number}.txt", size)]
        write_part(folder, number, documents, [""] * size, vectors.astype(np.float16))
    return CorpusParts(folder)


def _compare(parts: CorpusParts, spec: CheckpointSpec, *, with_inline: bool) -> list[Row]:
    n = len(parts)
    borders = EmbeddedCorpus(parts, None).borders  # type: ignore[arg-type]  # nothing is asked of an index
    chosen = (n // 5, n // 2, n // 2 + 40)
    where = f"{n:,} chunks"

    def look(index: ShardedIndex, state: np.ndarray) -> LookView:
        return index.look(state, chunk_positions(spec, borders, chosen), left_out=chosen)

    def best_in_shards(index: ShardedIndex, state: np.ndarray) -> np.ndarray:
        return index.best(look(index, state), FEWEST)[0][:FEWEST]

    def best_in_memory(index: ChunkIndex, state: np.ndarray) -> np.ndarray:
        scores = index.q_values(state, chunk_positions(spec, borders, chosen))
        scores[list(chosen)] = -np.inf
        return best_chunks(scores, 0, FEWEST)

    with ExitStack() as stack:
        steps: dict[str, Step] = {}
        workers: list[int] = []
        opening = time.perf_counter()
        for n_workers in (1, N_WORKERS):
            settings = shard_settings(parts, spec, n_workers)
            shards = stack.enter_context(closing(RayShards(settings)))
            index = ShardedIndex(parts, settings, shards)
            workers += shards.ask_all("process", [()] * len(settings))
            steps[_workers(n_workers)] = partial(best_in_shards, index)
        started = time.perf_counter() - opening
        if with_inline:
            local = shard_settings(parts, spec, 1)
            inline = ShardedIndex(parts, local, LocalShards(local))
            steps["this process, from disk"] = partial(best_in_shards, inline)
            vectors = np.concatenate([part.vectors for part in parts.parts])
            resolution = spec.position_resolution
            whole = ChunkIndex(vectors, halves=spec.halves, theta=spec.rope_theta, resolution=resolution)
            steps[IN_MEMORY] = partial(best_in_memory, whole)
        out = _step_rows(_median_steps(steps, workers), where)
        state = _states(1)[0]
        out += _message_rows(look(index, state), shards, where)
        if not with_inline:
            on_disk = sum(file.stat().st_size for file in parts.folder.rglob("*") if file.is_file())
            out += [
                *_own_rows(partial(look, index, state), where, n),
                Row(f"memory of a worker of {N_WORKERS}, {where}", max(map(_resident, workers[1:])), "MB"),
                Row(f"starting {1 + N_WORKERS} workers", started, "s"),
                Row("disk", on_disk / n, "bytes/chunk"),
            ]
    return out


def _workers(n: int) -> str:
    return f"{n} worker" + "s" * (n > 1)


def _median_steps(steps: dict[str, Step], workers: list[int]) -> dict[str, StepSeconds]:
    """Of each way, over the same states. Raises RuntimeError where two ways find other chunks."""
    states = _states(REPEATS + 1)  # new ones: shards remember what they scored
    found: dict[str, list[list[int]]] = {name: [] for name in steps}
    busiest: dict[str, list[float]] = {name: [] for name in steps}

    def work(name: str) -> None:
        before = [cpu_seconds(pid) for pid in (os.getpid(), *workers)]
        found[name].append(steps[name](states[len(found[name])]).tolist())
        after = [cpu_seconds(pid) for pid in (os.getpid(), *workers)]
        busiest[name].append(max(np.subtract(after, before)))

    def processor_seconds() -> float:
        return time.process_time() + sum(map(cpu_seconds, workers))

    seconds = median_times({name: partial(work, name) for name in steps}, REPEATS, processor_seconds)
    first, *others = found.values()
    if any(other != first for other in others):
        raise RuntimeError(f"not all ways of asking find the same chunks: {found}")
    return {
        name: StepSeconds(taken.wall, taken.processors, statistics.median(busiest[name][1:]))
        for name, taken in seconds.items()
    }


def _step_rows(seconds: dict[str, StepSeconds], where: str) -> list[Row]:
    """Two workers against one, and everything against this process where that was asked too."""
    units = {"wall": "s", "processors": "CPU s", "busiest": "CPU s of the busiest process"}
    out = []
    for name, taken in seconds.items():
        against = [_workers(1)] * (name == _workers(N_WORKERS)) + [IN_MEMORY] * (name != IN_MEMORY)
        others = [other for other in against if other in seconds]
        for field, unit in units.items():
            value = getattr(taken, field)
            compared = [(other, value / getattr(seconds[other], field)) for other in others]
            pairs = compared or [(None, None)]
            out += [Row(f"one step, {where}, {name}", value, unit, *pair) for pair in pairs]
    return out


def _message_rows(look: LookView, shards: Shards, where: str) -> list[Row]:
    """What travels, as it is pickled."""
    asked = [(view, words, FEWEST) for view, words in zip(look.views, look.words, strict=True)]
    answers = shards.ask_all("best", asked)
    sent, back = (sum(len(pickle.dumps(message, 5)) for message in messages) for messages in (asked, answers))
    return [
        Row(f"sent to {_workers(len(asked))} in a step, {where}", sent, "bytes"),
        Row(f"sent back by {_workers(len(asked))} in a step, {where}", back, "bytes"),
    ]


def _own_rows(look: Callable[[], object], where: str, n: int) -> list[Row]:
    """What is left to the process that asks."""
    seconds = median_times({"own": look}, REPEATS)["own"]
    _, peak = _traced(look)
    return [
        Row(f"of a step, positions in the process that asks, {where}", seconds.processors, "CPU s"),
        Row(f"memory of the process that asks, {where}", peak / n, "bytes/chunk"),
    ]


def _texts() -> list[Row]:
    """What embedding a novel costs one worker, and the index of its words."""
    encoder = load_encoder(TEXTS, "cpu")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "documents")
        source.mkdir()
        (source / "novel.txt").write_bytes(novels(N_TOKENS))
        for name in ("warm", "corpus"):
            used = time.process_time()
            embed_corpus(source, Path(folder, name), TEXTS, "cpu")
            used = time.process_time() - used
        texts = [text for part in CorpusParts(Path(folder, name)).parts for text in part.texts()]
    n_tokens = int(encoder.tokenizer.count(texts).sum())
    began = time.process_time()
    WordIndex(texts)
    counted = time.process_time() - began
    held, peak = _traced(lambda: WordIndex(texts))
    engine = encoder.engine.split(", ")[0]
    return [
        Row(f"embedding a corpus with {engine}, {TEXTS}", n_tokens / used, "tokens/CPU s"),
        Row(f"a chunk, {TEXTS}", n_tokens / len(texts), "tokens"),
        Row("index of words", n_tokens / counted, "tokens/CPU s"),
        Row("index of words", held / n_tokens, "bytes/token"),
        Row("index of words, while it is made", peak / n_tokens, "bytes/token"),
    ]


def _traced(work: Callable[[], object]) -> tuple[int, int]:
    """Bytes that are held once something is made, and most on the way."""
    tracemalloc.start()
    kept = work()
    held = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return held


def _states(n: int) -> np.ndarray:
    """(n, D) float32."""
    return np.random.default_rng(1).standard_normal((n, DIM), dtype=np.float32)


def _resident(pid: int) -> float:
    """MB of a process, without pages of files, which the system takes and gives back as it likes."""
    status = Path(f"/proc/{pid}/status").read_text(errors="replace")
    return int(status.partition("RssAnon:")[2].split()[0]) / 1024
