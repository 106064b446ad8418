"""The log for the page.

Whose runs are whose is decided in `core.runs.log`: every call passes the visitor.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from app.services.agents import PLAIN
from app.services.http_call import http_of
from app.services.in_view import OpenDocuments
from app.services.shared import Services
from app.services.visitors import CHARACTERS_PER_TOKEN, check_known, n_values
from core.base.errors import BadRequest
from core.corpus.opening import Progress
from core.encode.checkpoint import shipped_checkpoints
from core.methods.registry import facts_of
from core.methods.sparc.naming import decided_by_rules
from core.methods.sparc.retriever import SPARC
from core.runs.again.replay import Replay, replay_run
from core.runs.again.snippets import Source, command_of, of_export, python_of
from core.runs.export.runs import LINES, ExportFormat, export_runs, is_comparison
from core.runs.foreign.files import read_foreign
from core.runs.foreign.traces import Brought, bring, log_brought
from core.runs.log import LoggedRun, MalformedRuns, RunPage, RunRow, import_runs
from core.runs.log.records import MAX_PAGE, RunCurve, RunFacets, sparc_trace_of
from core.runs.log.sql import SqlResult, query_log
from core.views.draw.words import shorten

MAX_SELECTED = 50
"""Runs that may be selected."""
MAX_EXPORTED = 2_000
"""Runs of one export."""
MAX_CURVES = 12
"""Runs that one chart tells apart."""
MAX_IMPORT_BYTES = 64 * 2**20
"""Length of an imported file."""

GROUPS: dict[str, Callable[[RunRow], str]] = {
    "method and agent": lambda row: f"{facts_of(row.method).label} {row.checkpoint}",
    "method": lambda row: facts_of(row.method).label,
    "agent": lambda row: row.checkpoint,
    "documents": lambda row: shorten(", ".join(row.titles), 40),
    "question": lambda row: shorten(row.query, 40),
    "status": lambda row: row.status,
    "steps": lambda row: str(row.n_steps),
    "stopped by": lambda row: row.stop_reason or "not stopped",
    "seed": lambda row: f"seed {row.seed}",
}
"""What a chart can put together."""


@dataclass(frozen=True)
class RunFilters:
    """Which runs are looked for; what is empty or None does not matter."""

    text: str = ""
    document: str = ""
    method: str = ""
    checkpoint: str = ""
    status: str = ""
    hit: bool | None = None
    since: datetime | None = None
    until: datetime | None = None

    def values(self) -> dict[str, str | bool | datetime]:
        """Those that matter, as `RunReader.search` takes them."""
        return {name: value for name, value in asdict(self).items() if value is not None and value != ""}


@dataclass(frozen=True)
class Charted:
    """What is drawn of several runs."""

    curves: tuple[tuple[RunRow, RunCurve], ...]
    counts: dict[str, dict[str, int]]
    """By group: how many hits, misses, and runs without a label."""


@dataclass(frozen=True)
class Experiments:
    """The log, over shared services."""

    services: Services

    def page(
        self,
        filters: RunFilters,
        page: int,
        size: int,
        owner: str | None,
        sort: str = "made",
        descends: bool = True,
    ) -> RunPage:
        """A page of runs, the newest first, or by another column."""
        values: dict[str, Any] = {**filters.values(), "sort": sort, "descends": descends}
        return self.services.own_log.search(owner=owner, **values, limit=size, offset=page * size)

    def facets(self, owner: str | None) -> RunFacets:
        """What runs can be filtered by."""
        return self.services.own_log.facets(owner)

    def all_ids(self, filters: RunFilters, owner: str | None) -> list[str]:
        """Every run that has ended and fits. Raises BadRequest when there is none, or too many."""
        ids: dict[str, None] = {}
        for offset in range(0, MAX_EXPORTED + 1, MAX_PAGE):
            page: dict[str, Any] = {**filters.values(), "limit": MAX_PAGE, "offset": offset}
            rows = self.services.own_log.search(owner=owner, **page).rows
            ids |= {row.run_id: None for row in rows if row.status != "running"}
            if len(rows) < MAX_PAGE:
                break
        if len(ids) > MAX_EXPORTED:
            command = "python -m core runs export"
            raise BadRequest(f"more than {MAX_EXPORTED:,} runs match; narrow the filters, or use: {command}")
        if not ids:
            raise BadRequest("no run that has ended matches; change the filters")
        return list(ids)

    def run(self, run_id: str, owner: str | None) -> LoggedRun:
        """One run. Raises RunNotFound unless it is the visitor's own or shared."""
        return self.services.own_log.get(run_id, owner)

    def charted(self, run_ids: Sequence[str], owner: str | None, by: str = "method and agent") -> Charted:
        """What can be drawn of the visitor's own runs, in the order given. `by`: one of GROUPS."""
        log = self.services.own_log
        rows = {row.run_id: row for row in log.search(owner=owner, run_ids=run_ids, limit=MAX_PAGE).rows}
        chosen = [rows[run_id] for run_id in run_ids if run_id in rows]
        curves = log.curves([row.run_id for row in chosen], owner)
        counted: dict[str, Counter[str]] = {}
        for row in chosen:
            outcome = "not labelled" if row.hit is None else "hit" if row.hit else "miss"
            counted.setdefault(GROUPS[by](row), Counter())[outcome] += 1
        drawn = tuple((row, curves[row.run_id]) for row in chosen if row.run_id in curves)
        return Charted(drawn, {name: dict(counts) for name, counts in counted.items()})

    def replay(self, run_id: str, owner: str | None, report: Progress) -> Replay:
        """A run made again. Raises RunNotFound, LogError (no texts kept), BadRequest (agent not on offer)."""
        check_known(owner)
        agents, library = self.services.agents, self.services.library
        run = self.run(run_id, owner)
        encoder = agents.load(run.record.checkpoint).encoder
        documents = self.services.own_log.documents(run_id, owner)
        meter = library.allowance.meter(owner, sum(len(document.text or "") for document in documents))
        return replay_run(
            run,
            documents,
            encoder,
            lambda progress: report(meter(progress)),
            library.cache_part(run.record.document_hashes, owner),
            plain=lambda: agents.load(PLAIN).encoder,
            reader_named=self.services.reader_named,
        )

    def share(self, run_id: str, owner: str | None) -> None:
        """Lets whoever has its address open a run of the visitor's. Raises RunNotFound."""
        check_known(owner)
        self.services.own_log.share(run_id, owner)

    def delete(self, run_id: str, owner: str | None) -> None:
        """Removes a run of the visitor's for good. Raises RunNotFound; BadRequest while it goes on."""
        if self.run(run_id, owner).status == "running":
            raise BadRequest("this run is still going on in Explore; finish it or reset it there first")
        self.services.delete_run(run_id, owner)

    def export(
        self, run_ids: Sequence[str], form: ExportFormat, with_text: bool, owner: str | None, folder: Path
    ) -> Path:
        """The download in an empty folder; pages of one comparison are one. Raises LogError, RunNotFound."""
        log = self.services.own_log
        together = form == "html" and is_comparison(log, run_ids, owner)
        name = f"run-{run_ids[0][:8]}" if len(run_ids) == 1 else f"runs-{len(run_ids)}"
        name = f"comparison-{run_ids[0][:8]}" if together else name
        one_file = together or form in LINES or (form == "html" and len(run_ids) == 1)
        target = folder / (f"{name}{LINES.get(form, '.html')}" if one_file else name)
        files = export_runs(log, run_ids, form, target, include_text=with_text, owner=owner)
        return files if one_file else Path(shutil.make_archive(f"{target}-{form}", "zip", files))

    def take_in(self, path: Path, owner: str | None) -> int:
        """How many new runs a file brought. Raises MalformedRuns, BadRequest (too long, a day's bound)."""
        allowance, size = self.services.library.allowance, path.stat().st_size
        if size > MAX_IMPORT_BYTES:
            raise BadRequest(
                f"{path.name} has {size:,} bytes, more than {MAX_IMPORT_BYTES:,}; export fewer runs at once,"
                " or without texts"
            )
        allowance.read(owner, size // CHARACTERS_PER_TOKEN)

        def admit(run: LoggedRun) -> None:
            allowance.log(owner, n_values(run.events))

        try:
            return import_runs(self.services.own_log, path, owner=owner, admit=admit)
        except MalformedRuns as error:
            raise MalformedRuns(str(error).replace(str(path), path.name)) from error

    def bring(
        self,
        files: Mapping[str, bytes],
        documents: OpenDocuments,
        method: str = "",
        report: Callable[[Brought], None] = lambda _: None,
        on_fault: Callable[[str], object] | None = None,
    ) -> list[Brought]:
        """What another retriever found in open documents, as runs. `report` may raise before any is logged.
        `on_fault`: see `read_foreign`. Raises BadRequest (no runs, too many, a day's bound).
        """
        owner, encoder, allowance = documents.owner, documents.agent.encoder, self.services.library.allowance
        check_known(owner)
        size = sum(map(len, files.values()))
        if size > MAX_IMPORT_BYTES:
            raise BadRequest(f"{size:,} bytes are more than {MAX_IMPORT_BYTES:,}; import fewer runs at once")
        allowance.read(owner, size // CHARACTERS_PER_TOKEN)
        began = time.monotonic()

        def hear(one: Brought) -> None:
            nonlocal began
            allowance.take_time(owner, time.monotonic() - began)
            allowance.log(owner, n_values(one.trace.steps))
            began = time.monotonic()
            report(one)

        workspace, log = documents.workspace, self.services.log
        part = self.services.library.part_of(documents)
        runs = read_foreign(files, method, on_fault)
        brought = bring(runs, workspace, encoder.spec.name, part, hear)
        logged = [log_brought(log, one, workspace, encoder, owner) for one in brought]
        log.flush([one.run_id for one in logged])
        self.services.tell_readers()
        return logged

    def query(self, sql: str) -> SqlResult:
        """The answer to a person's own SQL. Raises BadRequest, also in public mode."""
        if self.services.settings.public:
            raise BadRequest("SQL sees everybody's runs, so it is for an app of one's own; use the filters")
        return query_log(self.services.own_log, sql)

    def reproduce(self, run: LoggedRun, url: str) -> dict[str, str]:
        """How a run is made again, by title: here, or where somebody has its export; `url`: of this app."""
        record, settings = run.record, self.services.settings
        if facts_of(record.method).foreign:
            return {}
        by_http = partial(http_of, run, url, public=settings.public)
        if record.method == SPARC:
            branches = sparc_trace_of(run)
            again = branches is not None and decided_by_rules(branches)
            return {"HTTP": by_http()} if again else {}
        source = of_export(record.run_id)
        if not settings.public:
            ships = record.checkpoint in shipped_checkpoints()
            folder = None if ships else self.services.agents.checkpoints.get(record.checkpoint)
            log = self.services.log_path.absolute() if settings.log else None
            source = Source(log=log, checkpoint=str(folder) if folder else None)
        return {"Command line": command_of(run, source), "Python": python_of(run, source), "HTTP": by_http()}
