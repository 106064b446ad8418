"""Who may read the home folder, and the bound of its caches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from core.base.errors import BadRequest, LogError
from core.base.home import cache_bytes, cache_folder, home, keep_arrays, make_folder, trim_caches
from core.encode.cache import VectorStore, text_keys
from core.runs.log import ExperimentLog, default_log_path, open_reader

VECTOR = np.ones((1, 4), np.float16)


def keep_vectors() -> None:
    """As the first document of an encoder does."""
    VectorStore(cache_folder("vectors") / "encoder.bin", 4, VECTOR.dtype).append(text_keys(["one"]), VECTOR)


WRITERS: dict[str, Callable[[], object]] = {
    "log": lambda: ExperimentLog.open(default_log_path()).close(),
    "chunks": lambda: keep_arrays(cache_folder("chunks", "ann") / "a.npz", {"a": VECTOR}),
    "vectors": keep_vectors,
}
"""What may be the first to write into a home folder."""


@pytest.fixture
def loose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody may read, as all that is made there; the home folder will lie in it."""
    before = os.umask(0o022)
    tmp_path.chmod(0o755)
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "share" / "home"))
    yield tmp_path
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


@pytest.mark.usefixtures("loose")
@pytest.mark.parametrize("writer", WRITERS)
def test_whoever_writes_first_makes_the_home_its_owners_alone(writer: str) -> None:
    WRITERS[writer]()
    assert next(home().iterdir())
    assert (mode(home()), mode(home().parent)) == (0o700, 0o755), "only what is ours"


@pytest.mark.usefixtures("loose")
@pytest.mark.parametrize(("before", "after"), [(0o755, 0o700), (0o2770, 0o2700), (0o1777, 0o1777)])
def test_a_home_that_others_could_read_is_closed_to_them(before: int, after: int) -> None:
    home().mkdir(parents=True)
    home().chmod(before)
    make_folder(cache_folder("chunks"))
    assert (mode(home()), mode(cache_folder("chunks")) & 0o777) == (after, 0o755)


def test_only_the_home_is_closed_and_only_by_who_writes(loose: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trim_caches(0)
    with pytest.raises(LogError, match="there is no log"):
        open_reader(default_log_path())
    assert not home().parent.exists()
    make_folder(loose / "outputs")
    with ExperimentLog.open(loose / "logs" / "log.duckdb"):
        pass
    assert {mode(loose / name) for name in ("outputs", "logs")} == {0o755}
    monkeypatch.chdir(loose)
    monkeypatch.setenv("QRAG_HOME", "here")
    WRITERS["log"]()  # by its absolute path
    assert mode(loose / "here") == 0o700


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
        (100, ["chunks/new.npz"]),
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
