"""The fresh log that tests of the log have, too."""

from tests.core.runs.log.conftest import log, path

__all__ = ["log", "path"]
