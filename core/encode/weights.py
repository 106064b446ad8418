"""Weights of a checkpoint, loaded into encoders of transformers.

Safetensors only: nothing is unpickled here, and no code of an encoder's own is run. For modules that compute:
torch, transformers and peft take seconds to import.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModel, PreTrainedModel
from transformers.utils import logging as transformers_logging

from core.base.errors import BadCheckpoint, quoted
from core.encode.adapter import adapter_file, merge_adapter
from core.encode.checkpoint import WEIGHTS, CheckpointSpec, find_base, sha256_of

_building = threading.Lock()
"""transformers changes torch's functions for all threads while it builds a model."""


@dataclass(frozen=True, eq=False)
class Towers:
    """The two loaded encoders of a checkpoint; the same module twice where they share weights."""

    state: PreTrainedModel
    action: PreTrainedModel
    action_sha256: str
    fingerprint: str
    """Hash over the spec and all weights: names the agent in the log."""
    max_positions: int
    """Most tokens the base encoder reads at once."""


def architecture(base: Path) -> PreTrainedModel:
    """The base encoder untrained, without pooler. Raises BadCheckpoint where it needs code of its own."""
    _check_is_plain(base)
    transformers_logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(base, trust_remote_code=False)
        with _building:
            model = AutoModel.from_config(
                config,
                dtype=torch.float32,
                attn_implementation=None,  # sdpa where it has that, whatever config.json names
                trust_remote_code=False,
            )
    except Exception as error:  # whatever a hostile or foreign config.json provokes
        raise BadCheckpoint(
            f"transformers can't build the base encoder {base.name} from its config.json{quoted(str(error))};"
            " choose another one"
        ) from error
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # mean pooling reads hidden states; its weights would only look missing
    model.loss_function = None  # a trace asks for it, and transformers would log that it is missing
    if config.model_type == "mpnet":
        _tabulate_distances(model)
    return model


def _tabulate_distances(mpnet: PreTrainedModel) -> None:
    """Lets a table say into which bucket the distance of two tokens falls: OpenVINO would take its logarithm
    in bfloat16, and the wrong bucket.
    """
    most = int(mpnet.config.max_position_embeddings)
    buckets = mpnet.encoder.relative_position_bucket(torch.arange(-most, most + 1))

    def looked_up(distances: torch.Tensor, **_: object) -> torch.Tensor:
        found: torch.Tensor = buckets.to(distances.device)[distances + most]
        return found

    mpnet.encoder.relative_position_bucket = looked_up


def _check_is_plain(base: Path) -> None:
    """Raises BadCheckpoint."""
    try:
        values = json.loads((base / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadCheckpoint(
            f"the base encoder {base.name} has no readable config.json; fetch it again"
        ) from error
    if not isinstance(values, dict):
        raise BadCheckpoint(f"config.json of the base encoder {base.name} holds no settings; fetch it again")
    if "auto_map" in values:
        raise BadCheckpoint(
            f"the base encoder {base.name} runs code of its own, which is never loaded; choose an encoder"
            " that transformers knows"
        )


def load_encoder_weights(base: Path, path: Path, what: str) -> PreTrainedModel:
    """The base encoder in float32 with the weights of a file that belongs to `what`. Raises BadCheckpoint."""
    encoder = architecture(base)
    load_weights(encoder, read_weights(path, what), f"{path.name} of {what}")
    return encoder


def load_weights(model: PreTrainedModel, weights: dict[str, torch.Tensor], origin: str) -> None:
    """Fills a tower in place. Raises BadCheckpoint on missing, unknown or misshapen weights."""
    own = {
        name: tensor
        for name, tensor in weights.items()
        if not name.startswith("pooler.") and not name.endswith("embeddings.position_ids")
    }
    try:
        model.load_state_dict(own)
    except RuntimeError as error:
        raise BadCheckpoint(
            f"{origin} does not fit its base encoder{quoted(str(error))}; name the right base with --base"
        ) from error


def read_weights(path: Path, what: str) -> dict[str, torch.Tensor]:
    """Tensors of a file that belongs to `what`. Raises BadCheckpoint."""
    try:
        weights: dict[str, torch.Tensor] = load_file(path)
    except Exception as error:  # safetensors raises its own exception class from Rust
        raise BadCheckpoint(
            f"{path.name} of {what} is no readable safetensors file; import or download it again"
        ) from error
    return weights


def load_head(head: torch.nn.Module, path: Path, what: str) -> None:
    """Fills what stands on the encoder of `what`. Raises BadCheckpoint."""
    weights = read_weights(path, what)
    try:
        head.load_state_dict({name: weights[name] for name in head.state_dict()})
    except (KeyError, RuntimeError) as error:
        raise BadCheckpoint(
            f"{path.name} of {what} does not fit{quoted(str(error))}; train or download it again"
        ) from error


def adapted_encoder(
    name: str, folder: Path, sha256: str | None, adapter: Path, what: str
) -> tuple[PreTrainedModel, Path]:
    """The base encoder of that name, or of the folder of `what`, with an adapter merged into it, in
    float32; and where it lies. Raises BadCheckpoint.
    """
    base = find_base(name, folder)
    weights = base / "model.safetensors"
    if not weights.is_file():
        raise BadCheckpoint(f"the base encoder {base.name} has no {weights.name}; fetch it again")
    if sha256 is not None:
        check_base(sha256_of(weights), sha256, name, what)
    encoder = load_encoder_weights(base, weights, what)
    merge_adapter(encoder, adapter, f"of {what}")
    return encoder, base


def check_base(fingerprint: str, expected: str | None, base: str, what: str) -> None:
    """Raises BadCheckpoint where the base encoder's weights are not those that `what` was trained on."""
    if expected not in (None, fingerprint):
        raise BadCheckpoint(
            f"{what} was trained on other weights of {base} than the ones found; fetch that base encoder"
            " again"
        )


def max_positions_of(model: PreTrainedModel) -> int:
    """Tokens the encoder reads at once; RoBERTa and MPNet count positions from the padding's."""
    from_padding = any(name in model.config.model_type for name in ("roberta", "mpnet"))
    offset = model.config.pad_token_id + 1 if from_padding else 0
    return int(model.config.max_position_embeddings) - offset


def load_towers(folder: Path, spec: CheckpointSpec) -> Towers:
    """Both towers in float32, in evaluation mode. Raises BadCheckpoint."""
    base, what = find_base(spec.base, folder), f"checkpoint {spec.name}"
    files = (
        {tower: folder / name for tower, name in WEIGHTS.items()}
        if spec.weights == "towers"
        else dict.fromkeys(WEIGHTS, base / "model.safetensors")
    )
    adapters = {tower: folder / tower for tower in WEIGHTS} if spec.weights == "adapters" else {}
    for path in [*files.values(), *map(adapter_file, adapters.values())]:
        if not path.is_file():
            raise BadCheckpoint(f"{path.name} is missing in {what}; import or download it again")
    hashes = {tower: sha256_of(path) for tower, path in files.items()}
    for tower, adapter in adapters.items():
        check_base(hashes[tower], spec.base_sha256, spec.base, what)
        hashes[tower] = hashlib.sha256(
            (hashes[tower] + sha256_of(adapter_file(adapter))).encode()
        ).hexdigest()
    towers: dict[str, PreTrainedModel] = {}
    for tower, path in files.items():
        if tower == "action" and hashes["action"] == hashes["state"]:
            towers[tower] = towers["state"]
            continue
        towers[tower] = load_encoder_weights(base, path, what)
        if tower in adapters:
            merge_adapter(towers[tower], adapters[tower], f"{tower} of {what}")
        towers[tower].eval().requires_grad_(False)
    # an agent from before there were these keeps its name
    newer = {
        "review_threshold": None,
        "word_weight": 0.0,
        "reads_choices": True,
        "rerank_weight": 0.0,
        "rerank_base": None,
        "rerank_base_sha256": None,
        "rerank_pool": 16,
        "rerank_first": None,
        "rerank_beside": 0.0,
    }
    unused = {name for name, value in newer.items() if getattr(spec, name) == value}
    decides = spec.model_dump_json(
        exclude={"scores", "description", "suits", "lead_curves", "reranked"} | unused
    )
    return Towers(
        state=towers["state"],
        action=towers["action"],
        action_sha256=hashes["action"],
        fingerprint=hashlib.sha256((decides + hashes["state"] + hashes["action"]).encode()).hexdigest()[:32],
        max_positions=max_positions_of(towers["state"]),
    )
