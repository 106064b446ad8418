"""Runs, branches and settings of SPARC in words."""

from __future__ import annotations

from core.sparc.events import EndReason, SparcConfig
from core.sparc.trace import SparcTrace

STRATEGY_NAMES = {"bm25": "BM25", "dense": "dense", "qrag": "Q-RAG"}


def decided_by_rules(trace: SparcTrace) -> bool:
    """Whether no language model had a part in a run."""
    # people may call a language model anything
    return trace.started.agents.startswith("rules and ") and not trace.cost.calls


def branch_name(number: int, branch: int) -> str:
    """How a branch of a round is called: "2.1" is the first branch of round 2."""
    return f"{number}.{branch}"


def end_sentence(trace: SparcTrace) -> str:
    """Why a run ended."""
    stopped, config = trace.stopped, trace.started.config
    if stopped is None:
        return "It did not come to an end."
    by_then = "this is the best answer by then." if stopped.branch else "no branch had an answer by then."
    words: dict[EndReason, str] = {
        "accepted": (
            "Stopped: the evaluator accepted the answer of branch"
            f" {branch_name(stopped.round, stopped.branch)}."
        ),
        "depth": (
            f"Stopped: the depth of {config.depth} is used up; "
            + (
                "this is the best branch's answer, which no evaluator accepted."
                if stopped.answer.strip()
                else "no branch had an answer."
            )
        ),
        "tokens": f"Stopped: the budget of {config.max_tokens or 0:,} tokens is used up; {by_then}",
        "calls": f"Stopped: the budget of {config.max_calls or 0:,} calls is used up; {by_then}",
        "failed": f"Stopped: an agent could not go on; {by_then}",
    }
    return f"{words[stopped.reason]} {stopped.message}".strip()


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
