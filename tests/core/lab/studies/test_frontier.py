"""The quality-cost frontier."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadRequest
from core.lab.studies.frontier import FrontierRow, answering, frontier, mixture, set_ablations
from core.views.charts import markdown


def row(
    method: str,
    number: int,
    tokens: tuple[int, ...],
    f1: tuple[float, ...],
    task: str = "made",
    policy: str = "small",
) -> FrontierRow:
    n = len(tokens)
    return FrontierRow(
        task=task,
        id=f"{number}",
        method=method,
        policy=policy if method == "resrag" else "",
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
    gained = "+0.500 [+0.500, +0.500]"
    assert against.rows == (("made", "small", "1", "20", "topk", "1 to 2", gained, "0.12", gained),)
    assert "n = 4 questions over 3 documents and 12 chunks each" in markdown(frontier(rows))
    other = [row("topk", 0, (10, 30), (0.0, 1.0)), row("resrag", 0, (5, 40), (1.0, 1.0))]
    assert frontier(other).tables[1].rows == (), "sizes that the other method never has are not compared"


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


def read_by(reader: str, n: int, f1: tuple[float, ...]) -> list[FrontierRow]:
    made = [row(method, i, (10, 30), f1) for method in ("topk", "sparc") for i in range(n)]
    made += [row("resrag", i, (20, 20), (1.0, 1.0)) for i in range(n)]
    return [replace(read, reader=reader) for read in made]


def test_readers_stand_beside_one_another() -> None:
    """Over the two questions that both have; SPARC's evidence is not the same under either."""
    report = answering([*read_by("small", 3, (0.0, 1.0)), *read_by("large", 2, (1.0, 1.0))])
    sized, leads = report.tables
    assert sized.columns[-2:] == ("small", "large")
    assert [line[1:4] for line in sized.rows] == [
        *(("topk", "1", "10"), ("topk", "2", "30")),
        *(("RES-RAG small", "1", "20"), ("RES-RAG small", "2", "20")),
    ]
    assert [str(cell)[:5] for cell in sized.rows[0][-2:]] == ["0.000", "1.000"]
    (lead,) = leads.rows
    assert lead[:4] == ("made", "small", "1", "topk")
    assert [str(cell)[:6] for cell in lead[4:]] == ["+0.500", "+0.000"]
    for alone in ([], read_by("small", 2, (0.0, 1.0))):
        with pytest.raises(BadRequest, match=r"have \d answering"):
            answering(alone)


def ablated(policy: str, number: int, f1: float, method: str = "resrag") -> FrontierRow:
    return row(method, number, (10, 20), (f1, 1.0), policy=policy)


def test_mean_of_seeds_against_the_whole_reward() -> None:
    """Two seeds of 0 and 1 come to a half; one of 1 is a half above them. Plain methods have no line."""
    rows = [ablated("", i, 0.5, "topk") for i in range(4)]
    rows += [ablated(f"joint-{seed}", i, float(seed)) for seed in (0, 1) for i in range(4)]
    rows += [ablated("no-consistency-0", i, 1.0) for i in range(4)]
    report = set_ablations(rows)
    lines = report.tables[0].rows
    assert [line[1:3] for line in lines] == [
        *(("joint", "1"), ("no-consistency", "1"), ("joint", "2"), ("no-consistency", "2")),
    ]
    assert lines[0][3:] == ("1.00", "10", 0.5, "0.000, 1.000", 0.5, 0.5, 0.5, None)
    assert (lines[1][5:7], lines[1][-1]) == ((1.0, "1.000"), "+0.500 (p = 0.12)")
    assert report.notes == ("made: n = 4 questions, 2 seeds of the whole reward.",)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "there are no rows of RES-RAG; name its policies with --policy"),
        ([ablated("general", 0, 1.0)], "policy 'general' is not named VARIANT-SEED"),
        ([ablated("linear-0", 0, 1.0)], "no policy over made is named joint-SEED"),
        ([ablated("joint-0", 0, 1.0), ablated("linear-0", 1, 1.0)], "no question of made has rows of all"),
    ],
)
def test_what_cannot_be_compared(rows: list[FrontierRow], sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence):
        set_ablations(rows)
