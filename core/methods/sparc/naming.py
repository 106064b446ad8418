"""Runs, branches and settings of SPARC in words."""

from __future__ import annotations

from core.methods.sparc.events import SparcConfig
from core.methods.sparc.trace import SparcTrace

RULES_AND = "rules and "
"""Before the reader's name."""
STRATEGY_NAMES = {"bm25": "BM25", "dense": "dense", "qrag": "Q-RAG"}


def decided_by_rules(trace: SparcTrace) -> bool:
    """Whether no language model had a part in a run."""
    # people may call a language model anything
    return trace.started.agents.startswith(RULES_AND) and not trace.cost.calls


def reader_of(trace: SparcTrace) -> str:
    """Name of the reader, where rules decided."""
    return trace.started.agents.removeprefix(RULES_AND)


def branch_name(number: int, branch: int) -> str:
    """How a branch of a round is called: "2.1" is the first branch of round 2."""
    return f"{number}.{branch}"


def sparc_settings(config: SparcConfig) -> dict[str, str]:
    """The settings that decided how a run went, in words."""
    settings = {
        "Width": f"{config.width}",
        "Depth": f"{config.depth}",
        "Chunks of a branch": f"{config.k}",
        "Retrieves by": ", ".join(STRATEGY_NAMES[name] for name in config.strategies),
        "Round 1 asks": "the plain question" if config.first_round == "question" else "rewrites",
        "Most tokens": "" if config.max_tokens is None else f"{config.max_tokens:,}",
        "Most calls": "" if config.max_calls is None else f"{config.max_calls:,}",
        "Temperature": f"{config.temperature:g}",
        "Seed": f"{config.seed}",
    }
    return {name: words for name, words in settings.items() if words}
