"""The agents on offer.

Those that ship, the one named at the start, and those trained here.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from app.services.settings import Settings
from core.base.errors import BadCheckpoint, BadRequest
from core.base.home import home
from core.base.types import Document
from core.encode.checkpoint import (
    SPEC_FILE,
    CheckpointSpec,
    as_served,
    find_checkpoint,
    read_spec,
    shipped_checkpoints,
)
from core.encode.encoder import DualEncoder, load_encoder
from core.encode.turns import urgent
from core.methods.choice import Choice, choose, method_of
from core.methods.qrag.agent import Agent
from core.methods.registry import PLAIN as PLAIN

_logger = logging.getLogger(__name__)


def agents_folder() -> Path:
    """Where a person's own agents are."""
    return home() / "agents"


def own_agents() -> list[Path]:
    """Folders of a person's own agents that have been validated at least once, the latest first."""
    specs = agents_folder().glob(f"*/{SPEC_FILE}")
    latest_first = sorted(specs, key=lambda path: path.stat().st_mtime, reverse=True)
    return [spec.parent for spec in latest_first]


class Agents:
    """Loaded once each, and what they begin with."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._agents: dict[str, tuple[int, Agent]] = {}
        self._thresholds: dict[str, float] = {}
        self._loading = threading.Lock()

    @cached_property
    def _given_checkpoints(self) -> dict[str, Path]:
        """The one that the app was started with, and those that ship."""
        named = [self.settings.checkpoint] if self.settings.checkpoint else []
        folders = map(find_checkpoint, (*named, *shipped_checkpoints()))
        return {read_spec(folder).name: folder for folder in dict.fromkeys(folders)}

    @property
    def checkpoints(self) -> dict[str, Path]:
        """Folders of the checkpoints on offer, by name: the default, those that ship, those trained here."""
        folders = dict(self._given_checkpoints)
        for folder in own_agents():
            try:
                folders.setdefault(read_spec(folder).name, folder)
            except BadCheckpoint as error:
                _logger.warning("left out of the agents: %s", error)
        return folders

    def is_own(self, name: str) -> bool:
        """Whether the agent of that name was trained here, so that its defaults are the person's to set."""
        folder = self.checkpoints.get(name)
        return folder is not None and folder in own_agents()

    def served(self, spec: CheckpointSpec) -> CheckpointSpec:
        """The spec with the stop threshold that a person set until the app is closed, if any."""
        threshold = self._thresholds.get(spec.name)
        return spec if threshold is None else spec.model_copy(update={"stop_threshold": threshold})

    def use_threshold(self, name: str, threshold: float | None) -> None:
        """The stop threshold an agent begins with until the app closes; None: its own. Raises BadRequest."""
        self.check_local_defaults()
        self._thresholds.pop(name, None)
        if threshold is not None:
            self._thresholds[name] = threshold

    def check_local_defaults(self) -> None:
        """Raises BadRequest in public mode, where nobody may set what all begin with."""
        if self.settings.public:
            raise BadRequest(
                "what agents begin with is the same for all visitors; set the threshold in Explore's"
                " settings, for your own runs"
            )

    @property
    def default_checkpoint(self) -> str:
        """Name of the checkpoint that a first visit begins with."""
        return next(iter(self.checkpoints))

    def choice_for(self, documents: Sequence[Document]) -> Choice:
        """What answers questions about documents where nobody chose; the agent named at the start, if any."""
        specs = {name: as_served(read_spec(folder)) for name, folder in self.checkpoints.items()}
        if self.settings.checkpoint is not None:
            return Choice(self.default_checkpoint, method_of(specs[self.default_checkpoint]))
        return choose(documents[0], specs)

    def trained_for(self, documents: Sequence[Document], spec: CheckpointSpec) -> str:
        """The trained agent that ships and suits documents opened under an untrained one; else empty."""
        if spec.trained:
            return ""
        trained = {name: other for name in self._given_checkpoints if (other := self.spec(name)).trained}
        return choose(documents[0], trained).checkpoint if trained else ""

    def spec(self, name: str) -> CheckpointSpec:
        """What the folder of an agent that is on offer says, without its weights. Raises BadCheckpoint."""
        return as_served(read_spec(self.checkpoints[name]))

    def load(self, name: str) -> Agent:
        """A loaded agent, as its folder has it now: a training may have bettered it. Raises BadCheckpoint;
        BadRequest for a name that is not on offer.
        """
        folders = self.checkpoints
        if name not in folders:
            raise BadRequest(f"agent {name!r} is not on offer; choose among {', '.join(folders)}")
        # written last, when a training keeps a better agent
        changed_at = (folders[name] / SPEC_FILE).stat().st_mtime_ns
        with self._loading:
            known_at, agent = self._agents.get(name, (0, None))
            if agent is None or known_at != changed_at:
                agent = Agent(load_encoder(str(folders[name])))
                self._agents[name] = changed_at, agent
                named = f"warm-up of {name}"
                threading.Thread(target=_warm_up, args=[agent.encoder], name=named, daemon=True).start()
            return agent


def _warm_up(encoder: DualEncoder) -> None:
    """While a document is opened, for it takes seconds; at usual priority, since who asks waits for it."""
    with suppress(BadCheckpoint), urgent():  # which the first run says, too
        encoder.warm_up()
