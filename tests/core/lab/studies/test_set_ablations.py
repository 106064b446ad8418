"""Rewards left out: means over seeds and the comparison with the whole reward, by hand."""

from __future__ import annotations

import pytest

from core.base.errors import BadRequest
from core.lab.evaluate.frontier import FrontierRow
from core.lab.studies.set_ablations import set_ablations


def row(policy: str, number: int, f1: float, method: str = "resrag") -> FrontierRow:
    return FrontierRow(
        task="made",
        id=f"{number}",
        method=method,
        policy=policy,
        reader="reader",
        n_documents=3,
        n_chunks=12,
        settings=(1.0, 8.0),
        tokens=(10, 20),
        chunks=(1, 2),
        f1=(f1, 1.0),
        em=(f1, 1.0),
        recall=(f1, 1.0),
        support_f1=(f1, 1.0),
    )


def test_mean_of_seeds_against_the_whole_reward() -> None:
    """Two seeds of 0 and 1 come to a half; one of 1 is a half above them. Plain methods have no line."""
    rows = [row("", i, 0.5, "topk") for i in range(4)]
    rows += [row(f"joint-{seed}", i, float(seed)) for seed in (0, 1) for i in range(4)]
    rows += [row("no-consistency-0", i, 1.0) for i in range(4)]
    report = set_ablations(rows)
    lines = report.tables[0].rows
    assert [line[:3] for line in lines] == [
        ("made", "joint", "1"),
        ("made", "no-consistency", "1"),
        ("made", "joint", "8"),
        ("made", "no-consistency", "8"),
    ]
    assert lines[0][3:] == ("1.00", "10", 0.5, "0.000, 1.000", 0.5, 0.5, 0.5, None)
    assert lines[1][5:7] == (1.0, "1.000")
    assert lines[1][-1] == "+0.500 (p = 0.12)"
    assert lines[3][-1] == "+0.000 (p = 1)"
    assert report.notes == ("made: n = 4 questions, 2 seeds of the whole reward.",)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([], "there are no rows of RES-RAG; name its policies with --policy"),
        ([row("general", 0, 1.0)], "policy 'general' is not named VARIANT-SEED"),
        ([row("linear-0", 0, 1.0)], "no policy over made is named joint-SEED"),
        ([row("joint-0", 0, 1.0), row("linear-0", 1, 1.0)], "no question of made has rows of all policies"),
    ],
)
def test_what_cannot_be_compared(rows: list[FrontierRow], sentence: str) -> None:
    with pytest.raises(BadRequest, match=sentence):
        set_ablations(rows)
