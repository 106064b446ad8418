"""Where runs and measurements go.

The log itself, or its inbox when another process owns the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from core.base.events import Event
from core.base.types import ChunkTable, Document
from core.runs.log.measurements import Evaluation, Training
from core.runs.log.records import DetailName, FinalStatus, RunRecord


class RunLog(Protocol):
    """What both can do. Every method may be called from any thread."""

    def start(
        self, record: RunRecord, documents: Sequence[Document], tables: Sequence[ChunkTable] | None = None
    ) -> None:
        """Begin a run."""

    def record(self, run_id: str, event: Event) -> None:
        """Add one event with its scores."""

    def attach(self, run_id: str, name: DetailName, value: dict[str, Any], owner: str | None) -> None:
        """Put a JSON object beside a run that goes on, for one of that name. Raises RunNotFound, LogError."""

    def finish(self, run_id: str, status: FinalStatus, message: str | None = None) -> None:
        """End a run. Raises LogError when it can't be written."""

    def keep(self, measurement: Evaluation | Training) -> None:
        """Keeps an evaluation, a training or its new events, once. Raises LogError when it can't."""

    def flush(self) -> None:
        """Wait until everything is written. Raises the first LogError since the last flush."""

    def close(self) -> None:
        """Give up the log. Further calls do nothing."""
