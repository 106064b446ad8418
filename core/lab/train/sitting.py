"""The loop of every training.

At every moment after the first validation, the folder of a training is a result that can be served, with
three files more: `train.json`, what was asked for; `progress.jsonl`, an event a line, which a watcher may
read while it grows; `resume.safetensors`, what the next update depends on. The random numbers of update u
come from (seed, u) alone, so a training that was killed goes on with the same curve.
"""

from __future__ import annotations

import json
import secrets
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from core.base.errors import BadRequest
from core.runs.log.atomic import replace_for_good, sync, write_whole
from core.runs.log.measurements import Training

if TYPE_CHECKING:
    import torch

    from core.lab.train.descent import Descent

SAVE_EVERY = 50
"""Updates between saves, beside those after each validation; a killed run repeats at most these."""
CONFIG_FILE, PROGRESS_FILE, RESUME_FILE = "train.json", "progress.jsonl", "resume.safetensors"

TrainEvent = dict[str, Any]
"""One line of `progress.jsonl`: `{"event": "started" | "update" | "validated" | "finished", ...}`."""


@dataclass(frozen=True)
class Validation:
    """What a validation measured."""

    told: TrainEvent
    score: float
    """Decides which result is kept."""
    error: float
    """Standard error of the score."""


class TrainingFolder:
    """What was asked for and what has happened, in files."""

    noun, config_file, differing = "training", CONFIG_FILE, "with other settings"
    """How sentences call it, where it is written down, and how another one differs."""

    def __init__(self, folder: Path, wanted: dict[str, Any]) -> None:
        """`wanted`: plain JSON values. Writes nothing. Raises BadRequest when the folder holds others."""
        self.folder, self.wanted = folder, wanted
        if (folder / self.config_file).exists():
            if not _asks_for(wanted, read_training_file(folder, self.config_file)):
                raise BadRequest(
                    f"{folder} holds a {self.noun} {self.differing}; name a new folder, or give the settings"
                    f" in its {self.config_file}"
                )
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise BadRequest(f"{folder} is not empty and holds no {self.noun}; name a new folder")

    def claim(self) -> None:
        """Writes down what was asked for, unless it stands there. Raises BadRequest where it can't."""
        path = self.folder / self.config_file
        if path.exists():
            return
        identity = {"training_id": secrets.token_hex(16), "created_at": datetime.now(UTC).isoformat()}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, [json.dumps(identity | self.wanted, indent=2) + "\n"])
        except OSError as error:
            raise BadRequest(
                f"{self.folder} can't be written ({error.strerror}); name another folder with --out"
            ) from error

    def events(self) -> list[TrainEvent]:
        """What was told so far."""
        return read_progress(self.folder)

    def tell(self, event: str, **values: Any) -> TrainEvent:
        """One event, once it is written."""
        line: TrainEvent = {"event": event, **values}
        with (self.folder / PROGRESS_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        return line

    def keep(self, events: Iterable[TrainEvent]) -> None:
        """Leaves these of what was told: no half line, to which the next one would be added."""
        write_whole(self.folder / PROGRESS_FILE, [json.dumps(event) + "\n" for event in events])


class Sitting(TrainingFolder, ABC):
    """One training; a subclass says what is learned. Its `run` generates events; closing that stops between
    two updates.
    """

    kind: str
    """Begins the seed of its random numbers."""
    last_file: str
    """Of a result: what a reader of the folder looks for, so it comes last."""
    descent: Descent

    def __init__(self, folder: Path, wanted: dict[str, Any]) -> None:
        """Goes on from the last save, if there is one: called when all is there that `state` gives. `wanted`:
        "config", which says of `updates`, `validate_every` and `seed`, and what else makes the training.

        Raises BadRequest when the folder holds anything but this training, or a save that can't be read.
        """
        super().__init__(folder, wanted)
        self.claim()
        self.update = 0
        """The next update, 0-based."""
        self.best: float | None = None
        self.seconds = 0.0
        """Spent training over all sessions, validation included."""
        if (folder / RESUME_FILE).exists():
            self._restore(folder / RESUME_FILE)
        last = self.update or -1  # what was told after it will be told again
        told = [event for event in self.events() if event.get("update", 0) <= last]
        self.keep(event for event in told if event["event"] != "finished")

    @abstractmethod
    def begin(self) -> TrainEvent:
        """Makes ready for updates; what the first event says beside the configuration."""

    @abstractmethod
    def step(self, update: int, rng: Random) -> TrainEvent:
        """One 0-based update; its figures."""

    @abstractmethod
    def validate(self, candidate: Path, record: TrainEvent) -> Validation:
        """Writes what there is now into a folder, as it would be served, and measures it. `record`: what its
        card says of the training so far.
        """

    @abstractmethod
    def state(self) -> dict[str, torch.Tensor]:
        """Everything that the next update depends on, the optimizer aside. Going on writes into these."""

    def run(self) -> Generator[TrainEvent]:
        """Trains to the end or until closed; each event comes once it is written."""
        config, about = self.wanted["config"], self.begin()
        if self.update == 0:
            n_parameters = self.descent.n_parameters
            yield self.tell("started", config=config, **about, n_parameters=n_parameters)
            yield self._validated()
        while self.update < config["updates"]:
            began = time.perf_counter()
            measured = self.step(self.update, Random(f"{self.kind} {config['seed']} {self.update}"))
            self.update += 1
            self.seconds += time.perf_counter() - began
            left = self.seconds / self.update * (config["updates"] - self.update)
            seconds = {"seconds": round(self.seconds, 1), "seconds_left": round(left, 1)}
            yield self.tell("update", update=self.update, **seconds, **measured)
            is_last = self.update == config["updates"]
            is_validated = is_last or self.update % config["validate_every"] == 0
            if is_validated:
                began = time.perf_counter()
                validated = self._validated()
                self.seconds += time.perf_counter() - began
                yield validated
            if is_validated or self.update % SAVE_EVERY == 0:
                self._save()
        yield self.tell("finished", update=self.update, seconds=round(self.seconds, 1), best=self.best)

    def _validated(self) -> TrainEvent:
        """Takes what there is now into the folder, its last file last, unless a better result is there."""
        candidate = self.folder / "candidate"
        shutil.rmtree(candidate, ignore_errors=True)
        candidate.mkdir()
        record = {"updates": self.update, "seconds": round(self.seconds)}
        validation = self.validate(candidate, record)
        is_last = self.update == self.wanted["config"]["updates"]
        kept = is_kept(validation.score, validation.error, self.best, is_last=is_last)
        if kept:
            self.best = validation.score
            for path in sorted(candidate.rglob("*"), key=lambda path: path.name == self.last_file):
                if path.is_file():
                    target = self.folder / path.relative_to(candidate)
                    target.parent.mkdir(exist_ok=True)
                    sync(path)
                    replace_for_good(path, target)
        shutil.rmtree(candidate, ignore_errors=True)
        mark = {"kept": True} if kept else {}
        return self.tell("validated", update=self.update, **validation.told, **mark)

    def _save(self) -> None:
        """Writes the resume file; a killed save leaves the one before, and so does a power cut."""
        from safetensors.torch import save_file  # with torch; who only reads of trainings does without

        metadata = {
            "update": str(self.update),
            "best": "" if self.best is None else repr(self.best),
            "seconds": repr(self.seconds),
        }
        tensors = self.state() | self.descent.state_dict()
        partial = self.folder / (RESUME_FILE + ".part")
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, partial, metadata)
        for path in (partial, self.folder / PROGRESS_FILE):
            sync(path)
        replace_for_good(partial, self.folder / RESUME_FILE)

    def _restore(self, path: Path) -> None:
        from safetensors.torch import load_file

        try:
            with safe_open(path, "pt") as file:
                metadata = file.metadata()
            saved = load_file(path)
            for name, tensor in self.state().items():
                tensor.detach().copy_(saved[name])
            self.descent.load_state_dict(saved)
            self.update, self.seconds = int(metadata["update"]), float(metadata["seconds"])
            self.best = float(metadata["best"]) if metadata["best"] else None
        except (OSError, SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
            remedy = "delete that file to begin again, or name a new folder"
            raise BadRequest(
                f"{path} can't be read, so the training can't go on from it; {remedy}"
            ) from error


def _asks_for(wanted: dict[str, Any], held: dict[str, Any]) -> bool:
    """Whether a folder's training is the wanted one. A setting that only an older version knew is no
    difference, so that what it left unfinished goes on.
    """

    def within(value: object, known: object) -> bool:
        if isinstance(value, dict) and isinstance(known, dict):
            return value.items() <= known.items()
        return value == known

    return all(within(value, held.get(name)) for name, value in wanted.items())


def read_training_file(folder: Path, name: str = CONFIG_FILE) -> dict[str, Any]:
    """training_id, created_at, and what was asked for. Raises BadRequest when there is no training."""
    try:
        values = json.loads((folder / name).read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError("no object")
    except (OSError, ValueError) as error:
        raise BadRequest(f"{folder} holds no readable {name}; name the folder of a training") from error
    return values


def read_progress(folder: Path) -> list[TrainEvent]:
    """Events of a training so far, also while it runs: a line still being written is left out, and so is one
    that a full disk or a crash cut off.
    """
    try:
        text = (folder / PROGRESS_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    events: list[TrainEvent] = []
    for line in text.splitlines():
        with suppress(ValueError):
            events.append(json.loads(line))
    return events


def is_kept(score: float, error: float, best: float | None, *, is_last: bool) -> bool:
    """Whether a result takes the place of the best so far, which scored `best`; `error`: standard error of
    the score. The last one, whose learning rate has fallen, may be that much worse: on so few examples both
    measure alike.

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
