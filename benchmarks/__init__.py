"""Measurements that others can repeat: `python -m benchmarks NAME --json`.

Every ratio is ours over theirs, both measured in the same run on the same machine, so that it says something
wherever it is run.
"""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]


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
    """Medians of each piece of work, after one warm-up each. They take turns: what else goes on hits all
    alike.
    """
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for repeat in range(repeats + 1):
        for name, work in works.items():
            began, used = time.perf_counter(), processor_seconds()
            work()
            if repeat:
                measured[name].append((time.perf_counter() - began, processor_seconds() - used))
    return {
        name: Seconds(*(statistics.median(times) for times in zip(*pairs, strict=True)))
        for name, pairs in measured.items()
    }


def cpu_seconds(pid: int) -> float:
    """Of a process and all its threads so far, to a hundredth."""
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def empty_home() -> Iterator[Path]:
    """A home folder without caches, gone afterwards."""
    with tempfile.TemporaryDirectory() as home, patch.dict(os.environ, {"QRAG_HOME": home}):
        yield Path(home)
