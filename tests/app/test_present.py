"""What the page says of opening and of a run: words only."""

from __future__ import annotations

import json

import pytest

from app.pages.explore import view as present
from app.pages.widgets.notices import progress
from core.base.config import EpisodeConfig
from core.base.events import RunStarted, StepTaken, Stopped, Trace
from core.corpus.opening import OpenProgress


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        ("reading", "Reading: 3 of 1,200 parts"),
        ("chunking", "Cutting into chunks: 3 of 1,200 characters"),
        ("embedding", "Embedding: 3 of 1,200 chunks"),
        ("indexing", "Building the index: 3 of 1,200 chunks"),
    ],
)
def test_progress_counts_what_a_stage_works_on(stage: str, words: str) -> None:
    assert f'"{words}"' in json.dumps(progress(OpenProgress(stage, 3, 1_200)))  # type: ignore[arg-type]


def test_what_back_takes_away_takes_the_end_with_it() -> None:
    steps = tuple(StepTaken(step, step, 0.5, 1.0, 0.5, None, "", 0.0) for step in (1, 2))
    trace = Trace(RunStarted("where ?", "qrag", "", 9, EpisodeConfig()), steps, Stopped("budget", 2))
    assert present.first_steps(trace, 2) == trace
    assert present.first_steps(trace, 1) == Trace(trace.started, steps[:1])
