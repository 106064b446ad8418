"""One model for all who use it at once; a new one where its files changed, and none once nobody uses it."""

from __future__ import annotations

import gc
import os
import shutil
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from core.base.errors import BadCheckpoint
from core.encode.encoder import DualEncoder
from core.encode.in_use import InUse, MadeOnce

CPU = torch.device("cpu")


@pytest.fixture
def folder(tiny_checkpoints: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_checkpoints["none"], tmp_path / "agent"))


class Alone(InUse[DualEncoder]):
    """Of this test; those of the project stay in use while tests run."""

    get = InUse.__dict__["get"]


@pytest.fixture
def encoders() -> InUse[DualEncoder]:
    return Alone(lambda folder, device: DualEncoder(folder, str(device)))


def test_who_asks_while_it_is_in_use_gets_the_same(
    encoders: InUse[DualEncoder], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = encoders.get(folder, CPU)
    monkeypatch.chdir(folder.parent)
    assert encoders.get(Path(folder.name), CPU) is first
    with ThreadPoolExecutor(4) as threads:
        assert {id(encoder) for encoder in threads.map(lambda _: encoders.get(folder, CPU), range(8))} == {
            id(first)
        }


def test_a_folder_that_can_not_be_looked_into_is_left_to_whoever_loads_it(
    encoders: InUse[DualEncoder],
) -> None:
    """So is one of whose folders some go meanwhile."""
    with pytest.raises(BadCheckpoint, match=r"no readable qrag\.json \(File name too long\)"):
        encoders.get(Path("x" * 300), CPU)


def test_threads_that_ask_at_once_load_it_once(encoders: InUse[DualEncoder], folder: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        assert (
            len({id(encoder) for encoder in list(threads.map(lambda _: encoders.get(folder, CPU), range(4)))})
            == 1
        )


def test_threads_that_need_a_part_at_once_make_it_once() -> None:
    made = []

    class Model:
        @MadeOnce
        def part(self) -> object:
            made.append(object())
            return made[-1]

    model, together = Model(), threading.Barrier(4)

    def needed(_: int) -> object:
        together.wait()
        return model.part

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(needed, range(4))) == set(made)
    assert len(made) == 1
    assert Model().part is not made[0]


@pytest.mark.parametrize("changed", ["qrag.json", "state.safetensors", "base/config.json"])
def test_a_changed_file_loads_it_anew(encoders: InUse[DualEncoder], folder: Path, changed: str) -> None:
    base = folder / "base"
    base.rename(folder.parent / "base")
    base.symlink_to(folder.parent / "base")  # which counts as one of its own
    first = encoders.get(folder, CPU)
    moment = (folder / changed).stat().st_mtime_ns + 1_000_000_000
    os.utime(folder / changed, ns=(moment, moment))
    assert encoders.get(folder, CPU) is not first


def test_it_goes_with_its_last_user(encoders: InUse[DualEncoder], folder: Path) -> None:
    encoder = encoders.get(folder, CPU)
    seen = weakref.ref(encoder)
    del encoder
    gc.collect()
    assert seen() is None


def test_a_folder_that_can_t_be_loaded_is_refused_each_time(
    encoders: InUse[DualEncoder], tmp_path: Path
) -> None:
    for _ in range(2):
        with pytest.raises(BadCheckpoint):
            encoders.get(tmp_path, CPU)
