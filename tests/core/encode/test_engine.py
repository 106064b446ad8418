"""OpenVINO beside torch: the same vectors, chosen where it was measured to be quicker, silent."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from core.base.errors import BadRequest
from core.encode.checkpoint import (
    find_checkpoint,
    load_towers,
    load_weights,
    max_positions_of,
    read_spec,
    write_spec,
)
from core.encode.encoder import DualEncoder, compute_dtype
from core.encode.engine import (
    ENGINE_VARIABLE,
    MEASURED_FILE,
    Batch,
    Engine,
    OpenVinoEngine,
    TorchEngine,
    known_measurements,
)
from core.encode.forward import padded, pooled_vectors
from core.encode.mpnet import MPNet, MPNetSettings
from core.encode.reranker import first_states
from core.encode.traced import Pass
from tests.conftest import few

if TYPE_CHECKING:
    from core.encode.mpnet import Encoder

TEXTS = [
    " ".join(["mary", "went", "to", "the", "garden", "."][: 1 + i % 6] * (1 + i % 11)) for i in range(300)
]


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which nothing was measured, and nothing asked for."""
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(ENGINE_VARIABLE, raising=False)
    return tmp_path / "home"


@pytest.fixture
def served(tiny_checkpoints: dict[str, Path], tmp_path: Path) -> Path:
    """A tiny checkpoint with a tower a side, whose vectors are stored in half precision, as ours are."""
    folder = Path(shutil.copytree(tiny_checkpoints["none"], tmp_path / "served"))
    write_spec(folder, read_spec(folder).model_copy(update={"vectors": "float16"}))
    return folder


def engines(folder: Path, dtype: torch.dtype) -> tuple[TorchEngine, OpenVinoEngine]:
    spec = read_spec(folder)
    ours, theirs = (load_towers(folder, spec).action for _ in range(2))
    ours = ours.to(dtype)

    def pass_of(tower: Encoder) -> Pass:
        return partial(pooled_vectors, tower, spec)

    return TorchEngine(ours, pass_of), OpenVinoEngine(theirs, pass_of, dtype)


Rows = tuple[list[int], list[list[int]]]
"""Places of a batch, and the tokens of each."""


def batches_for(engine: Engine, of: Sequence[Rows]) -> list[Batch]:
    return [(places, padded(rows, engine.width(max(map(len, rows))), 0)) for places, rows in of]


def rows(n_batches: int, most: int) -> list[Rows]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, most + 1, size=(n_batches, 4))
    return [
        (list(range(4 * i, 4 * i + 4)), [rng.integers(5, 30, size=n).tolist() for n in batch])
        for i, batch in enumerate(lengths)
    ]


def cosines(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    return np.asarray((ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1))


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-6), pytest.param(torch.bfloat16, 1e-2, marks=pytest.mark.campaign)],
)
def test_both_engines_give_the_same_vectors_in_the_same_order(
    served: Path, dtype: torch.dtype, tolerance: float
) -> None:
    """More batches than are under way at once, up to the whole window; the float32 weights that were handed
    over are gone by then.
    """
    ours, theirs = engines(served, dtype)
    batches = rows(3 * theirs.at_once + 6, max_positions_of(load_towers(served, read_spec(served)).action))
    next(theirs.run(batches_for(theirs, batches)))
    gc.collect()
    expected, got = (list(engine.run(batches_for(engine, batches))) for engine in (ours, theirs))
    assert [places for places, _ in got] == [places for places, _ in batches]
    for (_, one), (_, other) in zip(expected, got, strict=True):
        apart = np.linalg.norm(other - one, axis=1) / np.linalg.norm(one, axis=1)
        assert apart.max() <= tolerance, "the distance of two vectors, as a share of their length"
    assert ours.vectors_name == ("float32" if dtype == torch.float32 else "bfloat16")
    assert theirs.vectors_name == ("float32" if dtype == torch.float32 else "openvino-bfloat16")


@pytest.mark.campaign
def test_distances_are_heard_as_exactly_as_torch_hears_them() -> None:
    """MPNet puts the distance of two tokens into a bucket: in bfloat16, its logarithm would name another."""
    settings = MPNetSettings(
        model_type="mpnet",
        hidden_act="gelu",
        vocab_size=60,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=302,
        pad_token_id=1,
        relative_attention_num_buckets=32,
        layer_norm_eps=1e-5,
    )
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(value.shape, generator=generator) * (2 if "relative" in name else 0.2)
        for name, value in MPNet(settings).state_dict().items()
    }
    towers = []
    for dtype in (torch.float32, torch.bfloat16, torch.float32):
        tower = MPNet(settings)
        load_weights(tower, weights, "made")
        towers.append(tower.eval().requires_grad_(False).to(dtype))

    def pass_of(tower: Encoder) -> Pass:
        return partial(first_states, tower)

    exact, ours = (TorchEngine(tower, pass_of) for tower in towers[:2])
    theirs = OpenVinoEngine(towers[2], pass_of, torch.bfloat16)
    long = [(places, [row * 10 for row in batch]) for places, batch in rows(8, 30)]
    expected, *others = (
        np.concatenate([states for _, states in engine.run(batches_for(engine, long))])
        for engine in (exact, ours, theirs)
    )
    by_torch, by_openvino = (np.abs(states - expected).max() for states in others)
    assert by_openvino <= 2 * by_torch


def test_a_run_that_is_left_disturbs_no_other(served: Path) -> None:
    """Somebody cancels while batches are under way, and two threads embed at once."""
    _, engine = engines(served, torch.float32)
    batches = batches_for(engine, rows(30, 40))
    expected = np.concatenate([vectors for _, vectors in engine.run(batches)])
    for n in (0, 1, 5):
        left = engine.run(batches)
        for _ in range(n):
            next(left)
        left.close()
    with ThreadPoolExecutor(2) as threads:
        runs = list(
            threads.map(lambda _: np.concatenate([vectors for _, vectors in engine.run(batches)]), range(4))
        )
    for vectors in runs:
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert list(engine.run([])) == []


@pytest.mark.campaign
def test_what_ships_keeps_its_vectors_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of two engines share a file only where they are the same; states are torch's in any case."""
    encoders = []
    for asked in ("torch", "openvino"):
        monkeypatch.setenv(ENGINE_VARIABLE, asked)
        encoders.append(DualEncoder(find_checkpoint("base"), "cpu"))
    ours, theirs = encoders
    assert cosines(ours.encode_chunks(TEXTS), theirs.encode_chunks(TEXTS)).min() > (
        0.999999 if ours.dtype == torch.float32 else 0.999
    )
    assert (ours.vector_fingerprint == theirs.vector_fingerprint) == (ours.dtype == torch.float32)
    assert ours.fingerprint == theirs.fingerprint
    assert (ours.engine.split(",")[0], theirs.engine.split(",")[0]) == ("torch", "OpenVINO")
    states = [ours.state_tokens("where is mary?", ["mary went to the garden."])]
    np.testing.assert_array_equal(ours.encode_states(states), theirs.encode_states(states))


def test_it_is_measured_once_and_the_quicker_one_is_taken(served: Path, own_home: Path) -> None:
    first = DualEncoder(served, "cpu")
    (key,), path = known_measurements(), own_home / MEASURED_FILE
    measured = known_measurements()[key]
    assert measured.cosine > 0.999
    assert first.engine.startswith("OpenVINO" if measured.openvino_wins() else "torch")
    assert "2 layers of 32" in key
    assert key.endswith(f"| DualEncoder._pass_of | {torch.get_num_threads()} threads")
    for openvino_rate, cosine, engine in ((300, 1.0, "OpenVINO"), (105, 1.0, "torch"), (300, 0.99, "torch")):
        kept = f'{{"{key}": {{"torch_rate": 100.0, "openvino_rate": {openvino_rate}.0, "cosine": {cosine}}}}}'
        path.write_text(kept)
        encoder = DualEncoder(served, "cpu")
        assert encoder.engine.startswith(engine)
        assert ("3.0 times torch" in encoder.engine) == (engine == "OpenVINO")
        assert path.read_text() == kept
        assert np.isfinite(encoder.encode_chunks(TEXTS[:3])).all()


@pytest.mark.parametrize(
    "damage",
    few(["{", '{"a": {"torch_rate": -1.0, "openvino_rate": 1.0, "cosine": 1.0}}', "", "[]", "\x00"]),
)
def test_a_damaged_file_is_measured_anew(served: Path, own_home: Path, damage: str) -> None:
    own_home.mkdir()
    (own_home / MEASURED_FILE).write_text(damage)
    DualEncoder(served, "cpu")
    assert len(known_measurements()) == 1
    assert [path.name for path in own_home.iterdir()] == [MEASURED_FILE]


def test_a_home_that_can_not_be_written_costs_a_measurement_only(served: Path, own_home: Path) -> None:
    own_home.touch()
    assert np.isfinite(DualEncoder(served, "cpu").encode_chunks(["mary"])).all()


@pytest.mark.parametrize("asked", ["", "openvino", "torch"])
def test_imported_checkpoints_stay_with_torch_in_float32(
    tiny_checkpoints: dict[str, Path], own_home: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setenv(ENGINE_VARIABLE, asked)
    encoder = DualEncoder(tiny_checkpoints["relative10"], "cpu")
    assert encoder.engine == "torch, float32"
    assert not own_home.exists()


def test_the_engine_may_be_named(served: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precision = str(compute_dtype(read_spec(served), torch.device("cpu"))).removeprefix("torch.")
    for asked, name in (("torch", "torch"), ("openvino", "OpenVINO")):
        monkeypatch.setenv(ENGINE_VARIABLE, asked)
        assert DualEncoder(served, "cpu").engine == f"{name}, {precision}"
    monkeypatch.setenv(ENGINE_VARIABLE, "abacus")
    with pytest.raises(BadRequest, match=r"QRAG_ENGINE='abacus' is no engine; choose torch or openvino"):
        DualEncoder(served, "cpu")
    assert not own_home.exists()


@pytest.mark.campaign
def test_the_library_is_loaded_with_the_first_chunks_and_reports_to_nobody(served: Path) -> None:
    """A process of its own, whose home would hold the identity that the library's telemetry makes for a
    machine.
    """
    script = f"""
import sys
from pathlib import Path
from core.encode.encoder import DualEncoder
from tests.conftest import few
encoder = DualEncoder(Path({str(served)!r}), "cpu")
encoder.encode_states([encoder.state_tokens("where?", [])])
print("openvino" in sys.modules)
encoder.encode_chunks(["mary"])
print("openvino" in sys.modules, "openvino_telemetry.main" in sys.modules)
"""
    person = served.parent / "person"
    person.mkdir()
    environment = {**os.environ, ENGINE_VARIABLE: "openvino", "HOME": str(person)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.split() == ["False", "True", "False"]
    assert not list(person.iterdir())
