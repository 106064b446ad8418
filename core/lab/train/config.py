"""Settings of trainings.

An agent's feed flags, the Train tab, the training's folder and the checkpoint's record. Defaults are those of
*narrative*, where its recipe names no others; how the shipped agents were trained stands on their cards.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from core.base.config import check_numbers, words
from core.base.errors import BadRequest

Objective = Literal["pqn", "supervised"]
OBJECTIVES: tuple[Objective, ...] = ("pqn", "supervised")
PositionKind = Literal["none", "relative"]
POSITION_KINDS: tuple[PositionKind, ...] = ("relative", "none")

LEAST = {"updates": 1, "rank": 1, "warmup": 0, "validate_every": 1, "n_validation": 1, "seed": 0}
"""Smallest value of each whole number of a `LowRankConfig`."""
ABOVE_0 = ("learning_rate",)
"""Its numbers with which nothing is trained where they are 0."""
_UNIT = ("gamma", "trace_lambda", "ema", "final_share", "exploring_starts", "dropout")
"""Settings between 0 and 1."""


@dataclass(frozen=True, kw_only=True)
class LowRankConfig:
    """One training of encoders by LoRA."""

    updates: int = 240
    """Gradient steps."""
    rank: int = 32
    """Size of the LoRA changes; more can learn more, and takes longer."""
    learning_rate: float = 1e-3
    """Peak; falls linearly."""
    warmup: int = 30
    """Updates over which the rate rises from 0."""
    weight_decay: float = 1e-3
    """Of AdamW."""
    validate_every: int = 120
    """Updates between validations. The best so far is kept at each."""
    n_validation: int = 500
    """Questions of each validation."""
    seed: int = 0
    """The same seed repeats a training."""

    def rate(self, update: int) -> float:
        """Learning rate of a 0-based update."""
        return scheduled(self.learning_rate, update, self.updates, self.warmup)


@dataclass(frozen=True, kw_only=True)
class TrainConfig(LowRankConfig):
    """One training run. Q and temperatures are in units of the return, whose largest value is 1."""

    updates: int = 720
    learning_rate: float = 6e-4
    warmup: int = 20
    validate_every: int = 100
    n_validation: int = 140
    data: str = "narrative"
    """Name of a mixture, or `own` for a person's questions."""
    start_from: str | None = None
    """Agent (name or folder) whose adapters are trained further; None begins with the base encoder."""
    objective: Objective = "pqn"
    """pqn: Q-RAG algorithm 1; supervised: cross-entropy on the support. Trajectories of the latter take only
    support, in random order (the paper's SFT).
    """
    episodes: int = 20
    """Questions played for one gradient step."""
    steps: int = 5
    """T: most chunks an episode takes. Fewer where it has fewer chunks."""
    position_kind: PositionKind = "relative"
    """Whether Q knows where a chunk stands among those chosen (eq. 6)."""
    dropout: float = 0.0
    """Share of activations dropped in training. By the online towers; targets and validation drop none."""
    final_share: float = 0.05
    """Rate and temperature fall linearly to this share of their initial values."""
    clip: float = 2.0
    """Largest L2 norm of the gradient."""
    alpha: float = 0.03
    """Initial temperature of exploration and of the soft values (eq. 2, 3)."""
    gamma: float = 0.99
    """Discount of later rewards."""
    trace_lambda: float = 0.6
    """Decay of the lambda-returns."""
    ema: float = 0.05
    """Share of the online weights that enters the target weights after each update."""
    top_k_actions: int | None = 5
    """Exploration and soft values consider this many best chunks; None: all."""
    exploring_starts: float = 0.0
    """Share of episodes that begin with some support, or a mistake, already taken. The part is random and
    may be empty; half of them have taken a chunk that reads like support as well. So Q holds whatever was
    found first, as a review needs it, and beside what was taken by mistake.
    """
    soft_values: bool = True
    """False: the value of a state is its largest Q, as in plain Q-learning."""
    target_towers: bool = True
    """False: values come from the online towers."""
    bootstrap_at_cap: bool = False
    """True: the return at the step cap goes on with the next value (algorithm 1); False: it ends there."""
    penalize_extra_steps: bool = True
    """False: reward 1, however many chunks it took. Else 0.5 + 0.5 * |support| / |chosen| on completion."""
    ranking_weight: float = 0.1
    """Weight of a second loss that ranks support first; 0: none. It is cross-entropy on support
    not yet taken.
    """
    ranking_temperature: float = 0.05
    """Of the ranking loss, in units of Q."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        for name in _UNIT:
            if not 0 <= getattr(self, name) <= 1:
                raise BadRequest(f"{words(name)} {getattr(self, name)} must be between 0 and 1")
        if self.top_k_actions is not None and self.top_k_actions < 1:
            raise BadRequest(f"top-k actions {self.top_k_actions} must be at least 1, or none for all chunks")
        above_0 = (*ABOVE_0, "alpha", "clip", "ranking_temperature")
        check_numbers(self, LEAST | {"episodes": 1, "steps": 1}, above_0)
        for name, known, problem in (
            ("objective", OBJECTIVES, "is unknown"),
            ("position_kind", POSITION_KINDS, "can't be trained"),
        ):
            if (value := getattr(self, name)) not in known:
                raise BadRequest(f"{words(name)} {value!r} {problem}; choose one of {', '.join(known)}")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def rate(self, update: int) -> float:
        """Learning rate of a 0-based update."""
        return scheduled(self.learning_rate, update, self.updates, self.warmup, self.final_share)

    def temperature(self, update: int) -> float:
        """alpha of a 0-based update: annealed with the learning rate (Q-RAG section 3.2)."""
        return scheduled(self.alpha, update, self.updates, final_share=self.final_share)


def check_rank(rank: int, width: int) -> None:
    """Raises BadRequest for changes of more ranks than a model of that width has."""
    if rank > width:
        raise BadRequest(f"rank {rank} is above {width}, the width of the model; choose {width} or less")


def scheduled(highest: float, update: int, updates: int, warmup: int = 0, final_share: float = 0.0) -> float:
    """A value of a 0-based update, which rises linearly over the warm-up and falls linearly to a share of the
    highest.

    >>> [scheduled(1.0, update, 10, warmup=2, final_share=0.5) for update in (0, 1, 9)]
    [0.5, 0.9, 0.5]
    """
    return highest * max(final_share, 1.0 - update / updates) * min(1.0, (update + 1) / max(1, warmup))
