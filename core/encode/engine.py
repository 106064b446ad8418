"""What makes vectors of chunks, and of pairs for a reranker.

OpenVINO where it is installed and quicker, torch otherwise. OpenVINO takes the encoder as torch traced it and
computes in the precision that torch would have; its graph is made when the first batch comes, in 0.8 to 1.7
CPU seconds. In float32 its vectors are torch's within 1e-6; in bfloat16 the two round in other places, so
each has a name for its vectors. Which one is quicker is measured once for each processor, version, shape of
tower, pass and number of threads, and kept in the home folder. States are torch's, so that logged Q stays.
"""

from __future__ import annotations

import copy
import logging
import os
import platform
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from core.base.errors import BadRequest
from core.base.home import home, make_folder
from core.base.later import torch
from core.encode.checkpoint import max_positions_of
from core.encode.forward import SERVED_WIDTH_STEP, padded_width, rounded_width

if TYPE_CHECKING:
    from core.encode.mpnet import Encoder
    from core.encode.traced import Pass

ENGINE_VARIABLE = "QRAG_ENGINE"
"""torch or openvino: nothing is measured."""
MEASURED_FILE = "engines.json"
LEAST_GAIN = 1.1
"""Times torch's rate from which OpenVINO is taken: less is not worth another library in memory."""
LEAST_COSINE = 0.999
"""Between the two engines' vectors of a text; in bfloat16 0.9998 was the least on a novel."""

Batch = tuple[list[int], tuple[np.ndarray, ...]]
"""Places of some texts, and their tokens as (B, T) int64 arrays: ids, mask and perhaps segments."""
PassOf = Callable[["Encoder"], "Pass"]
"""What is computed with an encoder, (B, D) float32 of such arrays."""
_UnderWay = deque[tuple[list[int], Any, tuple[np.ndarray, ...]]]
"""Places, request and inputs of each batch."""

_TORCH_TOKENS = {"cpu": 4_096, "cuda": 16_384}
"""On a GPU few enough for a small one: with 131,072 a process held up to 65 GB."""
_OPENVINO_TOKENS = 1_024
"""Padded tokens a batch: several are under way at once."""
_OPENVINO_WIDTH_STEP = 4
"""Each width keeps 0.6 MB of kernels; every other step pads sentences by a third less than torch's."""
_PROBE = (40, 48)
"""Rows and tokens of what is timed."""
_ROUNDS = 3
_LONG = 4.0
"""Seconds of torch after which no further round is begun."""


class TorchEngine:
    """One batch after the other, on any device."""

    def __init__(self, tower: Encoder, pass_of: PassOf, n_inputs: int = 2) -> None:
        """`tower` on its device, in its precision, not to be changed from now on."""
        from core.encode.traced import TracedLater  # with torch

        self._tower, self._pass = tower, TracedLater(pass_of(tower), tower, n_inputs)
        self.vectors_name = _precision(tower.dtype)
        """Names what the values of its vectors depend on."""
        self.name = f"torch, {self.vectors_name}"
        """As it is told to people."""
        self.batch_tokens, self.at_once = _TORCH_TOKENS[tower.device.type], 1
        """Most padded tokens a batch, and how many batches are computed side by side."""
        self.rate: float | None = None
        """Tokens a second when it was measured here; None where it was not."""

    def run(self, batches: Iterable[Batch]) -> Iterator[tuple[list[int], np.ndarray]]:
        """(places, (b, D) float32) of each batch, in order, drawn while earlier ones are computed."""
        for places, inputs in batches:
            yield places, self.vectors(*inputs)

    def width(self, n_tokens: int) -> int:
        """Tokens of a row of `n_tokens` after padding."""
        return padded_width(n_tokens, self._tower, SERVED_WIDTH_STEP)

    def vectors(self, *inputs: np.ndarray) -> np.ndarray:
        """(b, D) float32 of one batch."""
        device = self._tower.device
        with torch.inference_mode():
            vectors = self._pass(*(torch.from_numpy(one).to(device) for one in inputs))
        return vectors.cpu().numpy()


class OpenVinoEngine:
    """As many batches at once as torch has threads. Thread-safe."""

    batch_tokens = _OPENVINO_TOKENS

    def __init__(self, tower: Encoder, pass_of: PassOf, dtype: torch.dtype, n_inputs: int = 2) -> None:
        """`tower` in float32, not to be changed from now on; `dtype` is what to compute in."""
        self._pass: Pass | None = pass_of(tower)
        self._tower: Encoder | None = tower
        self._dtype, self._n_inputs, self._most = dtype, n_inputs, max_positions_of(tower)
        self.at_once = torch.get_num_threads()
        self.rate: float | None = None
        self._compiled: Any = None
        self._compiling = threading.Lock()
        self.vectors_name = "float32" if dtype == torch.float32 else f"openvino-{_precision(dtype)}"
        self.name = f"OpenVINO, {_precision(dtype)}"

    def width(self, n_tokens: int) -> int:
        """See `TorchEngine`."""
        return rounded_width(n_tokens, _OPENVINO_WIDTH_STEP, self._most)

    def run(self, batches: Iterable[Batch]) -> Iterator[tuple[list[int], np.ndarray]]:
        """See `TorchEngine`."""
        idle: list[Any] = []
        under_way: _UnderWay = deque()
        try:
            for places, inputs in batches:
                if not idle and not under_way:
                    compiled = self._ready()  # a request more than threads, so that none waits for Python
                    idle = [compiled.create_infer_request() for _ in range(self.at_once + 1)]
                if not idle:
                    yield self._finished(under_way, idle)
                request = idle.pop()
                request.start_async(inputs, share_inputs=True)
                under_way.append((places, request, inputs))
            while under_way:
                yield self._finished(under_way, idle)
        finally:
            for _, request, _ in under_way:  # it reads arrays that would be gone
                request.wait()

    @staticmethod
    def _finished(under_way: _UnderWay, idle: list[Any]) -> tuple[list[int], np.ndarray]:
        """The oldest batch, once it is done; its request is free for the next."""
        places, request, _ = under_way[0]
        request.wait()
        vectors = np.array(request.get_output_tensor(0).data, dtype=np.float32)
        under_way.popleft()
        idle.append(request)
        return places, vectors

    def _ready(self) -> Any:
        """The compiled tower; its float32 weights go as soon as there is one."""
        with self._compiling:
            if self._compiled is None:
                assert self._pass is not None
                assert self._tower is not None
                self._compiled = _compile(self._pass, self._tower, self._dtype, self._n_inputs)
                self._pass = self._tower = None
            return self._compiled


Engine = TorchEngine | OpenVinoEngine
"""Makes a vector of each row of tokens."""


class Measured(BaseModel):
    """Both engines on the same batch."""

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    torch_rate: float = Field(gt=0)
    """Tokens a second."""
    openvino_rate: float = Field(gt=0)
    cosine: float
    """The least between the two vectors of a row."""

    @property
    def gain(self) -> float:
        """OpenVINO's rate over torch's."""
        return self.openvino_rate / self.torch_rate

    def openvino_wins(self, least_cosine: float = LEAST_COSINE) -> bool:
        """Whether it is quicker and says the same."""
        return self.gain >= LEAST_GAIN and self.cosine >= least_cosine


_MEASURED = TypeAdapter(dict[str, Measured])


def engine_asked() -> str:
    """What $QRAG_ENGINE says, mostly empty. Raises BadRequest where that is no engine, or not installed."""
    name = os.environ.get(ENGINE_VARIABLE, "")
    if name not in ("", "torch", "openvino"):
        raise BadRequest(
            f"{ENGINE_VARIABLE}={name!r} is no engine; choose torch or openvino, or leave it out"
        )
    if name == "openvino" and find_spec("openvino") is None:
        raise BadRequest(
            f"{ENGINE_VARIABLE}=openvino, which is not installed; pip install openvino, or leave the"
            " variable out"
        )
    return name


def openvino_engine(
    tower: Encoder,
    pass_of: PassOf,
    dtype: torch.dtype,
    n_inputs: int = 2,
    *,
    least_cosine: float = LEAST_COSINE,
    exact: bool = False,
) -> OpenVinoEngine | None:
    """The engine for a float32 tower on a CPU, its own from then on; None where torch does it: where OpenVINO
    is missing or slower, and where vectors must be `exact`ly the reference's.

    Measures where nobody did before, two to five seconds. Raises BadRequest for a wrong $QRAG_ENGINE.
    """
    name, installed = engine_asked(), find_spec("openvino") is not None
    if name == "torch" or not installed or exact:
        return None
    engine = OpenVinoEngine(tower, pass_of, dtype, n_inputs)
    if name == "openvino":
        return engine
    config = tower.config
    shape = f"{config.model_type}, {config.num_hidden_layers} layers of {config.hidden_size}"
    key = (
        f"{processor()} | torch {torch.__version__} | openvino {version('openvino')} | {_precision(dtype)} |"
        f" {shape} | {pass_of.__qualname__} | {torch.get_num_threads()} threads"
    )
    measured = known_measurements().get(key)
    if measured is None:
        measured = _measure_and_keep(key, engine, tower, pass_of, dtype, n_inputs)
    if measured is None or not measured.openvino_wins(least_cosine):
        return None
    engine.rate = measured.openvino_rate
    engine.name = f"{engine.name}, {measured.gain:.1f} times torch when it was measured here"
    return engine


def known_measurements() -> dict[str, Measured]:
    """What was measured with this home folder; nothing where the file is missing or damaged."""
    try:
        return _MEASURED.validate_json((home() / MEASURED_FILE).read_bytes())
    except (OSError, ValidationError):
        return {}


def _measure_and_keep(
    key: str, engine: OpenVinoEngine, tower: Encoder, pass_of: PassOf, dtype: torch.dtype, n_inputs: int
) -> Measured | None:
    """None where OpenVINO can't compute this tower."""
    ours = tower if dtype == torch.float32 else copy.deepcopy(tower).to(dtype)
    theirs = TorchEngine(ours, pass_of, n_inputs)
    try:
        measured = measure(theirs, engine, _probe(tower)[:n_inputs])
    except Exception:  # whatever a foreign library makes of a foreign architecture
        logging.getLogger(__name__).warning(
            "OpenVINO can't compute this encoder, so torch does", exc_info=True
        )
        return None
    path = home() / MEASURED_FILE
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with suppress(OSError):  # it would only be measured again
        make_folder(path.parent)
        temporary.write_bytes(_MEASURED.dump_json({**known_measurements(), key: measured}, indent=1))
        temporary.replace(path)
    return measured


def _probe(tower: Encoder) -> tuple[np.ndarray, ...]:
    """ids, mask and segments of what is timed."""
    n_rows, n_tokens = _PROBE[0], min(_PROBE[1], max_positions_of(tower))
    ids = ((np.arange(n_rows * n_tokens) * 7919) % tower.config.vocab_size).reshape(n_rows, n_tokens)
    return ids, np.ones_like(ids), np.zeros_like(ids)


def measure(torch_engine: Engine, openvino: Engine, inputs: tuple[np.ndarray, ...]) -> Measured:
    """Both on the same rows, in turns; the best of some rounds, since other work only makes a round longer.
    One is enough where it takes seconds.
    """
    n_tokens = inputs[0].shape[1]
    seconds: dict[str, list[float]] = {"torch": [], "openvino": []}
    vectors = {}
    while len(seconds["torch"]) < 2 or (len(seconds["torch"]) <= _ROUNDS and sum(seconds["torch"]) < _LONG):
        for name, engine in (("torch", torch_engine), ("openvino", openvino)):
            batches, began = _batches(inputs, engine.batch_tokens // n_tokens), time.perf_counter()
            vectors[name] = np.concatenate([batch for _, batch in engine.run(batches)])
            seconds[name].append(time.perf_counter() - began)
    # the first one also compiles
    rates = {name: inputs[0].size / min(rounds[1:]) for name, rounds in seconds.items()}
    cosines = (
        (vectors["torch"] * vectors["openvino"]).sum(1)
        / np.linalg.norm(vectors["torch"], axis=1)
        / np.linalg.norm(vectors["openvino"], axis=1)
    )
    return Measured(torch_rate=rates["torch"], openvino_rate=rates["openvino"], cosine=float(cosines.min()))


def _batches(inputs: tuple[np.ndarray, ...], size: int) -> Iterator[Batch]:
    n_rows = len(inputs[0])
    for lo in range(0, n_rows, size):
        yield list(range(lo, min(lo + size, n_rows))), tuple(one[lo : lo + size] for one in inputs)


def _compile(plain: Pass, tower: Encoder, dtype: torch.dtype, n_inputs: int) -> Any:
    """One stream a thread. Threads are not bound to cores: other processes may be on them."""
    # its telemetry, which would send this machine's number when imported, counts as missing
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    from core.encode.traced import trace

    module, example = trace(plain, tower, n_inputs)
    with torch.no_grad():
        graph = openvino.convert_model(
            module, example_input=example, input=[openvino.PartialShape([-1, -1])] * len(example)
        )
    settings: dict[str, Any] = {
        "INFERENCE_PRECISION_HINT": "bf16" if dtype == torch.bfloat16 else "f32",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
        "NUM_STREAMS": torch.get_num_threads(),
        "ENABLE_CPU_PINNING": False,
    }
    return openvino.Core().compile_model(graph, "CPU", settings)


def _precision(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@cache
def cpuinfo() -> str:
    """What Linux says of the processors; nothing elsewhere."""
    with suppress(OSError):
        return Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    return ""


def processor() -> str:
    """The processor's name."""
    found = re.search(r"^model name.*?:(.*)", cpuinfo(), re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()
