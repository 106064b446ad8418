"""Relative positions against the paper's formula as it stands there, 1-based."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.encode.checkpoint import CheckpointSpec
from core.methods.qrag.positions import chunk_positions, intervals


def spec(**changes: Any) -> CheckpointSpec:
    return CheckpointSpec(name="test", trained=False, **{"position_kind": "relative", **changes})


def equation_6(m: int, chosen: set[int], delta: float, ell: float) -> list[float]:
    """rho(i) for i = 1 ... m; `chosen` holds 1-based indices. The unique j with b_j <= i < b_(j+1), then j
    delta + ell (i - b_j) / (b_(j+1) - b_j).
    """
    b = [1, *sorted(chosen), m + 1]
    rho = []
    for i in range(1, m + 1):
        (j,) = [j for j in range(len(b) - 1) if b[j] <= i < b[j + 1]]
        rho.append(j * delta + ell * (i - b[j]) / (b[j + 1] - b[j]))
    return rho


@st.composite
def selections(draw: st.DrawFn) -> tuple[int, list[int]]:
    """(number of chunks, distinct chosen 0-based ids in order of choice)."""
    m = draw(st.integers(1, 80))
    return m, draw(st.lists(st.integers(0, m - 1), unique=True, max_size=min(m, 8)))


@given(selections(), st.sampled_from([(10.0, 9.0), (20.0, 18.0), (3.0, 0.5)]))
def test_equation_6(selection: tuple[int, list[int]], scale: tuple[float, float]) -> None:
    m, chosen = selection
    delta, ell = scale
    positions = chunk_positions(spec(position_step=delta, position_span=ell), np.array([0, m]), chosen)
    np.testing.assert_allclose(
        positions, equation_6(m, {i + 1 for i in chosen}, delta, ell), rtol=0, atol=1e-12
    )


@given(selections(), st.sampled_from([10, 20]))
def test_linspace_spreads_each_interval_to_its_end(selection: tuple[int, list[int]], step: int) -> None:
    """The reference: np.linspace(0, int(0.9 step), length) in each interval, `step` more for every chosen
    chunk before; a chosen one begins its interval.
    """
    m, chosen = selection
    expected: list[float] = []
    cuts = sorted({0, *chosen, m})
    for lo, hi in pairwise(cuts):
        before = sum(c <= lo for c in chosen)
        expected += [before * step + int(0.9 * step) * k / max(hi - lo - 1, 1) for k in range(hi - lo)]
    setting = spec(position_formula="linspace", position_step=step, position_span=int(0.9 * step))
    np.testing.assert_allclose(
        chunk_positions(setting, np.array([0, m]), chosen), expected, rtol=0, atol=1e-12
    )


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=4),
    st.data(),
    st.sampled_from(["paper", "linspace"]),
    st.sampled_from(["workspace", "document"]),
)
def test_positions_rise_and_the_ruler_agrees(
    sizes: list[int], data: st.DataObject, formula: str, scope: str
) -> None:
    borders = np.concatenate([[0], np.cumsum(sizes)])
    n = int(borders[-1])
    chosen = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=6)) if n else []
    setting = spec(position_formula=formula, position_scope=scope)
    positions = chunk_positions(setting, borders, chosen)
    ruler = intervals(setting, borders, chosen)
    assert [i for interval in ruler for i in range(interval.lo, interval.hi)] == list(range(n))
    for interval in ruler:
        inside = positions[interval.lo : interval.hi]
        assert (inside[0], inside[-1]) == (interval.rho_lo, interval.rho_hi)
        assert (np.diff(inside) > 0).all()
        assert inside[-1] - inside[0] <= setting.position_span
    begins = {interval.lo for interval in ruler}
    assert set(chosen) <= begins  # a chosen chunk is the first of the interval behind it
    for chunk_id in chosen:
        assert positions[chunk_id] % setting.position_step == 0


@given(selections(), st.integers(0, 50))
def test_only_the_first_interval_feels_a_shift_of_the_document(
    selection: tuple[int, list[int]], shift: int
) -> None:
    """Chunks behind the earliest chosen one keep their positions when text is put in front."""
    m, chosen = selection
    if not chosen:
        return
    before = chunk_positions(spec(), np.array([0, m]), chosen)
    after = chunk_positions(spec(), np.array([0, m + shift]), [i + shift for i in chosen])
    np.testing.assert_array_equal(after[min(chosen) + shift :], before[min(chosen) :])


def test_document_scope_counts_each_document_on_its_own() -> None:
    """Two documents of 4 chunks; chunk 5, the second one's second, is chosen."""
    borders = np.array([0, 4, 8])
    alone = chunk_positions(spec(position_scope="document"), borders, [5])
    assert alone.tolist() == [0, 2.25, 4.5, 6.75, 0, 10, 13, 16]
    across = chunk_positions(spec(), borders, [5])
    np.testing.assert_allclose(across, [0, 1.8, 3.6, 5.4, 7.2, 10, 13, 16])


def test_absolute_none_and_switched_off() -> None:
    borders = np.array([0, 3])
    for setting, used, positions in (
        ("absolute", True, [0, 1, 2]),
        ("none", True, [0] * 3),
        ("relative", False, [0] * 3),
    ):
        chosen = spec(position_kind=setting)
        assert chunk_positions(chosen, borders, [1], use_positions=used).tolist() == positions
        assert intervals(chosen, borders, [1], use_positions=used) == []
