"""Evaluations and trainings in the log.

Rows and progress events, written whole. Logging the same training again adds the events that are missing; an
evaluation is written once, and read by its owner. When another process owns the log, they wait in its inbox.
Numbers that follow from rows are not kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import AwareDatetime, ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass

from core.base.errors import LogError, RunNotFound
from core.base.rows import EpisodeRow
from core.runs.log.bounds import check_bounds
from core.runs.log.database import Connection, storable
from core.runs.log.queries import MINE, RunReader, WritableLog
from core.runs.log.records import new_run_id, now
from core.runs.log.statements import json_text, stored_time
from core.runs.log.wire import MalformedRuns

_CHECKED = ConfigDict(extra="forbid", allow_inf_nan=False)


@checked_dataclass(frozen=True, kw_only=True, config=_CHECKED)
class Evaluation:
    """One evaluation of one task."""

    evaluation_id: str
    """32 hex digits, as of a run."""
    created_at: AwareDatetime
    config: dict[str, Any]
    """What qualified the numbers: the `config` of `evaluate --json`."""
    rows: tuple[EpisodeRow, ...]
    owner: str | None = None
    kind: Literal["evaluation"] = "evaluation"


@checked_dataclass(frozen=True, kw_only=True, config=_CHECKED)
class Training:
    """One training, as far as it has come."""

    training_id: str
    created_at: AwareDatetime
    folder: str
    """Where it writes."""
    config: dict[str, Any]
    events: tuple[dict[str, Any], ...]
    """Each with its kind under "event", in order."""
    owner: str | None = None
    kind: Literal["training"] = "training"


@dataclass(frozen=True)
class EvaluationEntry:
    """One line of a list of evaluations."""

    evaluation_id: str
    created_at: datetime
    task: str
    length: int | None
    method: str
    checkpoint: str
    n: int
    config: dict[str, Any]


def new_evaluation(
    rows: Sequence[EpisodeRow], config: dict[str, Any], owner: str | None = None
) -> Evaluation:
    """An evaluation that was just made. Raises LogError when it has no rows."""
    if not rows:
        raise LogError("an evaluation without rows is not logged; evaluate at least one example")
    return Evaluation(
        evaluation_id=new_run_id(), created_at=now(), config=config, rows=tuple(rows), owner=owner
    )


def insert(con: Connection, measurement: Evaluation | Training) -> bool:
    """Whether it brought anything new."""
    if isinstance(measurement, Evaluation):
        return _insert_evaluation(con, measurement)
    return _insert_training(con, measurement)


def inbox_file(measurement: Evaluation | Training) -> tuple[str, str]:
    """(name, text) of the file that holds a measurement until the owner of the log takes it in."""
    name = measurement.evaluation_id if isinstance(measurement, Evaluation) else measurement.training_id
    return f"{name}.{measurement.kind}", _MEASUREMENT.dump_json(measurement).decode()


def list_evaluations(log: RunReader, owner: str | None = None) -> list[EvaluationEntry]:
    """The reader's evaluations, newest first."""
    rows = log.rows(
        f"""SELECT evaluation_id, created_at, any_value(task) AS task, any_value(length) AS length,
            any_value(method) AS method, any_value(checkpoint) AS checkpoint, count(*) AS n, any_value(config) AS config
            FROM evaluations JOIN episode_rows USING (evaluation_id) WHERE {MINE} GROUP BY evaluation_id, created_at
            ORDER BY created_at DESC, evaluation_id""",
        {"owner": owner},
    )
    return [EvaluationEntry(**_readable(row)) for row in rows]


def read_evaluation(log: RunReader, evaluation_id: str, owner: str | None = None) -> Evaluation:
    """One evaluation with its rows. Raises RunNotFound unless it is the reader's own."""
    key = {"id": storable(evaluation_id)}
    heads = log.rows(
        f"SELECT created_at, config, owner FROM evaluations WHERE evaluation_id = $id AND {MINE}",
        key | {"owner": owner},
    )
    if not heads:
        raise RunNotFound(f"there is no evaluation {evaluation_id[:64]!r} of yours; check the id")
    rows = log.rows(
        f"SELECT {_ROW_COLUMNS} FROM episode_rows WHERE evaluation_id = $id ORDER BY position", key
    )
    evaluated = tuple(EpisodeRow(**row) for row in rows)
    return Evaluation(evaluation_id=evaluation_id, **_readable(heads[0]), rows=evaluated)


def take_in(log: WritableLog, path: Path) -> bool:
    """Enter an inbox file; False when it brought nothing new. Raises MalformedRuns."""
    try:
        measurement = _MEASUREMENT.validate_json(path.read_bytes())
        check_bounds(_MEASUREMENT.dump_python(measurement))
    except (ValidationError, OSError, LogError) as error:
        raise MalformedRuns(
            f"{path} holds no evaluation and no training ({str(error).splitlines()[0]}); make it again"
        ) from error
    return log.write(lambda con: insert(con, measurement))


_MEASUREMENT: TypeAdapter[Evaluation | Training] = TypeAdapter(Evaluation | Training)


def _sql_type(hint: Any) -> Any:
    """Of a field of a row, None being left out, as `from_json` wants it."""
    parts = get_args(hint)
    if get_origin(hint) is tuple:
        return [_sql_type(parts[0])]
    return _sql_type(parts[0]) if parts else {str: "VARCHAR", int: "BIGINT", float: "DOUBLE"}[hint]


_COLUMNS = {name: _sql_type(hint) for name, hint in get_type_hints(EpisodeRow).items()}
"""Of a row, as DuckDB unpacks them from JSON; one insert a row would take a second for 900."""
_ROW_COLUMNS = ", ".join(_COLUMNS)
_INSERT_ROWS = f"""
    INSERT INTO episode_rows BY NAME SELECT $evaluation_id AS evaluation_id, position, unnest(row) FROM (
        SELECT unnest(from_json($rows::JSON, '{json.dumps([_COLUMNS])}')) AS row, generate_subscripts(from_json($rows::JSON, '["JSON"]'), 1) - 1 AS position)"""


def _insert_evaluation(con: Connection, evaluation: Evaluation) -> bool:
    made, config = stored_time(evaluation.created_at), json_text(evaluation.config)
    values = [evaluation.evaluation_id, evaluation.owner, made, config]
    if con.execute("INSERT OR IGNORE INTO evaluations VALUES (?, ?, ?, ?)", values).fetchone() == (0,):
        return False
    rows = json_text([asdict(row) for row in evaluation.rows])
    con.execute(_INSERT_ROWS, {"evaluation_id": evaluation.evaluation_id, "rows": rows})
    return True


def _insert_training(con: Connection, training: Training) -> bool:
    key = [training.training_id]
    row = con.execute("SELECT owner FROM trainings WHERE training_id = ?", key).fetchone()
    if row is None:
        made, folder = stored_time(training.created_at), storable(training.folder)
        values = [*key, training.owner, made, folder, json_text(training.config)]
        con.execute("INSERT INTO trainings VALUES (?, ?, ?, ?, ?)", values)
    elif row != (training.owner,):
        raise RunNotFound(f"training {training.training_id} is another's; log it under an id of its own")
    [(n,)] = con.execute("SELECT count(*) FROM training_events WHERE training_id = ?", key).fetchall()
    for position, event in enumerate(training.events[n:], start=n):
        con.execute(
            "INSERT INTO training_events VALUES (?, ?, ?, ?)",
            [*key, position, str(event.get("event", "")), json_text(event)],
        )
    return row is None or len(training.events) > n


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose time says its zone, and whose configuration is no text."""
    return row | {"created_at": row["created_at"].replace(tzinfo=UTC), "config": json.loads(row["config"])}
