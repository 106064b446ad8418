"""Trainings as child processes.

A training is `python -m core train` in a session of its own, so it outlives the page and the app. Its agent
and progress are in `<home>/agents/<name>`, which the trainer alone writes; what the app has to remember (the
command, a copy of the questions, the output) is in `<home>/trainings/<name>`. The child inherits a lock on a
file there, and the system drops it with the process, however it ends; so a restarted app, too, knows what
runs, and a recycled process id fools nobody. Names are checked here and folders are made from them; no folder
to write to ever comes from a visitor.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from app.services.agents import agents_folder, own_agents
from core.base.errors import BadCheckpoint, BadRequest
from core.base.home import ROOT, home
from core.encode.checkpoint import DEFAULT_NAMES, SPEC_FILE, find_checkpoint, read_spec, shipped_checkpoints
from core.encode.packaged import MINILM
from core.lab.tasks.data import data_folder
from core.lab.train.config import TrainConfig
from core.lab.train.mixtures import OwnMixture
from core.lab.train.recipes import RECIPES
from core.lab.train.sitting import (
    CONFIG_FILE,
    PROGRESS_FILE,
    RESUME_FILE,
    SAVE_EVERY,
    TrainEvent,
    read_progress,
    read_training_file,
)

NICENESS = 10
"""The page must stay quick while a training takes every core."""
MAX_NAME = 40
QUICK_UPDATES = 30
_PACE = ("episodes", "steps", "rank", "objective")
"""Settings that decide how long an update takes, beside the data."""
_LIKE_MULTI_HOP = ("own", "multi-hop-without-musique")
"""Data whose chunks are paragraphs, as those of the agent that ships."""
LIVELY = 600.0
"""Seconds without news, longer than a validation, after which a command line's training has ended."""
_NAME = re.compile(rf"[a-z0-9][a-z0-9-]{{0,{MAX_NAME - 1}}}")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")

State = Literal["starting", "running", "stopping", "finished", "stopped", "cut off", "failed", "elsewhere"]
LIVE: tuple[State, ...] = ("starting", "running", "stopping", "elsewhere")
"""States in which more is to come. "elsewhere": a command line runs it, so it can't be stopped from here."""

_SWITCHES = {
    "soft_values": (False, "--no-soft-values"),
    "target_towers": (False, "--no-target-towers"),
    "bootstrap_at_cap": (True, "--bootstrap-at-cap"),
    "penalize_extra_steps": (False, "--no-penalty"),
}
"""The flag that gives a yes or no its other value."""


@dataclass(frozen=True)
class Order:
    """What a person asks for."""

    name: str
    config: TrainConfig
    base: str = MINILM
    """Hub id or folder of the base encoder."""
    questions: Path | None = None
    """File of own questions; copied, so that the training can go on when the upload is gone."""


@dataclass(frozen=True)
class ShownTraining:
    """One training as it stands."""

    name: str
    folder: Path
    state: State
    config: dict[str, Any]
    """Settings by name; empty until the child has written them."""
    base: str
    """Hub id of the base encoder, "." for a local one; empty until the child has written it."""
    created_at: datetime | None
    events: tuple[TrainEvent, ...]
    message: str = ""
    """Why it failed, in a sentence."""
    arguments: tuple[str, ...] = ()
    """What stands behind `python -m core`; empty for a training that a command line started."""
    has_agent: bool = False
    """The first validation is done, so there is an agent to look at."""

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    @property
    def can_stop(self) -> bool:
        return self.state in ("starting", "running")

    @property
    def can_resume(self) -> bool:
        return bool(self.arguments) and self.state in ("stopped", "cut off", "failed")

    @property
    def updates(self) -> list[TrainEvent]:
        return [event for event in self.events if event["event"] == "update"]

    @property
    def validations(self) -> list[TrainEvent]:
        return [event for event in self.events if event["event"] == "validated"]

    @property
    def best_validation(self) -> TrainEvent | None:
        """The validation whose agent is in the folder."""
        return next((event for event in reversed(self.validations) if event.get("kept")), None)

    @property
    def last_save(self) -> int:
        """The update that a resumed training goes on from."""
        if not (self.folder / RESUME_FILE).exists():
            return 0
        n = int(self.updates[-1]["update"]) if self.updates else 0
        return max(n // SAVE_EVERY * SAVE_EVERY, *(int(event["update"]) for event in self.validations), 0)


class Trainings:
    """The trainings on this machine."""

    def __init__(self, log: Path) -> None:
        """log: the experiment log that configurations and curves go to when a training ends."""
        self._log = log
        self._beginning = threading.Lock()
        """A training is begun, or stopped, while no other one is."""
        self._read: dict[Path, tuple[tuple[int, int], tuple[TrainEvent, ...]]] = {}

    def start(self, order: Order) -> None:
        """Begins a training. Raises BadRequest before anything is written when it can't be."""
        check_name(order.name)
        with self._beginning:
            self._begin(order)

    def _begin(self, order: Order) -> None:
        self._check_free()
        folder, desk = agents_folder() / order.name, _desk(order.name)
        if folder.exists():
            raise BadRequest(
                f"there is an agent {order.name!r} already; choose another name, or go on with its training"
                " below"
            )
        if order.questions is not None:
            OwnMixture(order.questions)  # every mistake in the file is told here, where it was chosen
        elif order.config.data == "own":
            raise BadRequest("no file of questions is chosen; drop one first")
        else:
            data_folder()
        try:
            shutil.rmtree(desk, ignore_errors=True)  # of an order of that name which never came to train
            desk.mkdir(parents=True)
            questions = None
            if order.questions is not None:
                questions = desk / ("questions.jsonl" + ".gz" * (order.questions.suffix == ".gz"))
                shutil.copyfile(order.questions, questions)
            arguments = command(order, folder, self._log, questions)
            written = {"arguments": arguments, "created_at": datetime.now(UTC).isoformat()}
            (desk / "order.json").write_text(json.dumps(written), encoding="utf-8")
        except OSError as error:
            raise BadRequest(
                f"the training can't be kept in {desk} ({error.strerror}); make room, or set QRAG_HOME to"
                " another folder"
            ) from error
        self._spawn(desk, arguments)

    def resume(self, name: str) -> None:
        """Goes on where the last save left off, with the settings it was begun with. Raises BadRequest."""
        with self._beginning:
            training = self.get(name)
            if not training.can_resume:
                raise BadRequest(f"training {name!r} is {training.state}, so it can't go on from here")
            self._check_free()
            self._spawn(_desk(name), list(training.arguments))

    def stop(self, name: str) -> None:
        """Asks the child to stop; the best agent so far stays. Raises BadRequest when none runs."""
        with self._beginning:
            training, desk = self.get(name), _desk(name)
            if not training.can_stop:
                raise BadRequest(f"training {name!r} is {training.state}, so there is nothing to stop")
            written = (desk / "lock").read_text()
            if not written:  # another app on this home is about to
                raise BadRequest(f"training {name!r} is only just beginning; stop it again in a second")
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(int(written), signal.SIGINT)
                (desk / "stopping").touch()

    def all(self) -> list[ShownTraining]:
        """Every training whose folder is here, the latest first."""
        files = *agents_folder().glob(f"*/{CONFIG_FILE}"), *_desk("").glob("*/order.json")
        names = {path.parent.name for path in files}
        trainings = [self.get(name) for name in names if _NAME.fullmatch(name)]
        latest = datetime.now(UTC)
        return sorted(trainings, key=lambda one: (one.created_at or latest, one.name), reverse=True)

    def get(self, name: str) -> ShownTraining:
        """One training. Raises BadRequest when there is none of that name."""
        check_name(name, reserved=False)
        folder, desk = agents_folder() / name, _desk(name)
        order = _order(desk)
        if order is None and not (folder / CONFIG_FILE).exists():
            raise BadRequest(f"there is no training {name!r}; choose one of the list")
        record: dict[str, Any] = {}
        with suppress(BadRequest):
            record = read_training_file(folder)
        events = self._events(folder)
        state, message = _state(folder, desk, order is not None, events)
        created = record.get("created_at") or (order or {}).get("created_at")
        return ShownTraining(
            name=name,
            folder=folder,
            state=state,
            config=dict(record.get("config", {})),
            base=str(record.get("spec", {}).get("base", "")),
            created_at=datetime.fromisoformat(created) if created else None,
            events=events,
            message=message,
            arguments=tuple((order or {}).get("arguments", ())),
            has_agent=(folder / SPEC_FILE).exists(),
        )

    def seconds_an_update(self, config: TrainConfig, base: str) -> float | None:
        """Seconds an update of such a training took here, validation included; None where not measured."""
        base = "." if Path(base).is_dir() else base
        for training in self.all():
            alike = all(training.config.get(name) == getattr(config, name) for name in ("data", *_PACE))
            if alike and training.base == base and training.updates:
                last = training.updates[-1]
                return float(last["seconds"]) / int(last["update"])
        return None

    def _events(self, folder: Path) -> tuple[TrainEvent, ...]:
        """Events so far, parsed again only when there are more."""
        path = folder / PROGRESS_FILE
        try:
            stat = path.stat()
        except OSError:
            return ()
        stamp = (stat.st_size, stat.st_mtime_ns)
        if path not in self._read or self._read[path][0] != stamp:
            with suppress(ValueError):  # half a line of an unclean end: what was read before stays
                self._read[path] = (stamp, tuple(read_progress(folder)))
        return self._read[path][1] if path in self._read else ()

    def _check_free(self) -> None:
        running = next((training.name for training in self.all() if training.is_live), None)
        if running is not None:
            raise BadRequest(
                f"the training {running!r} still runs, and two at once would only slow each other down; stop"
                " it or wait"
            )

    def _spawn(self, desk: Path, arguments: list[str]) -> None:
        """The child, its output in a file, its end noted as soon as it comes."""
        lock = _take_lock(desk)
        try:
            for name in ("stopping", "exit"):
                (desk / name).unlink(missing_ok=True)
            with (desk / "output.txt").open("wb") as output:
                child = subprocess.Popen(
                    [sys.executable, "-m", "core", *arguments],
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                    pass_fds=[lock],
                )
        except BaseException as error:
            os.close(lock)
            if isinstance(error, OSError):
                raise BadRequest(
                    f"the training could not be started ({error.strerror}); see that {desk} can be written to"
                ) from error
            raise
        os.setpriority(os.PRIO_PROCESS, child.pid, NICENESS)
        os.pwrite(lock, str(child.pid).encode(), 0)
        threading.Thread(target=_note_end, args=[child, desk, lock], daemon=True).start()


def _note_end(child: subprocess.Popen[bytes], desk: Path, lock: int) -> None:
    """Writes the exit status before the lock is let go, so that nobody sees an ended training without it."""
    status = child.wait()
    try:
        with suppress(OSError):
            (desk / "exit").write_text(str(status))
    finally:
        os.close(lock)


def startable_agents() -> dict[str, str]:
    """What `--start-from` takes, by name: agents to train further, whose weights are adapters."""
    startable = {}
    for start in (*shipped_checkpoints(), *map(str, own_agents())):
        with suppress(BadCheckpoint):
            if read_spec(find_checkpoint(start)).weights == "adapters":
                startable[Path(start).name] = start
    return startable


def shipped_seconds_an_update(config: TrainConfig) -> float | None:
    """Seconds that an update of the shipped agent took where it was trained alike; None where none was."""
    name = "multi-hop" if config.data in _LIKE_MULTI_HOP else config.data
    if name not in shipped_checkpoints():
        return None
    record = read_spec(find_checkpoint(name)).training or {}
    seconds = [
        part["seconds"] / part["updates"]
        for part in record.get("blend", [record])
        if part.get("seconds") and all(part["config"].get(each) == getattr(config, each) for each in _PACE)
    ]
    return sum(seconds) / len(seconds) if seconds else None


def check_name(name: str, *, reserved: bool = True) -> str:
    """Raises BadRequest for a name that can't be a folder's, or that belongs to an agent that ships."""
    if not name:
        raise BadRequest("the agent name is empty; write one, such as my-agent")
    if not _NAME.fullmatch(name):
        start = name[:MAX_NAME]
        raise BadRequest(
            f"agent name {start!r} must be 1 to {MAX_NAME} small letters, digits and hyphens, and begin with"
            " a letter or digit; choose such a name"
        )
    if reserved and name in (*shipped_checkpoints(), *DEFAULT_NAMES):
        raise BadRequest(f"{name!r} is the name of an agent that ships with the app; choose another one")
    return name


def available_data() -> list[str]:
    """Names of the recipes whose data are on this machine; a person's own questions always are."""
    try:
        data_folder()
    except BadRequest:
        return ["own"]
    return list(RECIPES)


def recipe_config(data: str) -> TrainConfig:
    """The defaults of a kind of training. Raises BadRequest for an unknown one."""
    if data not in RECIPES:
        raise BadRequest(f"training data {data!r} is unknown; choose one of {', '.join(RECIPES)}")
    return TrainConfig(**{"data": data} | RECIPES[data].settings)


def quick_config(data: str) -> TrainConfig:
    """The same in minutes: enough to see whether an agent learns from the questions."""
    config = recipe_config(data)
    updates = min(config.updates, QUICK_UPDATES)
    return replace(config, updates=updates, validate_every=updates // 2, n_validation=40, warmup=5)


def checked_base(text: str) -> str:
    """A base encoder by hub id or folder, empty for the usual one. Raises BadRequest."""
    base = text.strip()
    if not base:
        return MINILM
    if not Path(base).is_dir() and not _HUB_ID.fullmatch(base):
        raise BadRequest(
            f"base encoder {base[:80]!r} is neither a hub id nor a folder on this machine; correct it, or"
            f" leave it empty for {MINILM}"
        )
    return base


def command(order: Order, folder: Path, log: Path, questions: Path | None = None) -> list[str]:
    """What stands behind `python -m core`: every setting as a flag, so new defaults change no resuming."""
    source = [f"--questions={questions}"] if questions is not None else [f"--data={order.config.data}"]
    arguments = ["train", f"--out={folder}", f"--log={log}", *source, f"--base={order.base}"]
    for field in fields(TrainConfig):
        value = getattr(order.config, field.name)
        if field.name in _SWITCHES:
            turned, flag = _SWITCHES[field.name]
            arguments += [flag] if value is turned else []
        elif field.name != "data" and (field.name, value) != ("start_from", None):
            arguments.append(f"--{field.name.replace('_', '-')}={'none' if value is None else value}")
    return arguments


def example_questions() -> str:
    """A file of questions to start from, as the format is read."""
    records = (
        {
            "id": "1",
            "question": "Where is the ferry that Ines took?",
            "chunks": [
                "Ines took the Grebe on Monday.",
                "The market closes at noon.",
                "The Grebe is in dry dock at Port Ellis.",
            ],
            "support": [0, 2],
            "answer": "Port Ellis",
        },
        {
            "id": "2",
            "question": "Who keeps the key of the lighthouse?",
            "chunks": [
                "The lamp was lit at six.",
                "The key of the lighthouse hangs in the harbour office.",
                "Tomas runs the harbour office.",
            ],
            "support": [1, 2],
            "answer": "Tomas",
        },
    )
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _desk(name: str) -> Path:
    """What the app remembers of a training."""
    return home() / "trainings" / name


def _order(desk: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError):
        return dict(json.loads((desk / "order.json").read_text(encoding="utf-8")))
    return None


def _take_lock(desk: Path) -> int:
    """A descriptor that says: this training runs. Raises BadRequest when it does already."""
    descriptor = os.open(desk / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(20):  # whoever looks whether it runs holds the lock for an instant
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            return descriptor
        time.sleep(0.02)
    os.close(descriptor)
    raise BadRequest(f"the training {desk.name!r} runs already; stop it or wait")


def _is_locked(desk: Path) -> bool:
    try:
        descriptor = os.open(desk / "lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _state(folder: Path, desk: Path, ordered_here: bool, events: Sequence[TrainEvent]) -> tuple[State, str]:
    """(state, why it failed)."""
    if _is_locked(desk):
        return ("stopping" if (desk / "stopping").exists() else "running" if events else "starting"), ""
    if events and events[-1]["event"] == "finished":
        return "finished", ""
    if not ordered_here:
        written = 0.0
        for name in (PROGRESS_FILE, CONFIG_FILE):
            with suppress(OSError):
                written = max(written, (folder / name).stat().st_mtime)
        return ("elsewhere" if time.time() - written < LIVELY else "cut off"), ""
    if (desk / "stopping").exists():
        return "stopped", ""
    output, status = desk / "output.txt", _text(desk / "exit")
    said = [line.strip() for line in _text(output).splitlines() if line.strip()]
    last = said[-1] if said else "it said nothing"
    if status == "2":
        return "failed", last
    if status == "1":
        why = f"an error that nobody expected ended it: {last[:200]}; its whole output is in {output}"
        return "failed", why
    return ("stopped" if status == "130" else "cut off"), ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
