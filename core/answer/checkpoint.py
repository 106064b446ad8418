"""A reader on disk, and how its network is loaded.

The folder holds reader.json, adapter/ (LoRA in the format of peft, bfloat16), heads.safetensors (float32)
and, for a base encoder that is neither on PyPI nor on the hub, base/. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from core.answer.confidence import Knots, check_knots
from core.answer.network import ReaderNetwork
from core.base.errors import BadCheckpoint
from core.base.home import ASSETS
from core.encode.adapter import adapter_file
from core.encode.checkpoint import (
    BaseName,
    adapted_encoder,
    check_files,
    load_head,
    max_positions_of,
    read_settings,
    sha256_of,
    write_settings,
)
from core.encode.packaged import MINILM, reader_asked, uses_mpnet
from core.encode.tokens import FastTokenizer

SPEC_FILE, HEADS_FILE, ADAPTER_FOLDER = "reader.json", "heads.safetensors", "adapter"
SMALL, LARGE = ASSETS / "reader", ASSETS / "reader-large"
AS_IT_IS: Knots = ((0.0, 0.0), (1.0, 1.0))
"""A confidence that is the model's own probability."""


class ReaderSpec(BaseModel):
    """Everything about a reader but its weights."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal[1] = 1
    name: str = Field(min_length=1, max_length=100)
    base: BaseName = MINILM
    """Hub id of the base encoder, or "." when architecture and tokenizer lie in the folder's `base/`."""
    base_sha256: str
    """Hash of the base encoder's weights that the adapter was trained on."""
    window: int = Field(320, ge=32)
    """Tokens read at once: question, passages and the marks between them."""
    longest_answer: int = Field(48, ge=1, le=256)
    """Tokens of a span, at most."""
    no_answer_bias: float = 0.0
    """Added to the score of "no answer" when it is compared with answers, in nats."""
    no_answer_growth: float = Field(0.0, ge=0, le=2)
    """Power of the number of windows by which the odds of "no answer" grow: each may hold a false one."""
    rank_cost: float = Field(0.0, ge=0, le=2)
    """Log-odds that an answer loses for each passage found before its own, where they have an order."""
    confidence: Knots = AS_IT_IS
    """Share of answers that are right by what is expected of them: a rising line through these points."""
    no_answer_confidence: Knots = AS_IT_IS
    """The same for "no answer in the evidence"."""
    least_confidence: float = Field(0.0, ge=0, le=1)
    """An answer of less confidence is a guess."""
    least_guess: float = Field(0.0, ge=0, le=1)
    """What has less confidence than that is not shown."""
    training: dict[str, Any] | None = None
    scores: dict[str, Any] | None = None

    @field_validator("confidence", "no_answer_confidence")
    @classmethod
    def _knots_rise(cls, knots: Knots) -> Knots:
        return check_knots(knots)


def shipped() -> Path:
    """Folder of the reader that answers unless another is named. Raises BadRequest for a bad $QRAG_READER."""
    return LARGE if reader_asked() == "large" or uses_mpnet() else SMALL


def read_reader_spec(folder: Path) -> ReaderSpec:
    """Raises BadCheckpoint on a missing or invalid reader.json."""
    return read_settings(ReaderSpec, folder / SPEC_FILE, "reader")


def write_reader_spec(folder: Path, spec: ReaderSpec) -> None:
    """Writes reader.json into an existing folder."""
    write_settings(folder / SPEC_FILE, spec)


def fingerprint_of(folder: Path, spec: ReaderSpec) -> str:
    """Names a reader: a hash over its settings and weights. Raises BadCheckpoint where a file is missing."""
    files = [adapter_file(folder / ADAPTER_FOLDER), folder / HEADS_FILE]
    check_files(files, f"reader {spec.name}")
    decides = spec.model_dump_json(exclude={"training", "scores"})
    return hashlib.sha256((decides + "".join(map(sha256_of, files))).encode()).hexdigest()[:32]


def load_network(folder: Path, spec: ReaderSpec) -> tuple[ReaderNetwork, FastTokenizer]:
    """The network in float32, in evaluation mode, with the adapter merged. Raises BadCheckpoint."""
    what = f"reader {spec.name}"
    encoder, base = adapted_encoder(spec.base, folder, spec.base_sha256, folder / ADAPTER_FOLDER, what)
    tokenizer = FastTokenizer(base)
    if spec.window > (most := max_positions_of(encoder)):
        raise BadCheckpoint(
            f"window {spec.window} of {what} is above {most}, what its encoder reads; correct {SPEC_FILE}"
        )
    network = ReaderNetwork(encoder, spec.longest_answer, tokenizer.pad_id)
    load_head(network.heads, folder / HEADS_FILE, what)
    network.eval().requires_grad_(False)
    return network, tokenizer
