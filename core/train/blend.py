"""A weighted mean of two agents' adapters: an agent between one and what further training made of it.

Further training gains on what it saw much of and loses a little elsewhere; between the two often lies an agent that has most of both
(Wortsman et al. 2022, "Robust fine-tuning of zero-shot models"). The changes of each layer are averaged as a whole, then cut back to their rank.
Knows nothing of training itself.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from core.encode.adapter import blend_adapters
from core.encode.checkpoint import CheckpointSpec, read_spec, write_spec
from core.errors import BadCheckpoint, BadRequest

_CALIBRATED = {"step_budget", "temperature", "stop_threshold", "review_threshold", "shown_temperature", "q_range", "scores"}
_FREE = {"name", "description", "suits", "training", "chunk_tokens", "one_sentence"} | _CALIBRATED
"""What two agents may differ in: names, and what is calibrated or chosen for serving."""
_OF_TRAINING = ("progress.jsonl", "resume.safetensors", "train.json", "candidate")
"""Files that a training leaves in its folder."""


def blend(first: Path, second: Path, share: float, out: Path) -> CheckpointSpec:
    """Writes (1 - share) of the first agent and `share` of the second to a new folder, served as the second is until it is calibrated; returns its spec.

    Raises BadRequest, BadCheckpoint where the two have no common base, rank or positions.
    """
    if not 0 < share < 1:
        raise BadRequest(f"share {share} must be between 0 and 1; 0.5 is the mean of both agents")
    if out.exists():
        raise BadRequest(f"{out} is there already; name a new folder with --out")
    ours, theirs = read_spec(first), read_spec(second)
    for spec in (ours, theirs):
        if spec.weights != "adapters":
            raise BadCheckpoint(f"{spec.name} has whole towers, not adapters; blend agents that were trained with a rank above 0")
    differing = sorted(name for name, value in _served(ours).items() if _served(theirs)[name] != value)
    if differing:
        raise BadCheckpoint(f"{ours.name} and {theirs.name} differ in {differing[0]}; blend an agent and what further training made of it")
    parts = [{"share": round(part, 6), **(spec.training or {})} for part, spec in ((1 - share, ours), (share, theirs))]
    training: dict[str, Any] = {"data": (theirs.training or {}).get("data", "not stated"), "blend": parts}
    spec = theirs.model_copy(update={"training": training, "scores": None})
    try:
        shutil.copytree(second, out, ignore=shutil.ignore_patterns(*_OF_TRAINING))
        for tower in ("state", "action"):
            blend_adapters(out / tower, first / tower, second / tower, share, f"{tower} of {ours.name} and {theirs.name}")
        write_spec(out, spec)
    except (OSError, BadCheckpoint) as error:
        shutil.rmtree(out, ignore_errors=True)
        if isinstance(error, BadCheckpoint):
            raise
        raise BadCheckpoint(f"the agent can't be written to {out} ({error.strerror}); name another folder with --out") from error
    return spec


def _served(spec: CheckpointSpec) -> dict[str, Any]:
    return spec.model_dump(exclude=_FREE)
