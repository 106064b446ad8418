"""A logged run in words: its end, its settings, its numbers."""

from __future__ import annotations

import json

from core.base.config import RESRAG, SETS
from core.base.events import share_searched
from core.methods.registry import facts_of
from core.methods.sparc.naming import sparc_settings
from core.runs.log.branches import readable_branches
from core.runs.log.records import LoggedRun
from core.views.draw.words import shorten
from core.views.ending import end_sentence, sparc_end_sentence

_LONGEST_ACTION = 2_000
"""Characters."""


def why_ended(run: LoggedRun) -> str:
    """Why the run ended, in a sentence."""
    branches = readable_branches(run)
    if branches is not None and branches.stopped is not None:
        return sparc_end_sentence(branches)
    return end_sentence(run.trace) or f"Ended as {run.status}" + (f": {run.message}." if run.message else ".")


def settings_of(run: LoggedRun) -> dict[str, str]:
    """The settings that decided how the run went, in words."""
    branches = readable_branches(run)
    if branches is not None:
        return sparc_settings(branches.started.config)
    config = run.trace.started.config
    if run.record.method in SETS:
        is_chance = run.record.method == RESRAG and config.stop_threshold is not None
        least = f"a chance of {config.stop_threshold:g}" if is_chance else ""
        settings = {"Budget": f"{config.step_budget}", "Taken above": least, "Action": _action(run)}
        return {name: words for name, words in settings.items() if words}
    settings = {
        "Budget": f"{config.step_budget}",
        "Temperature": f"{config.temperature:g}",
        "Stop below": "never" if config.stop_threshold is None else f"{config.stop_threshold:g}",
        "Taken back below": "" if config.review_threshold is None else f"{config.review_threshold:g}",
        "Seed": f"{config.seed}",
        "Beam": f"{config.beam_width}" if config.beam_width > 1 else "",
        "Sampled among": "" if config.top_k_actions is None else f"the {config.top_k_actions} best",
        "Positions": "" if config.use_positions else "off",
        "Chosen by a person": ", ".join(
            f"chunk {chunk_id:,} at step {step}" for step, chunk_id in config.forced
        ),
        "Forbidden": ", ".join(f"chunk {chunk_id:,}" for chunk_id in config.forbidden),
        "Searched": (
            f"{100 * share_searched(run.trace):.0f} % of the chunks, those that were embedded when it was"
            " asked"
            if config.searched
            else ""
        ),
        "Child of": (
            f"{run.record.parent_run_id}, {run.record.fork_step} steps kept"
            if run.record.parent_run_id
            else ""
        ),
    }
    return {name: words for name, words in settings.items() if words}


def _action(run: LoggedRun) -> str:
    """The action of an evidence set as JSON; empty where it did not come with the run."""
    action = run.details.get("set", {}).get("action")
    words = json.dumps(action, ensure_ascii=False) if isinstance(action, dict) else ""
    return shorten(words, _LONGEST_ACTION)


def score_name(run: LoggedRun) -> str:
    """What the numbers of the run's steps are."""
    return facts_of(run.record.method).score_name
