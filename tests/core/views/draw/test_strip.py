"""The scale of the strip."""

from __future__ import annotations

import numpy as np

from core.encode.checkpoint import CheckpointSpec
from core.views.draw.strip import colour_scale

FIRST = np.array([-0.1, 0.8, np.nan, 0.3], np.float32)


def test_a_scale_ends_where_q_usually_lies_and_holds_the_first_look() -> None:
    spec = CheckpointSpec(name="x", trained=True, q_range=(-0.2, 3.2))
    assert colour_scale([FIRST], spec) == (-0.2, 3.2)
    assert colour_scale([5 * FIRST], spec) == (-0.5, 4.0)
    assert colour_scale([FIRST, 5 * FIRST], spec) == (-0.2, 4.0), "a later best is no higher than the scale"
    assert colour_scale([FIRST, -5 * FIRST], spec) == (-0.2, 3.2), "nor do its worst flatten the rest"
    assert colour_scale([FIRST], None) == (np.float32(-0.1), 1.2 * np.float32(0.8))


def test_a_strip_of_an_agent_whose_q_stays_is_at_least_half_as_high_as_its_scale() -> None:
    spec = CheckpointSpec(name="x", trained=True, q_range=(-0.2, 3.2), reads_choices=False)
    assert colour_scale([FIRST], spec) == (-0.2, 2 * np.float32(0.8))
    assert colour_scale([3 * FIRST], spec) == (3 * FIRST[0], 3.2)
