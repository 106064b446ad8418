"""Bounds of a SPARC run: the paper's W and D at most."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

from core.base.config import SEEDS_OF_MODELS
from core.base.errors import BadRequest
from core.methods.sparc.events import SparcConfig, Strategy

MAX_WIDTH = 4
MAX_DEPTH = 8
MAX_K = 20
"""Most chunks a branch may retrieve a round: more would not fit in a prompt."""
MAX_TEMPERATURE = 2.0
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
"""The plainest first."""


def strongest_first(offered: Collection[Strategy]) -> tuple[Strategy, ...]:
    """Strategies in the order in which the question itself is searched with."""
    return tuple(name for name in reversed(STRATEGIES) if name in offered)


def check_sparc_config(config: SparcConfig) -> SparcConfig:
    """The same configuration. Raises BadRequest with the value, the bound and the remedy."""
    for name, most in (("width", MAX_WIDTH), ("depth", MAX_DEPTH), ("k", MAX_K)):
        value: int = getattr(config, name)
        if not 1 <= value <= most:
            raise BadRequest(f"{name}={value} must be between 1 and {most}; choose one of these")
    unknown = [name for name in config.strategies if name not in STRATEGIES]
    if unknown or not config.strategies:
        named = repr(unknown[0]) if unknown else "none"
        raise BadRequest(f"strategies={named} can't be searched with; choose among {', '.join(STRATEGIES)}")
    if len(set(config.strategies)) < len(config.strategies):
        raise BadRequest(f"strategies={','.join(config.strategies)} names one twice; name each once")
    if config.first_round not in ("question", "rewrite"):
        raise BadRequest(f"first round {config.first_round!r} is unknown; choose question or rewrite")
    for name, bound in (("max tokens", config.max_tokens), ("max calls", config.max_calls)):
        if bound is not None and bound < 1:
            raise BadRequest(f"{name} {bound} must be at least 1, or left out for no bound")
    if not 0 <= config.temperature <= MAX_TEMPERATURE:
        raise BadRequest(f"temperature {config.temperature} must be between 0 and {MAX_TEMPERATURE}")
    if not 0 <= config.seed < SEEDS_OF_MODELS:
        raise BadRequest(f"seed {config.seed} must be between 0 and {SEEDS_OF_MODELS - 1}")
    return config
