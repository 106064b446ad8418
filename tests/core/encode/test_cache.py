"""The vectors on disk: what is written comes back, damage costs what was damaged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.base.errors import Cancelled, UserError
from core.base.progress import finish
from core.encode.cache import EmbedProgress, VectorStore, embed_chunks, embedding, text_keys
from core.encode.encoder import DualEncoder
from core.methods.qrag.agent import Agent
from tests.conftest import few
from tests.core.encode.embedding import DIM, store_at, vectors_of

ROOT = Path(__file__).resolve().parents[3]
BLOCKS = [["one", "two", "three"], ["four"], ["five", "six"]]
SIZES = [20 + len(block) * (16 + 2 * DIM) for block in BLOCKS]
"""Bytes of each block: header, keys, float16 vectors."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store that holds three blocks."""
    path = tmp_path / "vectors" / "store.bin"
    for block in BLOCKS:
        store_at(path).append(text_keys(block), vectors_of(block))
    return path


def found_in(store: VectorStore, texts: Sequence[str]) -> set[str]:
    """The texts whose vectors the store has; fails when a vector is wrong."""
    found, vectors = store.read(text_keys(texts))
    there = [text for text, here in zip(texts, found.tolist(), strict=True) if here]
    np.testing.assert_array_equal(vectors[found], vectors_of(there) if there else np.zeros((0, DIM)))
    assert (vectors[~found] == 0).all()
    return set(there)


EVERYTHING = [text for block in BLOCKS for text in block]


def test_what_is_appended_is_read(path: Path) -> None:
    assert path.stat().st_size == sum(SIZES)
    assert found_in(store_at(path), [*EVERYTHING, "seven", "one"]) == set(EVERYTHING)


def test_keys_that_end_in_zeros_are_told_apart() -> None:
    """Keys are 16 raw bytes; numpy's string types would cut trailing zeros, its void type does not."""
    assert all(len(key) == 16 for key in text_keys([f"{i}" for i in range(2000)]).tolist())


@given(
    st.lists(
        st.lists(st.text(st.characters(exclude_categories=()), max_size=8), min_size=1, max_size=5),
        max_size=5,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_texts_in_any_blocks(tmp_path: Path, blocks: list[list[str]]) -> None:
    """Empty texts, repeated texts and lone surrogates among them; one store writes, another reads."""
    path = tmp_path / f"{len(os.listdir(tmp_path))}.bin"
    writer = store_at(path)
    for block in blocks:
        keys = text_keys(block)
        writer.append(
            keys, np.array([np.frombuffer(key, np.uint8)[:DIM] for key in keys.tolist()], np.float16)
        )
    texts = [text for block in blocks for text in block]
    for store in (writer, store_at(path)):
        found, vectors = store.read(text_keys([*texts, "not there at all"]))
        assert found.tolist() == [True] * len(texts) + [False]
        assert [vector[:DIM].tolist() for vector in vectors[:-1]] == [
            list(key[:DIM]) for key in text_keys(texts).tolist()
        ]


def test_a_store_that_is_not_there_yet(tmp_path: Path) -> None:
    assert found_in(store_at(tmp_path / "none.bin"), ["one"]) == set()
    (tmp_path / "empty.bin").touch()
    assert found_in(store_at(tmp_path / "empty.bin"), ["one"]) == set()


def test_a_reader_sees_what_others_append_later(path: Path) -> None:
    reader = store_at(path)
    assert found_in(reader, ["later"]) == set()
    store_at(path).append(text_keys(["later"]), vectors_of(["later"]))
    assert found_in(reader, ["later", "one"]) == {"later", "one"}


def test_two_processes_append_at_once(path: Path) -> None:
    """Each reads its own blocks back while the other writes; in the end everything is there once."""
    command = [sys.executable, "-m", "tests.core.encode.embedding", "append", str(path)]
    writers = [
        subprocess.Popen([*command, name, "60"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for name in ("left", "right")
    ]
    reader = store_at(path)
    while any(writer.poll() is None for writer in writers):
        found_in(reader, [*EVERYTHING, *(f"left {i} 0" for i in range(60))])
    for writer in writers:
        assert writer.wait() == 0, writer.communicate()[1]
    texts = [f"{name} {block} {i}" for name in ("left", "right") for block in range(60) for i in range(20)]
    for store in (reader, store_at(path)):
        assert found_in(store, [*EVERYTHING, *texts]) == {*EVERYTHING, *texts}
        assert store.n_damaged_blocks == 0
    assert path.stat().st_size == sum(SIZES) + 120 * (20 + 20 * (16 + 2 * DIM))


@pytest.mark.parametrize("bit", few([0, 7], 1))
def test_any_damaged_byte_costs_its_own_block_only(path: Path, bit: int) -> None:
    """Every byte of the file in turn: header, keys and vectors. What a fresh store then misses is appended
    and found again.
    """
    content = path.read_bytes()
    edges = np.cumsum(SIZES)
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        lost = BLOCKS[int(np.searchsorted(edges, place, side="right"))]
        store = store_at(path)
        assert found_in(store, EVERYTHING) == set(EVERYTHING) - set(lost), place
        store.append(text_keys(lost), vectors_of(lost))
        for again in (store, store_at(path)):
            assert found_in(again, EVERYTHING) == set(EVERYTHING), place


def test_a_torn_end_is_cut_off_by_the_next_append(path: Path) -> None:
    """As a killed writer leaves it, at every length. Readers leave the file alone."""
    content = path.read_bytes()
    for length in range(sum(SIZES[:2]), len(content)):
        path.write_bytes(content[:length])
        store = store_at(path)
        assert found_in(store, EVERYTHING) == set(EVERYTHING[:4])
        assert path.stat().st_size == length
        store.append(text_keys(["after"]), vectors_of(["after"]))
        assert found_in(store_at(path), [*EVERYTHING, "after"]) == {*EVERYTHING[:4], "after"}
        assert path.stat().st_size == sum(SIZES[:2]) + 20 + 16 + 2 * DIM


def test_a_block_header_inside_a_damaged_block_fools_nobody(path: Path) -> None:
    """Vectors may hold the very bytes that mark a block."""
    bait = np.frombuffer(b"QXV1" * 4, np.float16)[None]
    store = store_at(path)
    store.append(text_keys(["bait"]), bait)
    store.append(text_keys(["after"]), vectors_of(["after"]))
    content = bytearray(path.read_bytes())
    content[sum(SIZES)] ^= 1  # the bait's own mark
    path.write_bytes(content)
    assert found_in(store_at(path), [*EVERYTHING, "after"]) == {*EVERYTHING, "after"}
    assert not store_at(path).read(text_keys(["bait"]))[0].any()


def test_a_removed_or_shortened_file_is_noticed(path: Path) -> None:
    store = store_at(path)
    assert found_in(store, EVERYTHING) == set(EVERYTHING)
    path.write_bytes(path.read_bytes()[: SIZES[0]])
    assert found_in(store, EVERYTHING) == set(BLOCKS[0])
    path.unlink()
    assert found_in(store, EVERYTHING) == set()
    store.append(text_keys(["one"]), vectors_of(["one"]))
    assert found_in(store, EVERYTHING) == {"one"}


@pytest.mark.parametrize("room", few([20, 0, 5, 300, 9000], 1))
def test_a_full_disk_says_so_and_keeps_what_is_there(path: Path, room: int) -> None:
    before = path.stat().st_size
    command = [sys.executable, "-m", "tests.core.encode.embedding", "full", str(path), str(before + room)]
    outcome = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    assert "can't be kept" in outcome["said"]
    assert "disk space" in outcome["said"]
    assert outcome["size"] == before
    assert found_in(store_at(path), [*EVERYTHING, "room again"]) == {*EVERYTHING, "room again"}


def test_a_place_that_can_not_be_written_or_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="can't be kept in"):
        store_at(tmp_path / "file" / "store.bin").append(text_keys(["one"]), vectors_of(["one"]))
    (tmp_path / "store.bin").mkdir()
    with pytest.raises(UserError, match="can't be read"):
        store_at(tmp_path / "store.bin").read(text_keys(["one"]))


class CountingEncoder:
    """The real encoder, with a list of the texts it was asked for."""

    def __init__(self, encoder: DualEncoder) -> None:
        self._encoder = encoder
        self.texts: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._encoder, name)

    def iter_encode_chunks(self, texts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        self.texts += texts
        return self._encoder.iter_encode_chunks(texts)


@pytest.fixture
def encoder(agents: dict[str, Agent]) -> CountingEncoder:
    return CountingEncoder(agents["none"].encoder)


@pytest.fixture
def store(encoder: CountingEncoder, tmp_path: Path) -> VectorStore:
    return VectorStore(tmp_path / "store.bin", encoder.dim, np.dtype(encoder.spec.vectors))


TEXTS = [
    "mary went home .",
    "john came .",
    "mary went home .",
    "the night was cold .",
    "john came .",
    "mary went home .",
]


def test_distinct_texts_are_embedded_once_and_known_ones_not_at_all(
    encoder: CountingEncoder, store: VectorStore
) -> None:
    first = embed_chunks(encoder, TEXTS, store)
    assert sorted(encoder.texts) == sorted(set(TEXTS))
    np.testing.assert_allclose(first, encoder.encode_chunks(TEXTS), atol=1e-6)
    encoder.texts.clear()
    np.testing.assert_array_equal(embed_chunks(encoder, [*TEXTS, "one more ."], store)[:-1], first)
    assert encoder.texts == ["one more ."]


def test_without_a_store_nothing_is_kept(encoder: CountingEncoder) -> None:
    np.testing.assert_array_equal(embed_chunks(encoder, TEXTS, None), embed_chunks(encoder, TEXTS, None))
    assert len(encoder.texts) == 2 * len(set(TEXTS))
    assert embed_chunks(encoder, [], None).shape == (0, encoder.dim)


def test_progress_counts_up_to_everything(encoder: CountingEncoder, store: VectorStore) -> None:
    embed_chunks(encoder, TEXTS[:2], store)
    seen: list[EmbedProgress] = []
    finish(embedding(encoder, TEXTS, store), seen.append)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    # five of the six rows hold the two known texts
    assert (seen[0].done, seen[0].n_cached, seen[0].seconds_left) == (5, 5, None)
    assert (seen[-1].done, seen[-1].total) == (6, 6)
    assert seen[-1].seconds_left == pytest.approx(0)


def test_cancel_keeps_what_was_embedded(encoder: CountingEncoder, store: VectorStore) -> None:
    """1,500 texts make several batches; the one after which the person cancels is in the store, and the rest
    goes on from there.
    """
    texts = [f"john said {i} and the man said {i} to the ship in the rain ." for i in range(1500)]

    def cancel_after_the_first_batch(progress: EmbedProgress) -> None:
        if progress.done:
            raise Cancelled

    with pytest.raises(Cancelled):
        finish(embedding(encoder, texts, store), cancel_after_the_first_batch)
    kept = int(store.read(text_keys(texts))[0].sum())
    assert 0 < kept < len(texts)
    encoder.texts.clear()
    embed_chunks(encoder, texts, store)
    assert len(encoder.texts) == len(texts) - kept


@pytest.mark.campaign
def test_what_was_embedded_before_a_kill_is_not_embedded_again(
    encoder: CountingEncoder, store: VectorStore, tiny_checkpoints: dict[str, Path]
) -> None:
    """A process that takes a twentieth of a second a batch is killed after its first write, which comes after
    two seconds; another one goes on.
    """
    texts = [f"john said {i} and the man said {i} to the ship in the rain ." for i in range(20_000)]
    script = f"""
import time
from pathlib import Path
import numpy as np
from core.encode.cache import VectorStore, embedding
from core.encode.encoder import DualEncoder
from core.base.progress import finish
encoder = DualEncoder(Path({str(tiny_checkpoints["none"])!r}), "cpu")
store = VectorStore(Path({str(store.path)!r}), encoder.dim, np.dtype(encoder.spec.vectors))
texts = [f"john said {{i}} and the man said {{i}} to the ship in the rain ." for i in range(20_000)]
finish(embedding(encoder, texts, store), lambda _: time.sleep(0.05))
"""
    killed = subprocess.Popen([sys.executable, "-c", script])
    keys, until = text_keys(texts), time.monotonic() + 120
    while not store.read(keys)[0].any() and killed.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    killed.kill()
    assert killed.wait(20) == -signal.SIGKILL
    kept = int(store.read(keys)[0].sum())
    assert 0 < kept < len(texts)
    embed_chunks(encoder, texts, store)
    assert len(encoder.texts) == len(texts) - kept
    assert store.read(keys)[0].all()


def test_damaged_vectors_are_embedded_again(encoder: CountingEncoder, store: VectorStore) -> None:
    expected = embed_chunks(encoder, TEXTS, store)
    content = bytearray(store.path.read_bytes())
    content[-1] ^= 0x10
    store.path.write_bytes(content)
    encoder.texts.clear()
    fresh = VectorStore(store.path, encoder.dim, store.dtype)
    np.testing.assert_array_equal(embed_chunks(encoder, TEXTS, fresh), expected)
    assert len(encoder.texts) == 3
    assert fresh.n_damaged_blocks == 1
