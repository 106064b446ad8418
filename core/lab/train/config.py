"""Settings of an agent's training.

They feed flags, the Train tab, the training's folder and the checkpoint's record. Defaults are those of
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

_LEAST = {
    "updates": 1,
    "episodes": 1,
    "steps": 1,
    "rank": 1,
    "validate_every": 1,
    "n_validation": 1,
    "warmup": 0,
    "seed": 0,
}
"""Smallest value of each whole number."""
_UNIT = ("gamma", "trace_lambda", "ema", "final_share", "exploring_starts", "dropout")
"""Settings between 0 and 1."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """One training run. Q and temperatures are in units of the return, whose largest value is 1."""

    data: str = "narrative"
    """Name of a mixture, or `own` for a person's questions."""
    start_from: str | None = None
    """Agent (name or folder) whose adapters are trained further; None begins with the base encoder."""
    objective: Objective = "pqn"
    """pqn: Q-RAG algorithm 1; supervised: cross-entropy on the support. Trajectories of the latter take only
    support, in random order (the paper's SFT).
    """
    updates: int = 720
    """Gradient steps."""
    episodes: int = 20
    """Played in parallel for one gradient step."""
    steps: int = 5
    """T: most chunks an episode takes. Fewer where it has fewer chunks."""
    position_kind: PositionKind = "relative"
    """Of chunks, for Q (eq. 6): relative to what was chosen, or none."""
    rank: int = 32
    """Of the LoRA changes of the encoder blocks."""
    dropout: float = 0.0
    """Share of activations dropped in training. By the online towers; targets and validation drop none."""
    learning_rate: float = 6e-4
    """Highest; falls linearly."""
    warmup: int = 20
    """Updates over which the rate rises from 0."""
    final_share: float = 0.05
    """Rate and temperature fall linearly to this share of their initial values."""
    weight_decay: float = 1e-3
    """Of AdamW."""
    clip: float = 2.0
    """Largest L2 norm of the gradient."""
    alpha: float = 0.03
    """Initial temperature of exploration and of the soft values (eq. 2, 3)."""
    gamma: float = 0.99
    """Discount of later rewards."""
    trace_lambda: float = 0.6
    """Of the lambda-returns."""
    ema: float = 0.05
    """tau: share of the online weights that enters the target weights after each update."""
    top_k_actions: int | None = 5
    """Chunks that exploration and soft values consider, the best; None: all."""
    exploring_starts: float = 0.0
    """Share of episodes that begin with a part of their support taken, or a mistake. The part is random and
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
    """Of the ranking loss beside the TD loss; 0: none. It is cross-entropy on support not yet taken."""
    ranking_temperature: float = 0.05
    """Of the ranking loss, in units of Q."""
    validate_every: int = 100
    """Updates between validations. The best agent so far is kept at each."""
    n_validation: int = 140
    """Episodes of each validation."""
    seed: int = 0
    """Of everything random."""

    def __post_init__(self) -> None:
        """Raises BadRequest on a value out of range."""
        for name in _UNIT:
            if not 0 <= getattr(self, name) <= 1:
                raise BadRequest(f"{words(name)} {getattr(self, name)} must be between 0 and 1")
        if self.top_k_actions is not None and self.top_k_actions < 1:
            raise BadRequest(f"top-k actions {self.top_k_actions} must be at least 1, or none for all chunks")
        check_numbers(self, _LEAST, above_0=("alpha", "clip", "ranking_temperature"))
        if self.objective not in OBJECTIVES:
            raise BadRequest(
                f"objective {self.objective!r} is unknown; choose one of {', '.join(OBJECTIVES)}"
            )
        if self.position_kind not in POSITION_KINDS:
            raise BadRequest(
                f"position kind {self.position_kind!r} can't be trained; choose one of"
                f" {', '.join(POSITION_KINDS)}"
            )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def rate(self, update: int) -> float:
        """Learning rate of a 0-based update."""
        return scheduled(self.learning_rate, update, self.updates, self.warmup, self.final_share)

    def temperature(self, update: int) -> float:
        """alpha of a 0-based update: annealed with the learning rate (Q-RAG section 3.2)."""
        return scheduled(self.alpha, update, self.updates, final_share=self.final_share)


def scheduled(highest: float, update: int, updates: int, warmup: int = 0, final_share: float = 0.0) -> float:
    """A value of a 0-based update, which rises linearly over the warm-up and falls linearly to a share of the
    highest.

    >>> [scheduled(1.0, update, 10, warmup=2, final_share=0.5) for update in (0, 1, 9)]
    [0.5, 0.9, 0.5]
    """
    return highest * max(final_share, 1.0 - update / updates) * min(1.0, (update + 1) / max(1, warmup))
