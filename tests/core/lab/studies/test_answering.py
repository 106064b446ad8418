"""What several models answer from the same sets stands side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.base.errors import BadRequest
from core.lab.evaluate.frontier import FrontierRow
from core.lab.studies.answering import answering
from tests.core.lab.studies.test_frontier import row


def read_by(reader: str, n: int, f1: tuple[float, ...]) -> list[FrontierRow]:
    made = [row(method, i, (10, 30), f1) for method in ("topk", "sparc") for i in range(n)]
    made += [row("resrag", i, (20, 20), (1.0, 1.0)) for i in range(n)]
    return [replace(one, reader=reader) for one in made]


def test_readers_stand_beside_one_another() -> None:
    """Over the two questions that both have; SPARC's evidence is not the same under either."""
    report = answering([*read_by("small", 3, (0.0, 1.0)), *read_by("large", 2, (1.0, 1.0))])
    sized, leads = report.tables
    assert sized.columns[-2:] == ("small", "large")
    assert [line[:4] for line in sized.rows] == [
        ("made", "topk", "1", "10"),
        ("made", "topk", "2", "30"),
        ("made", "RES-RAG small", "1", "20"),
        ("made", "RES-RAG small", "2", "20"),
    ]
    assert [str(cell)[:5] for cell in sized.rows[0][-2:]] == ["0.000", "1.000"]
    assert leads.rows == (
        ("made", "small", "1", "topk", "+0.500 [+0.500, +0.500]", "+0.000 [+0.000, +0.000]"),
    )
    assert "n = 2 questions" in report.notes[0]
    assert report.notes[1].endswith("answered by large.")


@pytest.mark.parametrize("rows", [[], read_by("small", 2, (0.0, 1.0))])
def test_one_alone_is_beside_nobody(rows: list[FrontierRow]) -> None:
    with pytest.raises(BadRequest, match=r"have \d answering"):
        answering(rows)
