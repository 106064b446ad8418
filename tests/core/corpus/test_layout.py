"""Layouts of vectors: the same each time, for odd vectors too, kept."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from core.base.errors import Cancelled, UserError
from core.base.home import CACHES, cache_folder
from core.corpus.layout import LEAST_CHUNKS, kept_layout, layout_of, places, vectors_key
from core.corpus.layout.places import places_of


def clusters(n, dim=24, kinds=3, seed=0):
    """(n, dim) vectors about `kinds` directions, and (n,) which."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(kinds, dim))
    which = np.arange(n) % kinds
    return (centres[which] + 0.15 * rng.normal(size=(n, dim))).astype(np.float32), which


def laid(vectors, waiting=lambda *_: None):
    return layout_of(vectors, vectors_key(vectors), waiting=waiting)


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("QRAG_HOME", str(tmp_path))


def share_of_near_ones_alike(placed, which):
    """How many of the 5 nearest places are of the same kind."""
    distance = np.linalg.norm(placed[:, None].astype(float) - placed[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    return float(np.mean(which[np.argsort(distance, axis=1)[:, :5]] == which[:, None]))


def test_what_is_near_in_meaning_lies_near():
    vectors, which = clusters(90)
    assert share_of_near_ones_alike(places_of(vectors), which) > 0.95


def test_a_chunk_far_away_does_not_leave_the_map_empty():
    near = np.linspace(0, 1, 9)
    filled = places._filling(np.stack([[*near, 100.0], [5.0] * 10], 1))
    assert np.ptp(filled[:9, 0]) > 0.4
    assert filled[[0, 9], 0].tolist() == [-0.5, 0.5]
    assert not filled[:, 1].any()


@pytest.mark.parametrize("n_kinds", [1, 3, 20])
def test_equal_chunks_stand_beside_one_another_and_those_without_a_length_somewhere(n_kinds):
    rng = np.random.default_rng(n_kinds)
    which = np.arange(200) % n_kinds
    vectors = rng.normal(size=(n_kinds, 16)).astype(np.float32)[which]
    placed = places_of(vectors).astype(float)
    assert len(np.unique(placed, axis=0)) == 200
    if n_kinds > 1:
        assert share_of_near_ones_alike(placed, which) > 0.5
    vectors[::7] *= 1 + 1e-6
    vectors[1::7] = 0
    assert len(np.unique(places_of(vectors), axis=0)) == 200


def test_of_many_a_sample_is_fitted_and_the_others_stand_among_their_like(monkeypatch):
    monkeypatch.setattr(places, "MOST_FITTED", 60)
    vectors, which = clusters(300)
    assert share_of_near_ones_alike(places_of(vectors), which) > 0.95


def test_a_layout_is_kept_and_found_by_its_vectors():
    vectors, _ = clusters(60)
    key = vectors_key(vectors)
    assert kept_layout(key) is None
    placed = layout_of(vectors, key)
    np.testing.assert_array_equal(placed, places_of(vectors), "the same here and in the child")
    np.testing.assert_array_equal(kept_layout(key), placed)
    assert kept_layout(key, "somebody's") is None
    assert vectors_key(vectors[::-1]) != key != vectors_key(vectors.astype(np.float16))
    (path,) = cache_folder("layouts").iterdir()
    path.write_bytes(path.read_bytes()[:-40])
    assert kept_layout(key) is None
    assert "layouts" in CACHES


@pytest.mark.parametrize("n", [LEAST_CHUNKS - 1, places.MOST_CHUNKS + 1])
def test_too_few_or_too_many_make_no_map(n):
    with pytest.raises(UserError, match=rf"50 to 200,000 chunks, and these are {n:,}"):
        laid(np.zeros((n, 1), np.float32))


def children():
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.mark.campaign
def test_progress_comes_and_whoever_waits_may_end_it():
    before, seen = children(), []

    def waiting(done, total):
        seen.append((done, total))
        if done:
            raise Cancelled

    vectors, _ = clusters(1_500)
    with pytest.raises(Cancelled):
        laid(vectors, waiting)
    assert children() == before
    assert seen[0] == (0, 1)
    assert 0 < seen[-1][0] < seen[-1][1] == 750
    assert kept_layout(vectors_key(vectors)) is None


def test_a_child_that_dies_is_said():
    def waiting(*_):
        for pid in children():
            if b"core.corpus.layout.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(int(pid), signal.SIGSEGV)

    with pytest.raises(UserError, match="the map could not be made: its process ended with status -11"):
        laid(clusters(60)[0], waiting)
