"""Where this machine keeps what the library stores: caches and the default log."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """`$QRAG_HOME`, else `~/.local/share/qrag-explorer`. Created by whoever first writes into it."""
    return Path(os.environ.get("QRAG_HOME") or Path.home() / ".local" / "share" / "qrag-explorer")
