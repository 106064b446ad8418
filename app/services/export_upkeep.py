"""The log's copy on the hub, kept while the app runs.

What a Space has instead of a disk that lasts. The copy is taken in before the first visitor comes, as far as
that is quick, then looked at every few minutes, and once more when the app closes. Whatever fails is one line
in the app's log, and is tried again at the next look.
"""

from __future__ import annotations

import logging
import threading

from core.base.errors import UserError
from core.runs.hub.client import check_repository, connect
from core.runs.hub.export import LogCopy
from core.runs.log import ExperimentLog
from core.runs.log.transfer import EndedRun, ended_runs

PAUSE = 300.0
"""Seconds between looks: what a killed Space loses at most."""
RESTORE_PATIENCE = 60.0
"""Seconds that the app waits for its runs before it opens its doors; they go on coming in behind them."""
CLOSE_PATIENCE = 20.0
"""Seconds for the last push: a Space that is stopped is killed soon after."""

_logger = logging.getLogger(__name__)


def copy_named(repository: str) -> LogCopy:
    """The copy in a data set, OWNER/NAME. Raises BadRequest, HubError for what no trying again would mend."""
    return LogCopy(connect(), check_repository(repository))


class ExportUpkeep:
    """A thread that keeps log and copy the same. Begin it with `begin`."""

    def __init__(self, log: ExperimentLog, copy: LogCopy, pause: float = PAUSE) -> None:
        self._log, self._copy, self._pause = log, copy, pause
        self._same: tuple[frozenset[EndedRun], str | None] | None = None
        """Runs of the log, and commit of the copy, with which nothing is left to do."""
        self._told: set[str] = set()
        """Of damaged files, once each."""
        self._restored = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="export-upkeep", daemon=True)
        self._thread.start()

    @classmethod
    def begin(cls, log: ExperimentLog, copy: LogCopy) -> ExportUpkeep:
        """Waits a while for the copy's runs to come in."""
        upkeep = cls(log, copy)
        if not upkeep._restored.wait(RESTORE_PATIENCE):
            _logger.warning("the runs of %s are still coming in", copy.repository)
        return upkeep

    def close(self) -> None:
        """A last look of at most CLOSE_PATIENCE; call it before the log is closed, when all runs ended."""
        self._closing.set()
        self._thread.join(CLOSE_PATIENCE)
        if self._thread.is_alive():
            late = f"the last push to {self._copy.repository} did not end in time"
            _logger.warning("%s; what it held back is lost if this machine's disk is", late)

    def _work(self) -> None:
        self._look()
        self._restored.set()
        while not self._closing.wait(self._pause):
            self._look()
        self._look()

    def _look(self) -> None:
        try:
            self._bring_together()
        except UserError as error:
            _logger.warning("the copy of the log: %s (next try in %.0f s)", error, self._pause)
        except Exception:
            _logger.exception("the copy of the log (next try in %.0f s)", self._pause)

    def _bring_together(self) -> None:
        commit = self._copy.commit()
        if self._same == (frozenset(ended_runs(self._log)), commit):
            return
        if commit is not None:
            damaged = {*self._copy.pull(self._log).damaged}
            for sentence in sorted(damaged - self._told):
                _logger.warning("%s", sentence)
            self._told |= damaged
        runs = frozenset(ended_runs(self._log))
        if runs or commit is not None:
            self._copy.push(self._log)
        self._same = (runs, commit)  # not what a push made of it: another's commit may lie below that
