"""An open search over a few sentences, with an agent that runs in milliseconds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.base.config import EpisodeConfig
from core.base.types import Document
from core.integrations.adapters.search import Search, open_search

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when it is imported

PEOPLE = ("Anna", "Bela", "Cyrus", "Dora", "Emil")
DOCUMENTS = (
    Document("Hill", "".join(f"# {name}\n\n{name} went up the hill.\n\n" for name in PEOPLE), "markdown"),
    Document("Mill", "".join(f"# {name}\n\n{name} slept in the mill.\n\n" for name in PEOPLE), "markdown"),
)
QUESTION = "Who slept in the mill?"


@pytest.fixture
def search(tiny_checkpoints: dict[str, Path]) -> Search:
    return open_search(
        DOCUMENTS, checkpoint=str(next(iter(tiny_checkpoints.values()))), config=EpisodeConfig()
    )
