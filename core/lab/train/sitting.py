"""A training in a folder.

Its loop, its events, the best result so far, and going on after a kill with the same curve. The folder is at
every moment a result that can be served (once the first validation is done) with three files more:
`train.json`, what was asked for; `progress.jsonl`, an event a line, which a watcher may read while it grows;
`resume.safetensors`, what the learner needs to go on from the last save. A learner draws the randomness of
update u from (seed, u) alone, so nothing about it has to be saved. The best by validation is kept. The last
one, whose learning rate has fallen, takes its place unless the best lies more than a standard error above:
among equals by so few examples it measured better.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from safetensors import SafetensorError, safe_open

from core.base.errors import BadRequest
from core.runs.log.measurements import Training

if TYPE_CHECKING:
    import torch

SAVE_EVERY = 50
"""Updates between saves, beside those after each validation; a killed run repeats at most these."""
CONFIG_FILE, PROGRESS_FILE, RESUME_FILE = "train.json", "progress.jsonl", "resume.safetensors"

TrainEvent = dict[str, Any]
"""One line of `progress.jsonl`: `{"event": "started" | "update" | "validated" | "finished", ...}`."""


class Learner(Protocol):
    """What is trained."""

    def step(self, update: int) -> TrainEvent:
        """One 0-based update; its figures."""
        ...

    def validate(self, *, is_last: bool) -> TrainEvent:
        """Scores of what there is now, with `score`; offers it to the folder (see `Sitting.offer`)."""
        ...

    def tensors(self) -> dict[str, torch.Tensor]:
        """Everything that the next update depends on."""
        ...


class Sitting:
    """One training in its folder. `run` generates events; closing it stops between two updates."""

    def __init__(self, folder: Path, wanted: dict[str, Any]) -> None:
        """`wanted`: plain JSON values. Raises BadRequest when the folder holds anything but this training."""
        self.folder = folder
        self.update = 0
        """The next update, 0-based."""
        self.best: float | None = None
        self.seconds = 0.0
        """Spent training, over all sittings, validation included."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / CONFIG_FILE
        if not path.exists():
            if any(folder.iterdir()):
                raise BadRequest(f"{folder} is not empty and holds no training; name a new folder")
            identity = {"training_id": secrets.token_hex(16), "created_at": datetime.now(UTC).isoformat()}
            path.write_text(json.dumps(identity | wanted, indent=2) + "\n", encoding="utf-8")
        elif not wanted.items() <= read_training_file(folder).items():
            raise BadRequest(
                f"{folder} holds a training with other settings; name a new folder, or give the settings in"
                f" its {CONFIG_FILE}"
            )

    def resume(self, restore: Callable[[dict[str, torch.Tensor]], None]) -> None:
        """Goes on from the last save, if there is one, whose tensors `restore` takes over; events told after
        it are taken back.

        Raises BadRequest when it can't be read.
        """
        from safetensors.torch import load_file  # with torch; who only reads of trainings does without

        path = self.folder / RESUME_FILE
        if path.exists():
            try:
                with safe_open(path, "pt") as file:
                    metadata = file.metadata()
                restore(load_file(path))
                self.update, self.seconds = int(metadata["update"]), float(metadata["seconds"])
                self.best = float(metadata["best"]) if metadata["best"] else None
            except (OSError, SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
                remedy = "delete that file to begin again, or name a new folder"
                raise BadRequest(
                    f"{path} can't be read, so the training can't go on from it; {remedy}"
                ) from error
        events = [
            event
            for event in read_progress(self.folder)
            if self.update and event.get("update", 0) <= self.update and event["event"] != "finished"
        ]
        (self.folder / PROGRESS_FILE).write_text(
            "".join(json.dumps(event) + "\n" for event in events), encoding="utf-8"
        )

    def run(
        self, learner: Learner, updates: int, validate_every: int, **started: Any
    ) -> Generator[TrainEvent]:
        """Trains to the end or until closed; each event comes once written. `started`: the first event's."""
        if self.update == 0:
            yield self._tell("started", **started)
            yield self._tell("validated", update=0, **learner.validate(is_last=False))
        while self.update < updates:
            began = time.perf_counter()
            measured = learner.step(self.update)
            self.update += 1
            self.seconds += time.perf_counter() - began
            left = self.seconds / self.update * (updates - self.update)
            yield self._tell(
                "update",
                update=self.update,
                seconds=round(self.seconds, 1),
                seconds_left=round(left, 1),
                **measured,
            )
            validated = self.update % validate_every == 0 or self.update == updates
            if validated:
                began = time.perf_counter()
                scores = learner.validate(is_last=self.update == updates)
                self.seconds += time.perf_counter() - began
                yield self._tell("validated", update=self.update, **scores)
            if validated or self.update % SAVE_EVERY == 0:
                self._save(learner.tensors())
        yield self._tell("finished", update=self.update, seconds=round(self.seconds, 1), best=self.best)

    @property
    def record(self) -> TrainEvent:
        """What a result's card says of its training."""
        return {"updates": self.update, "seconds": round(self.seconds)}

    def offer(
        self, candidate: Path, score: float, error: float, *, is_last: bool, last_file: str
    ) -> TrainEvent:
        """Takes a candidate's files into the folder, `last_file` last, unless it holds a better one; what the
        event says of it. The candidate is gone.
        """
        kept = is_kept(score, error, self.best, is_last=is_last)
        if kept:
            self.best = score
            for path in sorted(candidate.rglob("*"), key=lambda path: path.name == last_file):
                if path.is_file():
                    target = self.folder / path.relative_to(candidate)
                    target.parent.mkdir(exist_ok=True)
                    os.replace(path, target)
        shutil.rmtree(candidate, ignore_errors=True)
        return {"kept": True} if kept else {}

    def new_candidate(self) -> Path:
        """An empty folder within this one."""
        candidate = self.folder / "candidate"
        shutil.rmtree(candidate, ignore_errors=True)
        candidate.mkdir()
        return candidate

    def _save(self, tensors: dict[str, torch.Tensor]) -> None:
        """Writes the resume file; a killed save leaves the one before."""
        from safetensors.torch import save_file

        metadata = {
            "update": str(self.update),
            "best": "" if self.best is None else repr(self.best),
            "seconds": repr(self.seconds),
        }
        partial = self.folder / (RESUME_FILE + ".part")
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, partial, metadata)
        os.replace(partial, self.folder / RESUME_FILE)

    def _tell(self, event: str, **values: Any) -> TrainEvent:
        line: TrainEvent = {"event": event, **values}
        with (self.folder / PROGRESS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return line


def read_training_file(folder: Path) -> dict[str, Any]:
    """training_id, created_at, config, spec, data. Raises BadRequest when the folder holds no training."""
    try:
        values: dict[str, Any] = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadRequest(
            f"{folder} holds no readable {CONFIG_FILE}; name the folder of a training"
        ) from error
    return values


def read_progress(folder: Path) -> list[TrainEvent]:
    """Events of a training so far, also while it runs: a line still being written is left out."""
    try:
        text = (folder / PROGRESS_FILE).read_text(encoding="utf-8")
    except OSError:
        return []
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def is_kept(score: float, error: float, best: float | None, *, is_last: bool) -> bool:
    """Whether a result takes the place of the one kept so far, which scored `best`; `error`: standard error
    of the score.

    >>> is_kept(0.97, 0.01, 0.975, is_last=False), is_kept(0.97, 0.01, 0.975, is_last=True), is_kept(
    ...     0.9, 0.02, 0.975, is_last=True)
    (False, True, False)
    """
    return best is None or best <= score + error * is_last


def training_record(folder: Path) -> Training:
    """A training's folder as the log keeps it, as far as it has come. Raises BadRequest for no training."""
    record = read_training_file(folder)
    return Training(
        training_id=record["training_id"],
        created_at=datetime.fromisoformat(record["created_at"]),
        folder=folder.name,
        config=record["config"],
        events=tuple(read_progress(folder)),
    )
