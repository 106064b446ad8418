"""Imports checkpoints of the Q-RAG authors.

A folder or hub id with `config.yaml` and `model_best.pt` becomes our own format. The only place that reads a
pickle, through `torch.load(weights_only=True)`. Their code takes the mean over hidden states divided by 10,
two halves, positions by linspace truncated to integers, float32 throughout (see tests/data/reference).
"""

from __future__ import annotations

import pickle
import re
import shutil
from contextlib import suppress
from os.path import isdir
from pathlib import Path
from typing import Any

import torch
import yaml
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import save_file

from core.base.config import CHUNKERS
from core.base.errors import BadCheckpoint
from core.encode.checkpoint import (
    SPEC_FILE,
    WEIGHTS,
    CheckpointSpec,
    find_base,
    load_weights,
    served_architecture,
    write_spec,
)
from core.encode.hub import fetch
from core.encode.tokens import FastTokenizer

_PREFIXES = {"state": "state_embed.model.", "action": "action_embed.model.model."}
_BASE_FILES = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "sentencepiece.bpe.model",
)
_REFERENCE = re.compile(r"^\$\{([\w.]+)\}$")


def import_checkpoint(source: str, destination: Path, base: str | None = None) -> CheckpointSpec:
    """Converts `source` (folder or hub id) into `destination`, written once all fits; returns its spec.

    `base` overrides where the encoder is found. Raises BadCheckpoint.
    """
    if (destination / SPEC_FILE).exists():
        raise BadCheckpoint(
            f"{destination} already holds a checkpoint; choose another destination or remove it"
        )
    folder = _fetch(source)
    config = _read_config(folder / "config.yaml")
    critic = _read_critic(folder / "model_best.pt")
    spec = _spec_of(config, Path(source).resolve().name)
    base_folder = find_base(base or _get(config, "algo.model.model_name", str), weights=False)
    towers: dict[str, dict[str, torch.Tensor]] = {}
    for tower, prefix in _PREFIXES.items():
        weights = {
            name.removeprefix(prefix): tensor.float().contiguous()
            for name, tensor in critic.items()
            if name.startswith(prefix)
        }
        towers[tower] = {name: tensor for name, tensor in weights.items() if not name.startswith("pooler.")}
        load_weights(served_architecture(base_folder), towers[tower], f"the {tower} tower of {source}")
    FastTokenizer(base_folder)
    try:
        _write(destination, spec, towers, base_folder)
    except (OSError, SafetensorError) as error:
        raise BadCheckpoint(
            f"the checkpoint can't be written to {destination} ({error}); choose another destination"
        ) from error
    return spec


def _write(
    destination: Path, spec: CheckpointSpec, towers: dict[str, dict[str, torch.Tensor]], base_folder: Path
) -> None:
    """qrag.json comes last: a folder without it is no checkpoint."""
    (destination / "base").mkdir(parents=True, exist_ok=True)
    for name in _BASE_FILES:
        if (base_folder / name).is_file():
            shutil.copyfile(base_folder / name, destination / "base" / name)
    for tower, name in WEIGHTS.items():
        save_file(towers[tower], destination / name)
    write_spec(destination, spec)


def _fetch(source: str) -> Path:
    folder, names = Path(source), ["config.yaml", "model_best.pt"]
    if not isdir(source):
        folder = fetch(source, names, "pass a folder that holds config.yaml and model_best.pt")
    for name in names:
        if not (folder / name).is_file():
            raise BadCheckpoint(
                f"{source} holds no {name}; a checkpoint of the Q-RAG authors has config.yaml and"
                " model_best.pt"
            )
    return folder


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadCheckpoint(
            f"config.yaml of {path.parent.name} is no plain YAML; download it again"
        ) from error
    if not isinstance(config, dict):
        raise BadCheckpoint(f"config.yaml of {path.parent.name} holds no settings; download it again")
    return config


def _read_critic(path: Path) -> dict[str, torch.Tensor]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise BadCheckpoint(
            f"model_best.pt of {path.parent.name} holds pickled code or is damaged, so it is not loaded; ask"
            " for safetensors"
        ) from error
    except Exception as error:  # damaged bytes make the reader of pickles fail in any way
        raise BadCheckpoint(
            f"model_best.pt of {path.parent.name} is no readable PyTorch file; download it again"
        ) from error
    critic = content.get("critic") if isinstance(content, dict) else None
    if not isinstance(critic, dict) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in critic.items()
    ):
        raise BadCheckpoint(
            f"model_best.pt of {path.parent.name} has no 'critic' weights; only checkpoints of Q-RAG agents"
            " can be imported"
        )
    return critic


def _get(config: dict[str, Any], path: str, kind: type, default: Any = None) -> Any:
    """Value at a dotted path, `${...}` followed. Raises BadCheckpoint without value or default."""
    for _ in range(8):
        value: Any = config
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not (isinstance(value, str) and (reference := _REFERENCE.match(value))):
            break
        path = reference.group(1)
    if value is None and default is not None:
        return default
    if kind is float and isinstance(value, int | str):  # YAML 1.1 reads 1e-2 as text
        with suppress(ValueError):
            value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BadCheckpoint(
            f"config.yaml: {path}={value!r} should be of type {kind.__name__}; download the checkpoint again"
        )
    return value


def _spec_of(config: dict[str, Any], name: str) -> CheckpointSpec:
    kind = _get(config, "envs.positions_processor", str)
    if kind not in ("none", "absolute", "relative"):
        raise BadCheckpoint(
            f"config.yaml: positions {kind!r} are unknown; none, absolute and relative can be imported"
        )
    max_chunk_tokens = _get(config, "max_action_length", int)
    step = 10.0
    if kind == "relative":
        step = _get(config, f"envs.positions_processor_dict.{kind}.step_size", float, 20.0)
    try:
        return CheckpointSpec(
            name=name[:100],
            description="Imported from the Q-RAG authors' format.",
            trained=True,
            base=".",
            scale=0.1,
            halves=2,
            position_kind=kind,
            position_formula="linspace",
            position_step=step,
            position_span=float(int(0.9 * step)),
            position_resolution=1.0,
            state_order="document" if _get(config, "envs.sort_by_index", bool) else "choice",
            max_state_part_tokens=_get(config, "max_action_length_in_memory", int),
            max_chunk_tokens=max_chunk_tokens,
            vectors="float32",
            chunk_tokens=dict.fromkeys(CHUNKERS, min(64 if kind != "none" else 220, max_chunk_tokens - 2)),
            step_budget=_get(config, "envs.max_steps", int),
            shown_temperature=_get(config, "algo.pqn.hyperparams.alpha", float, 0.01),
            training={"imported_from": name, "seed": _get(config, "seed", int, 0)},
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise BadCheckpoint(
            f"config.yaml of {name}: {first['loc'][0]}={first['input']!r} is out of range ({first['msg']});"
            " correct it"
        ) from error
