"""Reports as Markdown: cells can't break a table, and what was not measured is a dash."""

from __future__ import annotations

import pytest

from core.views.charts import Report, Table, markdown


def test_markdown() -> None:
    report = Report(
        "x",
        (Table("One", ("a", "b"), ((1, 0.5),)), Table("Two", ("c",), (("x|y",), (None,)))),
        notes=("Mind this.", "And this."),
    )
    assert (
        markdown(report)
        == "**One**\n\n| a | b |\n|---|---|\n| 1 | 0.500 |\n\n**Two**\n\n| c |\n|---|\n| x\\|y |\n| - |\n\n-"
        " Mind this.\n- And this.\n"
    )


def test_a_row_must_fill_its_columns() -> None:
    with pytest.raises(ValueError, match="2 cells"):
        Table("One", ("a", "b"), ((1,),))
