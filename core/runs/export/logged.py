"""A logged run with what a page draws it from."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from core.answer.evidence import EvidenceAnswer
from core.base.config import RESRAG, SETS
from core.base.events import Trace, share_searched
from core.base.types import Workspace
from core.corpus.tiles import MODES
from core.encode.checkpoint import CheckpointSpec, as_served, find_checkpoint, read_spec, shipped_checkpoints
from core.methods.qrag.positions import chunk_positions, intervals
from core.methods.registry import facts_of
from core.methods.sparc.naming import sparc_settings
from core.runs.foreign.traces import detail_sentence
from core.runs.log.records import LoggedDocument, LoggedRun, borders_of, readable_branches, support_of
from core.views.draw.strip import Part, colour_scale, slopes, strip_value
from core.views.draw.words import counted, percent, shorten
from core.views.ending import end_sentence, sparc_end_sentence
from core.views.quotes import ChunkInPlace, alone, passage_in
from core.views.story import missed_support

_LONGEST_ACTION = 2_000


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
    if facts_of(run.record.method).foreign:
        scores = "as returned" if score_name(run) == "score" else "none that fall: ranks instead"
        settings = {"Returned": detail_sentence(run.details.get("imported", {})), "Scores": scores}
    elif run.record.method in SETS:
        is_chance = run.record.method == RESRAG and config.stop_threshold is not None
        least = f"a chance of {config.stop_threshold:g}" if is_chance else ""
        settings = {"Budget": f"{config.step_budget}", "Taken above": least, "Action": _action(run)}
    else:
        settings = _episode_settings(run)
    return {name: words for name, words in settings.items() if words}


def _episode_settings(run: LoggedRun) -> dict[str, str]:
    config = run.trace.started.config
    forced = ", ".join(f"chunk {chunk_id:,} at step {step}" for step, chunk_id in config.forced)
    share, kept = percent(share_searched(run.trace)), counted(run.record.fork_step or 0, "step")
    searched = f"{share} of the chunks, those that were embedded when it was asked"
    return {
        "Budget": f"{config.step_budget}",
        "Temperature": f"{config.temperature:g}",
        "Stop below": "never" if config.stop_threshold is None else f"{config.stop_threshold:g}",
        "Taken back below": "" if config.review_threshold is None else f"{config.review_threshold:g}",
        "Seed": f"{config.seed}",
        "Beam": f"{config.beam_width}" if config.beam_width > 1 else "",
        "Sampled among": "" if config.top_k_actions is None else f"the {config.top_k_actions} best",
        "Positions": "" if config.use_positions else "off",
        "Chosen by a person": forced,
        "Forbidden": ", ".join(f"chunk {chunk_id:,}" for chunk_id in config.forbidden),
        "Searched": searched if config.searched else "",
        "Child of": f"{run.record.parent_run_id}, {kept} kept" if run.record.parent_run_id else "",
    }


def _action(run: LoggedRun) -> str:
    """The action of an evidence set as JSON; empty where it did not come with the run."""
    action = run.details.get("set", {}).get("action")
    words = json.dumps(action, ensure_ascii=False) if isinstance(action, dict) else ""
    return shorten(words, _LONGEST_ACTION)


def score_name(run: LoggedRun) -> str:
    """What the numbers of the run's steps are."""
    return facts_of(run.record.method).score_name


MAX_PICTURES = 60
"""Looks that are drawn; a run has as many steps as its budget allows."""


@dataclass(frozen=True, eq=False)
class LoggedView:
    """A run with what a page draws it from; texts, and what quotes them, only `with_text`."""

    run: LoggedRun
    documents: Sequence[LoggedDocument]
    with_text: bool

    @cached_property
    def support(self) -> tuple[int, ...]:
        return support_of(self.run)

    @cached_property
    def borders(self) -> list[int]:
        return borders_of(self.documents, self.run.record.n_chunks)

    @cached_property
    def looks(self) -> list[np.ndarray]:
        """(N,) Q of each look up to MAX_PICTURES; empty where a look was logged without."""
        trace = self.trace
        looks = [trace.scores_at(look) for look in range(1, min(trace.n_looks, MAX_PICTURES) + 1)]
        values = [look.q_values for look in looks if look is not None]
        is_whole = len(values) == len(looks) and all(np.isfinite(q_values).any() for q_values in values)
        return values if is_whole else []

    @cached_property
    def workspace(self) -> Workspace | None:
        """The documents as they were cut, where they may be shown and were kept."""
        tables = [document.table for document in self.documents if document.table is not None]
        if not (self.with_text and self.borders and all(each.text is not None for each in self.documents)):
            return None
        return Workspace(tuple(document.document() for document in self.documents), tuple(tables))

    @cached_property
    def answer(self) -> EvidenceAnswer | None:
        told = self.run.details.get("answer", {}) if self.with_text else {}
        return EvidenceAnswer.from_json(told, self._chosen)

    @cached_property
    def spec(self) -> CheckpointSpec | None:
        """Of the agent, where it ships with the app and is the one that ran: its positions are the log's."""
        run = self.run
        if not facts_of(run.record.method).looks_again or run.record.checkpoint not in shipped_checkpoints():
            return None
        spec, chosen = as_served(read_spec(find_checkpoint(run.record.checkpoint))), run.trace.chosen
        for i, step in enumerate(run.trace.steps):
            if step.position is None:
                continue
            if not self.borders:
                return None
            there = chunk_positions(spec, np.asarray(self.borders), chosen[:i])[step.chunk_id]
            if abs(float(there) - step.position) > 1e-3:
                return None
        return spec

    @property
    def trace(self) -> Trace:
        return self.run.trace

    @property
    def n_looks(self) -> int:
        return len(self.looks) or len(self.trace.steps)

    @cached_property
    def scale(self) -> tuple[float, float]:
        if not self.looks:
            values = [step.q_value for step in self.trace.steps if math.isfinite(step.q_value)]
            return 0.0, max([*values, 1e-6])
        return colour_scale(self.looks, self.spec)

    @property
    def look(self) -> int:
        """The look that is shown first: the last choice."""
        return max(1, min(len(self.trace.steps), self.n_looks))

    def passage(self, chunk_id: int) -> ChunkInPlace:
        """A chunk; empty where texts stay out."""
        if self.workspace is not None:
            return passage_in(self.workspace, chunk_id)
        return alone(self._chosen.get(chunk_id, ""))

    @cached_property
    def places(self) -> dict[int, tuple[str, str]]:
        """(headings, text) of every chunk; none where texts stay out or were not kept."""
        chunks = self.workspace or ()
        return {i: (" › ".join(chunk.heading_path), chunk.text) for i, chunk in enumerate(chunks)}

    @property
    def first_chunks(self) -> list[Part]:
        """Title of every document, and where it begins."""
        return [
            {"title": document.title, "first_chunk": first}
            for document, first in zip(self.documents, self.borders or [0], strict=False)
        ]

    def reading(self, pins: Sequence[dict[str, Any]], support: Sequence[int]) -> dict[str, Any]:
        """What marks chunks wherever one is read."""
        chunks = {"n_chunks": self.run.record.n_chunks, "chosen": list(pins), "gold": list(support)}
        return {**chunks, "documents": self.first_chunks}

    @cached_property
    def _chosen(self) -> dict[int, str]:
        return {step.chunk_id: step.text for step in self.trace.steps} if self.with_text else {}


def strip_data(view: LoggedView, rows: Sequence[int]) -> dict[str, Any]:
    """A run as the script draws it in the strip. rows: of the packed numbers, one a look."""
    trace, config, spec = view.trace, view.trace.started.config, view.spec
    rulers: list[Any] = [[] for _ in rows]
    if spec is not None and view.borders:
        borders, taken = np.asarray(view.borders), (trace.chosen[:i] for i in range(len(rows)))
        runs = (intervals(spec, borders, before, use_positions=config.use_positions) for before in taken)
        rulers = list(map(slopes, runs))
    value = strip_value(
        token=view.run.record.run_id,
        n_chunks=view.run.record.n_chunks,
        n_looks=len(rows),
        look=min(view.look, len(rows)),
        scale=view.scale,
        threshold=config.stop_threshold if facts_of(view.run.record.method).looks_again else None,
        chosen=[{"step": step.step, "chunk_id": step.chunk_id, "by": step.chosen_by} for step in trace.steps],
        gold=view.support,
        missed=missed_support(trace, view.support),
        forbidden=config.forbidden,
        searched=config.searched,
        documents=view.first_chunks,
        stopped=len(rows) > len(trace.steps),
        modes=MODES if config.temperature else tuple(mode for mode in MODES if mode != "p"),
        score_name=score_name(view.run),
        probability_name=f"p at T = {config.temperature:g}",
    )
    return {
        "value": value,
        "rows": list(rows),
        "rulers": rulers,
        "absolute": spec is not None and spec.position_kind == "absolute" and config.use_positions,
        "temperature": config.temperature,
        "top_k": config.top_k_actions,
    }
