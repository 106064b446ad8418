"""The log's copy in a data set of the hub.

A data set holds `index.json` (which runs lie in which file, and which are shared), `runs/*.jsonl` (whole runs
with their owners) and two Parquet tables for the hub's viewer. A file of runs never changes: where an answer
or a label was added to a run here, or runs were deleted, it is written anew under another name. After a
deletion the history is squashed and stored files that nothing refers to are removed, so that deleted means
deleted. What this log never knew was put there by another log and stays. Each commit names the one it builds
on: of two that push at once the second is refused and tries again later.

A bucket of the hub takes files one by one, so that a push cut off half-way would show.
`huggingface_hub.CommitScheduler` deletes nothing and names no commit that it builds on.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.base.errors import LogError, first_problem
from core.runs.hub.client import Hub, HubError, HubMissing
from core.runs.log.queries import RunReader
from core.runs.log.records import now
from core.runs.log.store import ExperimentLog
from core.runs.log.transfer import TABLES, EndedRun, ended_runs, finished_run, import_runs, write_table
from core.runs.log.wire import MalformedRuns, check_lines, run_lines

SHARD_BYTES = 8 << 20
"""Length from which a file of runs takes no more; text of up to 10 MB can be removed from git for good."""
_INDEX = "index.json"
_MAX_INDEX_BYTES = 64 << 20
"""Some 1.5 million runs."""

_CARD = """\
---
configs:
  - config_name: runs
    data_files: tables/runs.parquet
  - config_name: steps
    data_files: tables/steps.parquet
tags:
  - q-rag
---

# Runs of a Q-RAG Explorer

The copy of an experiment log: `python -m core runs pull --from {repository}` takes the runs in again, with the values of all chunks and the
texts of the documents. The tables are for looking. Owners in `runs/` are hashes of keys that lie in visitors' browsers.
"""

_logger = logging.getLogger(__name__)

_RunId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
_ShardName = Annotated[str, Field(pattern=r"^runs/[0-9A-Za-z-]{1,64}\.jsonl$")]


class _Index(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    format: Literal[1] = 1
    shards: dict[_ShardName, list[_RunId]] = {}
    shared: list[_RunId] = []
    uncleared: bool = False
    """Deleted runs may still lie in the history: whoever deleted them was cut off."""

    @property
    def run_ids(self) -> set[str]:
        return {run_id for run_ids in self.shards.values() for run_id in run_ids}


@dataclass(frozen=True)
class Pushed:
    """What a push did."""

    n_new: int
    n_removed: int


@dataclass(frozen=True)
class Pulled:
    """What a pull did."""

    n_new: int
    n_visitors: int
    damaged: tuple[str, ...]
    """A sentence for each file that could not be taken in."""


@dataclass(frozen=True)
class _Plan:
    """What has to change so that a data set fits the log."""

    write: list[EndedRun]
    stale: list[str]
    """Files that hold runs which were changed or deleted here; what remains of them is among `write`. One
    that also holds a stranger's runs has to be pulled first.
    """
    shared: list[str]
    n_new: int
    n_gone: int
    added: dict[str, str]
    """By run what `_added` says of it that the copy will have then and was not noted yet."""


class LogCopy:
    """The data set `repository` as the copy of a log."""

    def __init__(self, hub: Hub, repository: str) -> None:
        self.repository = repository
        self._hub = hub

    def commit(self) -> str | None:
        """The commit the data set stands at, None when there is no such data set yet. Raises HubError."""
        try:
            with self._hub.asked_to(f"look at the data set {self.repository}"):
                return str(self._hub.api.repo_info(self.repository, repo_type="dataset").sha)
        except HubMissing:
            return None

    def push(self, log: ExperimentLog) -> Pushed:
        """Bring the data set, made private where it is missing, up to the log. Raises HubError, LogError."""
        commit, index = self._look(make=True)
        plan = _plan(log, self.repository, index)
        if plan.write or plan.stale or plan.shared != sorted(index.shared):
            with _scratch() as folder:
                index = self._send(log, commit, index, plan, folder)
        _remember_added(log, self.repository, plan.added)
        if index.uncleared:
            self._clear_history(index)
        return Pushed(plan.n_new, plan.n_gone)

    def pull(self, log: ExperimentLog) -> Pulled:
        """Takes in the data set's runs but those deleted here. Raises HubMissing, HubError, LogError."""
        commit, index = self._look(make=False)
        copied_ids = known_to_copy(log, self.repository).keys()
        before = {run.run_id for run in ended_runs(log)}
        damaged, n_new = [], 0
        with _scratch() as folder:
            for name, run_ids in sorted(index.shards.items()):
                if copied_ids >= {*run_ids}:
                    continue
                path = self._download(name, commit, folder)
                try:
                    n_new += take_in_shard(log, path, shared=set(index.shared), deleted=copied_ids - before)
                except MalformedRuns as error:
                    damaged.append(f"{name} of {self.repository} could not be taken in: {error}")
                    continue
                remember_copied(log, self.repository, run_ids)
                path.unlink()
        noted = known_to_copy(log, self.repository)
        new = {run_id: added for run_id, added in _added(log).items() if noted.get(run_id, "") is None}
        _remember_added(log, self.repository, new)
        n_visitors = sum(run.owner is not None and run.run_id not in before for run in ended_runs(log))
        return Pulled(n_new, n_visitors, tuple(damaged))

    def _look(self, *, make: bool) -> tuple[str, _Index]:
        """The commit at which the data set stands, and its index."""
        commit = self.commit()
        if commit is None and make:
            with self._hub.asked_to(f"make the data set {self.repository}"):
                self._hub.api.create_repo(self.repository, repo_type="dataset", private=True, exist_ok=True)
            commit = self.commit()
        if commit is None:
            raise HubMissing(
                f"there is no data set {self.repository} that the hub's token may see; check the name and the"
                " token's permissions"
            )
        with self._hub.asked_to(f"look at the data set {self.repository}"):
            names = self._hub.api.list_repo_files(self.repository, repo_type="dataset", revision=commit)
        if _INDEX not in names:
            if any(name.startswith(("runs/", "tables/")) for name in names):
                raise HubError(
                    f"the data set {self.repository} holds files but no {_INDEX}, so it is no copy of a log;"
                    " choose another name"
                )
            return commit, _Index()
        with _scratch() as folder:
            return commit, _read_index(self._download(_INDEX, commit, folder), self.repository)

    def _download(self, name: str, commit: str, folder: Path) -> Path:
        with self._hub.asked_to(f"read {name} of {self.repository}"):
            path = self._hub.api.hf_hub_download(
                self.repository, name, repo_type="dataset", revision=commit, local_dir=folder
            )
            return Path(path)

    def _send(self, log: ExperimentLog, commit: str, index: _Index, plan: _Plan, folder: Path) -> _Index:
        """A commit a file of runs; the last also brings the tables and removes what is stale."""
        waiting: dict[str, Path] = {}
        runs = iter(plan.write)
        while run_ids := write_shard(log, runs, path := folder / _new_name()):
            if waiting:
                commit = self._commit(waiting, index, commit)
                next(iter(waiting.values())).unlink()
            name = f"runs/{path.name}"
            index = index.model_copy(update={"shards": {**index.shards, name: run_ids}})
            waiting = {name: path}
            remember_copied(log, self.repository, run_ids)
        left = {name: run_ids for name, run_ids in index.shards.items() if name not in plan.stale}
        index = index.model_copy(
            update={"shards": left, "shared": plan.shared, "uncleared": index.uncleared or plan.n_gone > 0}
        )
        tables = {f"tables/{name}.parquet": folder / f"{name}.parquet" for name in TABLES}
        for name, file in zip(TABLES, tables.values(), strict=True):
            write_table(log, name, file, "status <> 'running'", {})
        card = folder / "README.md"
        card.write_text(_CARD.format(repository=self.repository), encoding="utf-8")
        self._commit({**waiting, **tables, "README.md": card}, index, commit, delete=plan.stale)
        return index

    def _commit(
        self, files: Mapping[str, Path], index: _Index, parent: str, delete: Collection[str] = ()
    ) -> str:
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        with self._hub.asked_to(f"push to the data set {self.repository}"):
            operations = [CommitOperationAdd(name, path) for name, path in files.items()]
            operations.append(CommitOperationAdd(_INDEX, index.model_dump_json().encode()))
            operations += [CommitOperationDelete(name) for name in delete]
            done = self._hub.api.create_commit(
                self.repository,
                operations,
                repo_type="dataset",
                commit_message="Runs of a Q-RAG Explorer",
                parent_commit=parent,
            )
            return str(done.oid)

    def _clear_history(self, index: _Index) -> None:
        api, repository = self._hub.api, self.repository
        with self._hub.asked_to(f"clear the history of {repository}"):
            api.super_squash_history(repository, repo_type="dataset")
            files = api.list_repo_tree(repository, recursive=True, repo_type="dataset")
            in_use = {file.lfs.sha256 for file in files if getattr(file, "lfs", None)}
            stored = api.list_lfs_files(repository, repo_type="dataset")
            unused = [file for file in stored if file.file_oid not in in_use]
            api.permanently_delete_lfs_files(repository, unused, rewrite_history=False, repo_type="dataset")
            commit = str(api.repo_info(repository, repo_type="dataset").sha)
        self._commit({}, index.model_copy(update={"uncleared": False}), commit)


@contextmanager
def _scratch() -> Iterator[Path]:
    """A folder for files on their way. Raises LogError when there is no room for them."""
    try:
        with TemporaryDirectory() as folder:
            yield Path(folder)
    except OSError as error:
        raise LogError(
            f"the copy of the log needs room in {gettempdir()} ({error.strerror}); make room, or name another"
            " place with TMPDIR"
        ) from error


def _plan(log: ExperimentLog, repository: str, index: _Index) -> _Plan:
    ended = ended_runs(log)
    here, there, noted = {run.run_id for run in ended}, index.run_ids, known_to_copy(log, repository)
    strangers = there - here - noted.keys()
    deleted = (there & noted.keys()) - here
    added = _added(log)
    # what an earlier version copied is taken as it is there
    changed = {run_id for run_id in here & there if (noted.get(run_id) or added[run_id]) != added[run_id]}
    stale = [
        name
        for name, run_ids in index.shards.items()
        if (deleted | changed).intersection(run_ids) and strangers.isdisjoint(run_ids)
    ]
    moved = {run_id for name in stale for run_id in index.shards[name]}
    shared = {run.run_id for run in ended if run.shared} | (strangers & set(index.shared))
    write = [run for run in ended if run.run_id not in there or run.run_id in moved]
    sent = {run.run_id for run in write} | (here - changed)
    note = {run_id: added[run_id] for run_id in sent if noted.get(run_id) != added[run_id]}
    return _Plan(
        write, stale, sorted(shared), n_new=len(here - there), n_gone=len(moved & deleted), added=note
    )


def _new_name() -> str:
    return f"{now():%Y%m%dT%H%M%S}-{secrets.token_hex(4)}.jsonl"


def _read_index(path: Path, repository: str) -> _Index:
    if path.stat().st_size > _MAX_INDEX_BYTES:
        raise HubError(
            f"{_INDEX} of {repository} has more than {_MAX_INDEX_BYTES:,} bytes; choose another data set"
        )
    try:
        return _Index.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise HubError(
            f"{_INDEX} of {repository} is not as it should be ({first_problem(error)}); choose another data set, or"
            " delete that file there"
        ) from error


def write_shard(log: RunReader, runs: Iterator[EndedRun], path: Path) -> list[str]:
    """Take runs from `runs` into one file until it has SHARD_BYTES; their ids, none when there were no more.
    Runs that are gone, or can't be read, or not read back, are left out: one must not cost the others. Raises
    OSError.
    """
    written: list[str] = []
    texts: set[str] = set()
    with path.open("wb") as file:
        for run in runs:
            try:
                with_texts = set(texts)
                lines = list(run_lines(finished_run(log, run.run_id, run.owner), with_texts, with_owner=True))
                check_lines(lines)
            except LogError as error:
                _logger.warning("left out of the copy: %s", error)
                continue
            file.writelines(line.encode() for line in lines)
            texts = with_texts
            written.append(run.run_id)
            if file.tell() >= SHARD_BYTES:
                break
    return written


def take_in_shard(
    log: ExperimentLog, path: Path, *, shared: Collection[str], deleted: Collection[str]
) -> int:
    """Take in a file of `write_shard`, each run as its owner's and shared if it is among `shared`; how many
    were new. What was `deleted` here enters for a moment only: it may bring the text of a document that later
    runs of the file read. Raises MalformedRuns, and takes in nothing, when the file is not as it should be.
    """
    before = {run.run_id for run in ended_runs(log)}
    n_new = import_runs(log, path, keep_owner=True)
    for run in ended_runs(log):
        if run.run_id in before:
            continue
        if run.run_id in deleted:
            log.delete(run.run_id, run.owner)
            n_new -= 1
        elif run.run_id in shared:
            log.share(run.run_id, run.owner)
    return n_new


def known_to_copy(log: RunReader, copy: str) -> dict[str, str | None]:
    """Runs that a copy was given, or that came from it: by each what `_added` said then, None if unasked."""
    rows = log.rows("SELECT run_id, added FROM copied_runs WHERE copy = $copy", {"copy": copy})
    return {row["run_id"]: row["added"] for row in rows}


def remember_copied(log: ExperimentLog, copy: str, run_ids: Collection[str]) -> None:
    """Add to what a copy knows, for good: a deleted run that it is given again is not to come back.
    Remembering one too many does no harm.
    """
    statement = "INSERT OR IGNORE INTO copied_runs (copy, run_id) SELECT ?, unnest(?::VARCHAR[])"
    log.write(lambda con: con.execute(statement, [copy, sorted(run_ids)]))


def _added(log: RunReader) -> dict[str, str]:
    """By run a hash of what may be added to it after its end: details and the label."""
    rows = log.rows(
        """WITH long AS (SELECT blob_id, string_agg(md5(data), '' ORDER BY part) AS hashed FROM blobs
            WHERE blob_id IN (SELECT blob FROM run_details) GROUP BY blob_id),
        added AS (SELECT run_id, string_agg(name || coalesce(value::VARCHAR, hashed), ' ' ORDER BY name) AS details
            FROM run_details LEFT JOIN long ON blob = blob_id GROUP BY run_id)
        SELECT run_id, md5(concat_ws(' ', label::VARCHAR, details)) AS hash FROM runs LEFT JOIN added USING (run_id)"""
    )
    return {row["run_id"]: row["hash"] for row in rows}


def _remember_added(log: ExperimentLog, copy: str, added: Mapping[str, str]) -> None:
    """After the push, else one that is cut off would leave the copy without it."""
    statement = (
        "UPDATE copied_runs SET added = new.added FROM (SELECT unnest(?::VARCHAR[]) AS run_id,"
        " unnest(?::VARCHAR[]) AS added) AS new WHERE copy = ? AND copied_runs.run_id = new.run_id"
    )
    if added:
        log.write(lambda con: con.execute(statement, [[*added], [*added.values()], copy]))
