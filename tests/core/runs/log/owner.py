"""A process that owns the log and does what its stdin says."""

from __future__ import annotations

import sys
from pathlib import Path

from core.runs.log import ExperimentLog
from tests.core.runs.log.recording import log_run, make_record

if __name__ == "__main__":
    with ExperimentLog.open(Path(sys.argv[1])) as log:
        print("open", flush=True)
        for line in sys.stdin:
            match line.strip():
                case "run":
                    print(log_run(log, make_record()).run_id, flush=True)
                case "snapshot":
                    print(log.snapshot(), flush=True)
                case "import":
                    print(log.import_inbox(), flush=True)
                case "close":
                    break
    print("closed", flush=True)
