"""The report on answers: a line a task and evidence, and confidence beside what was right."""

from __future__ import annotations

from core.lab.reader.evaluation import AnswerRow
from core.lab.studies.answers import answers
from core.views.charts import markdown


def row(
    number: int, *, em: float, empty: bool = False, confidence: float = 0.8, evidence: str = "gold"
) -> AnswerRow:
    return AnswerRow(
        id=str(number),
        task="qa1",
        split="test",
        length=1000,
        seed=0,
        reader="r",
        fingerprint="f",
        evidence=evidence,
        n_passages=2,
        support_found=1.0,
        empty=empty,
        confidence=confidence,
        em=em,
        f1=em,
        accuracy=em,
    )


def test_scores_and_confidence() -> None:
    rows = [
        *(row(i, em=float(i < 8)) for i in range(10)),
        row(10, em=0.0, empty=True),
        row(11, em=1.0, confidence=0.5, evidence="bm25"),
    ]
    report = answers(rows)
    scored, trusted = report.tables
    assert [line[:4] for line in scored.rows] == [
        ("qa1 at 1K", "gold", 11, "2.0"),
        ("qa1 at 1K", "bm25", 1, "2.0"),
    ]
    assert scored.rows[0][-1] == 1 / 11
    assert str(scored.rows[0][5]).startswith("0.727 [")
    assert trusted.rows[0][2:6] == (10, 0.8, 0.8, 0.0)
    assert trusted.rows[0][6] == "0.800 of 10"
    assert trusted.rows[1][6] is None
    assert "| qa1 at 1K | bm25 | 1 |" in markdown(report)
