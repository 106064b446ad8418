"""What a device computes in, and which one is asked for."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch

from core.base.errors import BadRequest
from core.encode.checkpoint import CheckpointSpec

_DEVICES = ("cpu", "cuda")


@cache
def processor_has_bfloat16() -> bool:
    """Whether bfloat16 products are hardware instructions (AVX512-BF16, AMX): emulated, they are slow."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def compute_dtype(spec: CheckpointSpec, device: torch.device) -> torch.dtype:
    """Precision of the towers on a device."""
    return torch.float32 if spec.vectors == "float32" else fast_dtype(device)


def fast_dtype(device: torch.device) -> torch.dtype:
    """The precision in which a device multiplies fastest without losing the range of float32."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    return torch.bfloat16 if processor_has_bfloat16() else torch.float32


def find_device(name: str | None) -> torch.device:
    """A device by name, cuda where there is one by default. Raises BadRequest."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # the latter where torch was built without CUDA
        raise BadRequest(
            f"device {name!r} is not on this machine; choose cpu, or cuda where there is a GPU"
        ) from error
    if device.type not in _DEVICES:
        raise BadRequest(f"device {name!r} is not supported; choose {' or '.join(_DEVICES)}")
    return device
