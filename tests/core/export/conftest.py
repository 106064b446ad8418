"""The fresh log that tests of the log have, too."""

from tests.core.log.conftest import log, path

__all__ = ["log", "path"]
