"""Measurements that others can repeat: `python -m benchmarks NAME --json`.

The form of a result is here; each module makes one. Every ratio is ours over theirs, both measured in the
same run on the same machine, so that it says something wherever it is run.
"""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measured figure."""

    measure: str
    value: float
    unit: str
    against: str | None = None
    """What it is compared with, None where it stands alone."""
    ratio: float | None = None
    """Ours over theirs: below 1 is better for times, above 1 for rates and scores."""


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    import faiss
    import torch

    from core.encode.engine import processor

    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "faiss": faiss.__version__,
    }


@dataclass(frozen=True)
class Seconds:
    """What a piece of work took."""

    wall: float
    processors: float


def median_times(
    works: dict[str, Callable[[], object]],
    repeats: int,
    processor_seconds: Callable[[], float] = time.process_time,
) -> dict[str, Seconds]:
    """Medians of each piece of work, on the wall and of the processors. They take turns, so that whatever
    else the machine does hits all alike; one warm-up each.
    """
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for repeat in range(repeats + 1):
        for name, work in works.items():
            began, used = time.perf_counter(), processor_seconds()
            work()
            if repeat:
                measured[name].append((time.perf_counter() - began, processor_seconds() - used))
    return {
        name: Seconds(*(statistics.median(pair[i] for pair in pairs) for i in (0, 1)))
        for name, pairs in measured.items()
    }


def median_seconds(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """Those on the wall."""
    return {name: seconds.wall for name, seconds in median_times(works, repeats).items()}
