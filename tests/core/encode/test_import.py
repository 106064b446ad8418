"""Importing checkpoints of the Q-RAG authors: hostile and broken ones change nothing and run nothing."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from core.base.errors import BadCheckpoint
from core.encode.checkpoint import read_spec
from core.encode.encoder import DualEncoder
from core.encode.reference import import_checkpoint
from tests.conftest import few


@pytest.fixture
def source(reference: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(reference / "checkpoints" / "relative10", tmp_path / "source"))


@pytest.fixture
def base(reference: Path) -> str:
    return str(reference / "tiny-bert")


def refused(source: Path, base: str, words: str) -> None:
    """The import fails with one sentence that says `words`, and leaves no destination behind."""
    destination = source.parent / "destination"
    with pytest.raises(BadCheckpoint, match=words) as caught:
        import_checkpoint(str(source), destination, base)
    assert "\n" not in str(caught.value)
    assert not destination.exists()


def change_config(source: Path, **changes: Any) -> None:
    """Sets dotted keys of config.yaml; None removes one."""
    config = yaml.safe_load((source / "config.yaml").read_text())
    for path, value in changes.items():
        *parents, last = path.split("__")
        part = config
        for parent in parents:
            part = part[parent]
        if value is None:
            del part[last]
        else:
            part[last] = value
    (source / "config.yaml").write_text(yaml.safe_dump(config))


def test_an_imported_checkpoint_stands_on_its_own(source: Path, base: str, tmp_path: Path) -> None:
    destination = tmp_path / "deep" / "destination"
    spec = import_checkpoint(str(source), destination, base)
    assert (spec.position_kind, spec.position_step, spec.position_span, spec.position_resolution) == (
        "relative",
        10.0,
        9.0,
        1.0,
    )
    assert (spec.vectors, spec.halves, spec.scale, spec.step_budget, spec.state_order) == (
        "float32",
        2,
        0.1,
        4,
        "document",
    )
    shutil.rmtree(source)
    assert read_spec(destination) == spec
    assert DualEncoder(destination, "cpu").dim == 32
    assert not list(destination.rglob("*.pt"))


def test_the_source_may_be_the_current_folder(
    source: Path, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(source)
    assert import_checkpoint(".", tmp_path / "destination", base).name == "source"


@pytest.mark.parametrize("alpha", [1, "1e-2", 0.05])
def test_numbers_may_be_written_in_any_way_yaml_has(
    source: Path, base: str, tmp_path: Path, alpha: Any
) -> None:
    """YAML 1.1 reads 1e-2 as text."""
    change_config(source, algo__pqn__hyperparams__alpha=alpha)
    assert import_checkpoint(str(source), tmp_path / "destination", base).shown_temperature == float(alpha)


class Payload:
    """Unpickling one creates a file."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("form", few(["beside the weights", "plain pickle", "torch file"]))
def test_code_in_a_pickle_never_runs(source: Path, base: str, tmp_path: Path, form: str) -> None:
    marker, path = tmp_path / "it-ran", source / "model_best.pt"
    if form == "plain pickle":
        path.write_bytes(pickle.dumps({"critic": Payload(marker)}, protocol=2))
    elif form == "torch file":
        torch.save({"critic": Payload(marker)}, path)
    else:
        torch.save(torch.load(path, weights_only=True) | {"notes": Payload(marker)}, path)
    refused(source, base, "holds pickled code or is damaged, so it is not loaded")
    assert not marker.exists()


def test_code_in_the_yaml_never_runs(source: Path, base: str, tmp_path: Path) -> None:
    marker = tmp_path / "it-ran"
    (source / "config.yaml").write_text(f"seed: !!python/object/apply:os.mkdir ['{marker}']\n")
    refused(source, base, "no plain YAML")
    assert not marker.exists()


def test_damaged_weight_files(source: Path, base: str) -> None:
    """Empty, cut, shuffled, and with single bytes changed where the archive keeps its directory and its
    pickle.
    """
    path = source / "model_best.pt"
    content, rng = path.read_bytes(), random.Random(0)
    for spoilt in (
        b"",
        b"\x80",
        content[:1000],
        content[: len(content) // 2],
        rng.randbytes(2000),
        b"PK\x03\x04" + rng.randbytes(500),
    ):
        path.write_bytes(spoilt)
        refused(source, base, r"model_best\.pt of source")
    for _ in range(40):
        spoilt = bytearray(content)
        spoilt[rng.choice([rng.randrange(2000), len(content) - 1 - rng.randrange(2000)])] ^= (
            1 << rng.randrange(8)
        )
        path.write_bytes(spoilt)
        with suppress(BadCheckpoint):  # and nothing else; some bytes nothing reads
            import_checkpoint(str(source), source.parent / "destination", base)
            shutil.rmtree(source.parent / "destination")


@pytest.mark.parametrize(
    "content",
    [
        [1, 2],
        {"policy": {}},
        {"critic": {"a": 1}},
        {"critic": {1: torch.zeros(2)}},
        {"critic": {}},
        torch.zeros(3),
    ],
)
def test_files_without_an_agent(source: Path, base: str, content: Any) -> None:
    torch.save(content, source / "model_best.pt")
    refused(source, base, "has no 'critic' weights|does not fit its base encoder")


def test_a_zip_of_something_else(source: Path, base: str) -> None:
    with zipfile.ZipFile(source / "model_best.pt", "w") as archive:
        archive.writestr("hello.txt", "hello")
    refused(source, base, "no readable PyTorch file")


@pytest.mark.parametrize("missing", ["config.yaml", "model_best.pt"])
def test_missing_files(source: Path, base: str, missing: str) -> None:
    (source / missing).unlink()
    refused(source, base, f"holds no {missing}")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [", "no plain YAML"),
        ("- 1", "holds no settings"),
        ("", "holds no settings"),
        ("\x00", "no plain YAML"),
    ],
)
def test_a_config_that_is_none(source: Path, base: str, content: str, words: str) -> None:
    (source / "config.yaml").write_text(content)
    refused(source, base, words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"envs__positions_processor": "spiral"},
            "positions 'spiral' are unknown; none, absolute and relative can be imported",
        ),
        ({"envs__positions_processor": None}, "envs.positions_processor=None should be of type str"),
        ({"envs__max_steps": "many"}, "envs.max_steps='many' should be of type int"),
        ({"envs__max_steps": 0}, "step_budget=0 is out of range"),
        ({"envs__positions_processor_dict__relative__step_size": -3}, "position_step=-3.0 is out of range"),
        ({"max_action_length": True}, "max_action_length=True should be of type int"),
        ({"envs__sort_by_index": "${envs.sort_by_index}"}, "should be of type bool"),
    ],
)
def test_settings_that_can_not_be_imported(
    source: Path, base: str, changes: dict[str, Any], words: str
) -> None:
    change_config(source, **changes)
    refused(source, base, words)


def test_settings_may_refer_to_each_other(source: Path, base: str, tmp_path: Path) -> None:
    change_config(source, envs__max_steps="${envs.env.max_steps}", envs__env__max_steps=7)
    assert import_checkpoint(str(source), tmp_path / "destination", base).step_budget == 7


def test_weights_of_another_base(source: Path, base: str, tmp_path: Path) -> None:
    other = Path(shutil.copytree(base, tmp_path / "other"))
    config = (other / "config.json").read_text().replace('"num_hidden_layers": 2', '"num_hidden_layers": 3')
    (other / "config.json").write_text(config)
    refused(
        source,
        str(other),
        "the state tower of .* does not fit its base encoder .*; name the right base with --base",
    )


def test_a_base_that_needs_code_of_its_own(source: Path, base: str, tmp_path: Path) -> None:
    other = Path(shutil.copytree(base, tmp_path / "other"))
    (other / "config.json").write_text('{"model_type": "bert", "auto_map": {"AutoModel": "evil.Model"}}')
    refused(source, str(other), "runs code of its own, which is never loaded")


def test_a_base_without_tokenizer(source: Path, base: str, tmp_path: Path) -> None:
    other = Path(shutil.copytree(base, tmp_path / "other"))
    (other / "tokenizer.json").unlink()
    refused(source, str(other), r"other has no tokenizer\.json")


def test_a_destination_in_use_is_left_alone(source: Path, base: str, tmp_path: Path) -> None:
    destination = tmp_path / "destination"
    import_checkpoint(str(source), destination, base)
    before = {path: path.read_bytes() for path in destination.rglob("*") if path.is_file()}
    with pytest.raises(BadCheckpoint, match="already holds a checkpoint"):
        import_checkpoint(str(source), destination, base)
    assert {path: path.read_bytes() for path in destination.rglob("*") if path.is_file()} == before


def test_a_destination_that_can_not_be_written(source: Path, base: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadCheckpoint, match="can't be written to"):
        import_checkpoint(str(source), tmp_path / "file" / "destination", base)


@pytest.mark.parametrize("hub_id", ["Q-RAG/qrag-ft-e5-on-hotpotqa", "no/such/place", "..", "x" * 300])
def test_the_hub_is_out_of_reach(tmp_path: Path, hub_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests run with the hub switched off; ids that are none are refused as well."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadCheckpoint, match=r"config\.yaml") as caught:
        import_checkpoint(hub_id, tmp_path / "destination")
    assert "\n" not in str(caught.value)
