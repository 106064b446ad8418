"""A weighted sum of agents' adapters.

Between an agent and what further training made of it, or of several seeds and their base encoder. Training
gains on what it saw much of and loses a little elsewhere; part of the way often has most of both (Wortsman et
al. 2022, "Robust fine-tuning of zero-shot models"), and the mean of several seeds is better than each ("Model
soups", of the same year). The changes of each layer are summed as a whole, then cut back to their rank.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.base.errors import BadCheckpoint, BadRequest
from core.encode.adapter import blend_adapters
from core.encode.checkpoint import CheckpointSpec, read_spec, write_spec

_CALIBRATED = {"step_budget", "temperature", "stop_threshold", "review_threshold", "scores"}
_CALIBRATED |= {"shown_temperature", "q_range", "lead_curves"}
_RERANKER = {name for name in CheckpointSpec.model_fields if name.startswith("rerank")}
"""The last agent's goes along."""
_FREE = {"name", "description", "suits", "training", "chunk_tokens", "one_sentence"} | _CALIBRATED | _RERANKER
"""What the agents may differ in: names, and what is calibrated or chosen for serving."""
_OF_TRAINING = ("progress.jsonl", "resume.safetensors", "train.json", "candidate")
"""Files that a training leaves in its folder."""


def blend(agents: Sequence[Path], shares: Sequence[float], out: Path) -> CheckpointSpec:
    """Writes the agents' changes, each times its share, to a new folder; what the shares leave to 1 stays the
    base encoder's.

    Called as its folder is, and served as the last agent until it is calibrated; returns its spec. Raises
    BadRequest, BadCheckpoint where they have no common base, rank or positions.
    """
    if not agents or len(shares) != len(agents):
        raise BadRequest(f"{len(agents)} agents and {len(shares)} shares; name one share for each agent")
    if not all(0 < share <= 1 for share in shares) or sum(shares) > 1 + 1e-9:
        raise BadRequest(
            f"shares {', '.join(map(str, shares))} must be above 0 and sum to at most 1; 0.5,0.5 is the mean"
            " of two agents"
        )
    if out.exists():
        raise BadRequest(f"{out} is there already; name a new folder with --out")
    if not 1 <= len(name := out.resolve().name) <= 100:
        raise BadRequest(
            f"the agent's name, that of its folder, has {len(name)} characters, there must be between 1 and"
            " 100; name another folder with --out"
        )
    specs = [read_spec(agent) for agent in agents]
    last, served = specs[-1], [spec.model_dump(exclude=_FREE) for spec in specs]
    for spec, fields in zip(specs, served, strict=True):
        if spec.weights != "adapters":
            raise BadCheckpoint(
                f"{spec.name} has whole towers, not adapters; blend agents that were trained with a rank"
                " above 0"
            )
        if differing := sorted(name for name, value in fields.items() if served[-1][name] != value):
            raise BadCheckpoint(
                f"{spec.name} and {last.name} differ in {differing[0]}; blend agents of one recipe"
            )
    parts = [
        {"share": round(share, 6), **(spec.training or {})} for share, spec in zip(shares, specs, strict=True)
    ]
    training: dict[str, Any] = {"data": (last.training or {}).get("data", "not stated"), "blend": parts}
    spec = last.model_copy(update={"name": name, "training": training, "scores": None, "lead_curves": {}})
    try:
        shutil.copytree(agents[-1], out, ignore=shutil.ignore_patterns(*_OF_TRAINING))
        for tower in ("state", "action"):
            origin = f"{tower} of {' and '.join(spec.name for spec in specs)}"
            blend_adapters(out / tower, [agent / tower for agent in agents], shares, origin)
        write_spec(out, spec)
    except (OSError, BadCheckpoint) as error:
        shutil.rmtree(out, ignore_errors=True)
        if isinstance(error, BadCheckpoint):
            raise
        raise BadCheckpoint(
            f"the agent can't be written to {out} ({error.strerror}); name another folder with --out"
        ) from error
    return spec
