"""Events and the trace they fold into."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.config import EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import (
    RunStarted,
    StepScores,
    StepTaken,
    Stopped,
    Trace,
    event_from_json,
    event_to_json,
    fold,
)

STARTED = RunStarted("where ?", "qrag", "base", 3, EpisodeConfig(step_budget=2))
numbers = st.floats(allow_nan=False, allow_infinity=False)


def step(number: int, chunk_id: int) -> StepTaken:
    return StepTaken(
        number, chunk_id, 0.5, 1.0, 0.5, None, "text", 1.0, scores=StepScores(np.zeros(3, np.float32), None)
    )


@st.composite
def configs(draw: st.DrawFn) -> EpisodeConfig:
    temperature = draw(st.floats(0, 100))
    beam_width = 1 if temperature else draw(st.integers(1, 16))
    return EpisodeConfig(
        step_budget=draw(st.integers(1, 50)),
        temperature=temperature,
        stop_threshold=draw(st.none() | numbers),
        seed=draw(st.integers(0, 2**63 - 1)),
        beam_width=beam_width,
        top_k_actions=draw(st.none() | st.integers(1, 9)),
        use_positions=draw(st.booleans()),
        forced=draw(st.sampled_from([(), ((1, 5), (3, 2))])) if beam_width == 1 else (),
        forbidden=tuple(draw(st.lists(st.integers(0, 9), max_size=3))),
    )


@given(configs(), st.text(), numbers, st.none() | numbers)
def test_events_survive_json(config: EpisodeConfig, text: str, number: float, maybe: float | None) -> None:
    events = [
        RunStarted(text, "qrag", text, 7, config),
        StepTaken(1, 2, number, 0.5, number, maybe, text, 1.5, maybe, chosen_by="person", n_tied=3),
        Stopped("threshold", 1, 3, maybe, 2.0),
    ]
    assert [event_from_json(json.loads(json.dumps(event_to_json(event)))) for event in events] == events
    assert event_from_json(event_to_json(step(1, 2))).scores is None, "arrays stay out of it"


def test_events_are_read_as_older_versions_wrote_them() -> None:
    q_value = 0.30000000000000004
    logged = (
        '{"step": 1, "chunk_id": 2, "q_value": 0.30000000000000004, "probability": 1, "state_value": 1e-320,'
        ' "position": null, "text": "t", "milliseconds": 2, "event": "step_taken"}'
    )
    read = event_from_json(json.loads(logged))
    assert read == StepTaken(1, 2, q_value, 1.0, 1e-320, None, "t", 2.0)
    assert event_to_json(read).items() >= json.loads(logged).items()
    assert event_from_json({"event": "stopped", "reason": "budget", "n_steps": 1}) == Stopped("budget", 1)
    first = {"step_budget": 2, "temperature": 0, "forced": [[1, 5]], "forbidden": [3]}
    started = {"event": "run_started", "query": "q", "method": "qrag", "checkpoint": "c", "n_chunks": 7}
    config = EpisodeConfig(step_budget=2, forced=((1, 5),), forbidden=(3,))
    assert event_from_json(started | {"config": first}) == RunStarted("q", "qrag", "c", 7, config)


def test_fold() -> None:
    steps = (step(1, 2), step(2, 0))
    stopped = Stopped("threshold", 2, 1, 0.1, scores=StepScores(np.ones(3, np.float32), None))
    trace = fold([STARTED, *steps, stopped])
    assert (trace.chosen, trace.evidence, trace.n_looks) == ((2, 0), (0, 2), 3)
    assert trace.scores_at(1) is steps[0].scores
    assert trace.scores_at(3) is stopped.scores
    assert trace.scores_at(0) is trace.scores_at(4) is None
    assert fold([STARTED]) == Trace(STARTED)
    assert trace.with_event(step(3, 1)).stopped is None  # a stopped run that goes on


def test_what_is_no_run_is_refused() -> None:
    for events, sentence in (
        ([step(1, 2)], "begins with run_started"),
        ([], "nothing ran"),
        ([STARTED, STARTED], "starts once"),
    ):
        with pytest.raises(ValueError, match=sentence):
            fold(events)
    with pytest.raises(ValueError, match="'boom' found"):
        event_from_json({"event": "boom"})


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"step_budget": 0}, "^step budget 0 must be at least 1$"),
        ({"temperature": math.nan}, "temperature nan"),
        ({"temperature": 1e308}, "temperature 1e+308"),
        ({"stop_threshold": -math.inf}, "stop threshold -inf"),
        ({"beam_width": 0}, "beam width 0"),
        ({"beam_width": 17}, "beam width 17"),
        ({"beam_width": 2, "temperature": 0.1}, "plans greedily"),
        ({"top_k_actions": 0}, "top-k actions 0"),
        ({"seed": -1}, "seed -1"),
        ({"newer": 1}, "^newer: "),
        ({"forced": [[1]]}, r"^forced\.0\.1: "),
    ],
)
def test_a_bad_value_is_named_with_its_bound(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence.replace("+", r"\+")):
        EpisodeConfig.from_json(values)
