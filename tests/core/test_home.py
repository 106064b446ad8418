"""The bound of the caches: what goes, in which order, and what never does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.errors import BadRequest
from core.home import cache_bytes, trim_caches


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Three caches of 100 bytes, used one after the other, and a log that is older than all."""
    monkeypatch.setenv("QRAG_HOME", str(tmp_path))
    found = {}
    for used, name in enumerate(("log.duckdb", "chunks/old.npz", "vectors/middle.bin", "chunks/new.npz")):
        path = found[name] = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (1_000 + used, 1_000))
    return found


@pytest.mark.parametrize(
    ("most", "left"),
    [
        (300, ["chunks/old.npz", "vectors/middle.bin", "chunks/new.npz"]),
        (299, ["vectors/middle.bin", "chunks/new.npz"]),
        (100, ["chunks/new.npz"]),
        (0, []),
    ],
)
def test_what_was_not_used_for_longest_goes_first_and_the_log_never(
    files: dict[str, Path], most: int, left: list[str]
) -> None:
    assert trim_caches(most) == 3 - len(left)
    assert [name for name, path in files.items() if path.exists()] == ["log.duckdb", *left]


def test_a_part_of_a_cache_goes_when_it_was_not_used_for_long(files: dict[str, Path]) -> None:
    """And counts by its weight like the rest."""
    fresh = files["chunks/old.npz"].parent / "ann" / "a.npz"
    stale = files["vectors/middle.bin"].parent / "bob" / "b.bin"
    for used, path in ((1_010, fresh), (1_004, stale)):
        path.parent.mkdir()
        path.write_bytes(bytes(100))
        os.utime(path, (used, 1_000))
        os.utime(path.parent, (used, used))
    assert trim_caches(1_000, parts_since=1_005) == 1
    assert (fresh.exists(), stale.exists()) == (True, False)
    os.utime(stale.parent, (1_004, 1_004))
    assert trim_caches(1_000, parts_since=1_005) == 0
    assert (fresh.parent.exists(), stale.parent.exists()) == (True, False)
    assert trim_caches(100) == 3
    assert [path.exists() for path in (*files.values(), fresh)] == [True, False, False, False, True]


def test_the_bound_is_read_from_the_environment() -> None:
    assert cache_bytes({}) == 20_000_000_000
    assert cache_bytes({"QRAG_CACHE_GB": "0.5"}) == 500_000_000
    for wrong in ("much", "-1", "nan", "inf"):
        with pytest.raises(BadRequest, match=f"QRAG_CACHE_GB='{wrong}' is no size; give gigabytes"):
            cache_bytes({"QRAG_CACHE_GB": wrong})
