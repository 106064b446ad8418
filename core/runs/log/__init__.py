"""The experiment log.

One DuckDB file, one owner process, every run with the Q-values of all chunks. `open_log` to record runs,
`open_reader` to look at them from another process. Callers pass an owner and nothing else: who may see what
is decided here, in SQL.
"""

from core.runs.log.inbox import InboxLog
from core.runs.log.measurements import (
    Evaluation,
    EvaluationEntry,
    list_evaluations,
    new_evaluation,
    read_evaluation,
)
from core.runs.log.queries import RunReader
from core.runs.log.reader import open_reader
from core.runs.log.records import (
    FinalStatus,
    LoggedDocument,
    LoggedRun,
    RunPage,
    RunRecord,
    RunRow,
    new_run_id,
)
from core.runs.log.store import ExperimentLog, RunLog, default_log_path, open_log
from core.runs.log.transfer import import_runs
from core.runs.log.wire import MalformedRuns

__all__ = [
    "Evaluation",
    "EvaluationEntry",
    "ExperimentLog",
    "FinalStatus",
    "InboxLog",
    "LoggedDocument",
    "LoggedRun",
    "MalformedRuns",
    "RunLog",
    "RunPage",
    "RunReader",
    "RunRecord",
    "RunRow",
    "default_log_path",
    "import_runs",
    "list_evaluations",
    "new_evaluation",
    "new_run_id",
    "open_log",
    "open_reader",
    "read_evaluation",
]
