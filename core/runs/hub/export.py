"""The log's copy in a data set of the hub.

Pushed by token, pulled again where the disk did not last. A data set holds `index.json` (which runs lie in
which file, and which are shared), `runs/*.jsonl` (whole runs with their owners, see core.runs.log.mirror), and two
Parquet tables for the hub's viewer. A file of runs never changes; runs that were deleted here leave by
writing their file anew without them, and then the history is squashed and stored files that nothing refers to
are removed, so that deleted means deleted. What this log never knew was put there by another log and stays.
Each commit names the one it builds on, so two that push at once don't overwrite each other: the second is
refused and tries again later.

A bucket of the hub would have no history to clear, but takes files one by one, so that a push cut off
half-way would show. `huggingface_hub.CommitScheduler` would not do: it deletes nothing, names no commit that it
builds on, and needs the hub to be there when the app starts.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.base.errors import LogError
from core.runs.hub.client import Hub, HubError, HubMissing
from core.runs.log.mirror import (
    EndedRun,
    ended_runs,
    known_to_copy,
    remember_copied,
    take_in_shard,
    write_shard,
    write_tables,
)
from core.runs.log.records import now
from core.runs.log.store import ExperimentLog
from core.runs.log.wire import MalformedRuns

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
    """Of these, how many belong to visitors."""
    damaged: tuple[str, ...]
    """A sentence for each file that could not be taken in."""


@dataclass(frozen=True)
class _Plan:
    """What has to change so that a data set fits the log."""

    write: list[EndedRun]
    stale: list[str]
    """Files that hold runs which were deleted here; what remains of them is among `write`. One that also
    holds a stranger's runs has to be pulled first.
    """
    shared: list[str]
    n_new: int
    n_gone: int


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
        if index.uncleared:
            self._clear_history(index)
        return Pushed(plan.n_new, plan.n_gone)

    def pull(self, log: ExperimentLog) -> Pulled:
        """Takes in the data set's runs but those deleted here. Raises HubMissing, HubError, LogError."""
        commit, index = self._look(make=False)
        copied_ids, before = known_to_copy(log, self.repository), {run.run_id for run in ended_runs(log)}
        damaged = []
        n_new = 0
        with _scratch() as folder:
            for name, run_ids in sorted(index.shards.items()):
                if copied_ids.issuperset(run_ids):
                    continue
                path = self._download(name, commit, folder)
                try:
                    n_new += take_in_shard(log, path, shared=set(index.shared), deleted=copied_ids - before)
                except MalformedRuns as error:
                    damaged.append(f"{name} of {self.repository} could not be taken in: {error}")
                    continue
                remember_copied(log, self.repository, run_ids)
                path.unlink()
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
            return Path(
                self._hub.api.hf_hub_download(
                    self.repository, name, repo_type="dataset", revision=commit, local_dir=folder
                )
            )

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
            update={"shards": left, "shared": plan.shared, "uncleared": index.uncleared or bool(plan.stale)}
        )
        tables = {f"tables/{path.name}": path for path in write_tables(log, folder)}
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
            in_use = {
                file.lfs.sha256
                for file in api.list_repo_tree(repository, recursive=True, repo_type="dataset")
                if getattr(file, "lfs", None)
            }
            unused = [
                file
                for file in api.list_lfs_files(repository, repo_type="dataset")
                if file.file_oid not in in_use
            ]
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
    here, there, copied_ids = {run.run_id for run in ended}, index.run_ids, known_to_copy(log, repository)
    strangers = there - here - copied_ids
    deleted = (there & copied_ids) - here
    stale = [
        name
        for name, run_ids in index.shards.items()
        if deleted.intersection(run_ids) and strangers.isdisjoint(run_ids)
    ]
    moved = {run_id for name in stale for run_id in index.shards[name]}
    shared = {run.run_id for run in ended if run.shared} | (strangers & set(index.shared))
    write = [run for run in ended if run.run_id not in there or run.run_id in moved]
    return _Plan(write, stale, sorted(shared), n_new=len(here - there), n_gone=len(moved & deleted))


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
        problem = error.errors(include_url=False, include_input=False)[0]
        raise HubError(
            f"{_INDEX} of {repository} is not as it should be ({problem['msg']}); choose another data set, or"
            " delete that file there"
        ) from error
