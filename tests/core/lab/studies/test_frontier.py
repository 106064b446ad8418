"""The quality-cost frontier: means by setting, and comparisons at equal tokens against cases computed by
hand.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadRequest
from core.lab.evaluate.frontier import FrontierRow
from core.lab.studies.frontier import curves, frontier, mixture
from core.views.charts import markdown


def row(
    method: str, number: int, tokens: tuple[int, ...], f1: tuple[float, ...], task: str = "made"
) -> FrontierRow:
    n = len(tokens)
    return FrontierRow(
        task=task,
        id=f"{number}",
        method=method,
        policy="small" if method == "resrag" else "",
        reader="reader",
        n_documents=3,
        n_chunks=12,
        settings=tuple(float(place + 1) for place in range(n)),
        tokens=tokens,
        chunks=tuple(range(1, n + 1)),
        f1=f1,
        em=f1,
        recall=f1,
        support_f1=f1,
    )


def test_at_equal_tokens() -> None:
    """Top-k spends 10 and 30 tokens, RES-RAG 20: half of its smaller setting and half of its larger."""
    rows = [row("topk", i, (10, 30), (0.0, 1.0)) for i in range(4)] + [
        row("resrag", i, (20, 20), (1.0, 1.0)) for i in range(4)
    ]
    sized, against = frontier(rows).tables
    assert next(line[:7] for line in sized.rows) == ("made", "topk", "1", "1.0", 1, "10", 10)
    assert against.rows == (
        (
            "made",
            "small",
            "1",
            "20",
            "topk",
            "1 to 2",
            "+0.500 [+0.500, +0.500]",
            "0.12",
            "+0.500 [+0.500, +0.500]",
        ),
    )
    assert "n = 4 questions over 3 documents and 12 chunks each" in markdown(frontier(rows))


def test_sizes_that_the_other_method_never_has_are_not_compared() -> None:
    rows = [row("topk", 0, (10, 30), (0.0, 1.0)), row("resrag", 0, (5, 40), (1.0, 1.0))]
    assert frontier(rows).tables[1].rows == ()


def test_charts_of_every_task() -> None:
    rows = [
        row(method, 0, (10, 30), (0.0, 1.0), task) for task in ("one", "two") for method in ("topk", "resrag")
    ]
    charts = frontier(rows).charts
    assert [chart.title for chart in charts] == [
        "one: answer F1",
        "one: support recall",
        "two: answer F1",
        "two: support recall",
    ]
    assert [line.name for line in charts[0].lines] == ["topk", "RES-RAG small"]
    assert charts[0].lines[0].x == (10.0, 30.0)


def test_no_rows() -> None:
    with pytest.raises(BadRequest, match="no rows"):
        frontier([])


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=8), st.floats(0, 1e4))
def test_a_mixture_costs_what_is_wanted(costs: list[float], wanted: float) -> None:
    found = mixture(costs, wanted)
    if found is None:
        assert (
            not any(low <= wanted <= high and low < high for low in costs for high in costs)
            or len(set(costs)) == 1
        )
    else:
        low, high, share = found
        assert 0 <= share <= 1
        assert (1 - share) * costs[low] + share * costs[high] == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_curves_are_means_by_setting() -> None:
    rows = [row("topk", 0, (10, 30), (0.0, 1.0)), row("topk", 1, (20, 50), (0.5, 0.5))]
    (curve,) = curves(rows)
    assert (curve.task, curve.method, curve.policy, curve.n) == ("made", "topk", "", 2)
    assert (curve.settings, curve.tokens) == ((1.0, 2.0), (15.0, 40.0))
    assert (curve.f1, curve.recall) == ((0.25, 0.75), (0.25, 0.75))
    assert curves([]) == []
