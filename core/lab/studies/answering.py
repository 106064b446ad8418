"""The answering model exchanged (RES-RAG section 4.4).

Several readers or language models answer from the same sets of evidence. SPARC is left out, for its evidence
depends on who reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.base.errors import BadRequest
from core.lab.evaluate.frontier import FrontierRow
from core.lab.studies.frontier import frontier
from core.methods.sparc.retriever import SPARC
from core.views.charts import Cell, Report, Table


def answering(rows: Sequence[FrontierRow]) -> Report:
    """Over the questions that all have answered. Raises BadRequest for one reader, or no common question."""
    readers = list(dict.fromkeys(row.reader for row in rows))
    asked = [{(row.task, row.id) for row in rows if row.reader == reader} for reader in readers]
    common = set.intersection(*asked) if asked else set()
    if len(readers) < 2 or not common:
        raise BadRequest(
            f"the rows have {len(readers)} answering and {len(common)} questions in common; join those of two"
            " or more runs of study frontier over the same questions"
        )
    reports = [
        frontier(
            [
                row
                for row in rows
                if row.reader == reader and (row.task, row.id) in common and row.method != SPARC
            ]
        )
        for reader in readers
    ]
    sized, leads = zip(*(report.tables for report in reports), strict=True)
    tables = (
        _beside(sized, readers, ("questions", "method", "setting", "tokens"), "answer F1"),
        _beside(
            leads, readers, ("questions", "policy", "budget", "against"), "answer F1, RES-RAG's minus its"
        ),
    )
    return Report("answering", tables, notes=tuple(note for report in reports for note in report.notes))


def _beside(tables: Sequence[Table], readers: Sequence[str], keys: Sequence[str], value: str) -> Table:
    """One column of several tables, side by side under who answers."""
    lines: dict[tuple[Cell, ...], dict[str, Cell]] = {}
    for reader, table in zip(readers, tables, strict=True):
        places = [table.columns.index(key) for key in keys]
        for row in table.rows:
            lines.setdefault(tuple(row[at] for at in places), {})[reader] = row[table.columns.index(value)]
    rows = tuple((*key, *map(cells.get, readers)) for key, cells in lines.items())
    return Table(f"{tables[0].title}: {value}", (*keys, *readers), rows)
