"""Trainings side by side: learning curves, ablations, sweeps of one setting, tunings.

A training is the list of its events (see `core.lab.train.sitting`). A setting that differs from what most
trainings have, the seed aside, makes a variant.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from core.base.batches import batches
from core.base.errors import BadRequest
from core.base.rows import grouped
from core.lab.studies.tables import filled, lines_of
from core.views.charts import Cell, Chart, Line, Report, Table

Events = Sequence[dict[str, Any]]

SMOOTHING = 25
"""Updates that a point of a curve is the mean of."""
MAX_VARIANT = 50
"""Characters of what sets a training apart; where it is longer, trainings are numbered."""
_SWITCHES = {
    "soft_values": "without soft values",
    "target_towers": "without target towers",
    "penalize_extra_steps": "without the penalty for extra steps",
    "bootstrap_at_cap": "bootstrap at the step cap",
}
"""How a switch that was turned reads."""
_NOT_IN_NAMES = ("data", "updates", "validate_every", "n_validation")
"""Settings that a curve's name leaves out: the data begins it, and the curve shows the others."""


def trainings_in(path: Path) -> list[Path]:
    """The trainings of a folder that is none itself, by name; else the path as it is."""
    is_collection = path.is_dir() and not (path / "progress.jsonl").exists()
    return sorted(path.iterdir()) if is_collection else [path]


def read_training(path: Path, told: str = "config") -> list[dict[str, Any]]:
    """The events of a training, from its folder or a copy of its progress.jsonl, which may be
    gzipped. told: what its first event says. Raises BadRequest when it hasn't begun or is none.
    """
    file = path / "progress.jsonl" if path.is_dir() else path
    try:
        text = (
            gzip.decompress(file.read_bytes()).decode()
            if file.suffix == ".gz"
            else file.read_text(encoding="utf-8")
        )
        events = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        if events[0]["event"] != "started" or told not in events[0]:
            raise ValueError("its first line does not say how it started")
    except (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError) as error:
        raise BadRequest(
            f"{file} holds no training ({error}); name the folder of one, or its progress.jsonl"
        ) from error
    return events


def curves(trainings: Sequence[Events]) -> Report:
    """Learning curves (Q-RAG figure 6): return by time, validation by update, Q and target, exploration."""
    lines: list[tuple[Cell, ...]] = []
    returns, scores, q_lines, entropies = [], [], [], []
    for name, events in zip(_names(trainings), trainings, strict=True):
        updates, validated = _of(events, "update"), _of(events, "validated")
        if not updates:
            raise BadRequest(f"the training of {name} has made no update yet; wait for the first")

        def means(key: str, updates: Sequence[dict[str, Any]] = updates) -> tuple[float, ...]:
            return _smoothed([float(np.mean(event[key])) for event in updates])

        minutes = _smoothed([event["seconds"] / 60 for event in updates])
        returns.append(Line(name, minutes, _smoothed([sum(event["reward"]) for event in updates])))
        own = [event["score"] for event in validated]
        scores.append(Line(name, tuple(float(event["update"]) for event in validated), tuple(own)))
        at = means("update")
        q_lines.append(Line(f"{name}: Q", at, means("q")))
        q_lines.append(Line(f"{name}: target", at, means("returns"), dashed=True))
        entropies.append(Line(name, at, means("entropy")))
        last = updates[-1]
        success = float(np.mean([event["success"] for event in updates[-SMOOTHING:]]))
        first, best, latest = (own[0], max(own), own[-1]) if own else (None, None, None)
        lines.append((name, last["update"], f"{last['seconds'] / 60:.0f}", success, first, best, latest))
    columns = ("training", "updates", "minutes", "success while exploring", "score before", "best", "last")
    note = (
        f"Means of {SMOOTHING} updates. Score: Fact F1 with an oracle stop, mean of the validation examples."
    )
    return Report(
        "curves",
        (Table("Trainings", columns, tuple(lines)),),
        (
            Chart("Return of an episode while exploring", "minutes", "return", tuple(returns)),
            Chart("Validation score", "update", "score", tuple(scores)),
            Chart("Q of the choices and their targets", "update", "Q", tuple(q_lines)),
            Chart("Entropy of the policy", "update", "nats", tuple(entropies)),
        ),
        (note,),
    )


def ablations(trainings: Sequence[Events]) -> Report:
    """What each part brings (table 3), on validation examples: mean and standard deviation over seeds."""
    validated = [_validated(events) for events in trainings]
    named = [
        (name, [event["score"] for event in events])
        for name, events in zip(_variants(trainings), validated, strict=True)
    ]
    lines: list[tuple[Cell, ...]] = [
        (
            group[0][0],
            len(group),
            _spread([max(scores) for _, scores in group]),
            _spread([scores[-1] for _, scores in group]),
        )
        for group in grouped(named, itemgetter(0))
    ]
    untrained = [first["score"] for first, *_ in validated if first["update"] == 0]
    if untrained:
        lines.append(("without fine-tuning", len(untrained), _spread(untrained), _spread(untrained)))
    note = (
        "Score: Fact F1 with an oracle stop, mean of the validation examples; mean and standard deviation"
        " over seeds."
    )
    columns = ("variant", "seeds", "best validation", "last validation")
    return Report("ablations", (Table("Ablations", columns, tuple(lines)),), notes=(note,))


def sweep(trainings: Sequence[Events], setting: str, symbol: str) -> Report:
    """Validation score by one setting (figure 3 a, b): mean and deviation over the rest, such as seeds."""
    pairs = [
        (float(events[0]["config"][setting]), max(event["score"] for event in _validated(events)))
        for events in trainings
    ]
    by_value = [
        (group[0][0], [score for _, score in group])
        for group in grouped(sorted(pairs, key=itemgetter(0)), itemgetter(0))
    ]
    line = Line(
        "best validation",
        tuple(value for value, _ in by_value),
        tuple(float(np.mean(scores)) for _, scores in by_value),
    )
    title = f"Validation score by {symbol}"
    rows = tuple((f"{value:g}", len(scores), _spread(scores)) for value, scores in by_value)
    table = Table(title, (symbol, "trainings", "best validation"), rows)
    return Report(symbol, (table,), (Chart(title, symbol, "Fact F1 (oracle stop)", (line,)),))


def _of(events: Events, kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == kind]


def _validated(events: Events) -> list[dict[str, Any]]:
    validated = _of(events, "validated")
    if not validated:
        raise BadRequest("a training has no validation yet; wait for the first")
    return validated


def _variants(trainings: Sequence[Events], left_out: Sequence[str] = ()) -> list[str]:
    """What sets each training apart from most of them, seed and `left_out` aside; a setting that an
    older version did not know counts as its own value.
    """
    configs = [
        {name: value for name, value in events[0]["config"].items() if name not in ("seed", *left_out)}
        for events in trainings
    ]
    names = list(dict.fromkeys(name for config in configs for name in config))
    usual = {
        name: Counter(json.dumps(config.get(name)) for config in configs).most_common(1)[0][0]
        for name in names
    }
    return [
        ", ".join(
            _words(name, config.get(name))
            for name, common in usual.items()
            if json.dumps(config.get(name)) != common
        )
        or "full"
        for config in configs
    ]


def _words(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return _SWITCHES.get(name, f"{name.replace('_', ' ')} {'on' if value else 'off'}")
    if (name, value) == ("objective", "supervised"):
        return "supervised fine-tuning"
    return f"{name.replace('_', ' ')} {value}"


def _names(trainings: Sequence[Events]) -> list[str]:
    """Distinct names: the data, a short difference from the others, then the seed, then a number."""
    names = [f"{events[0]['config'].get('data', 'training')}" for events in trainings]
    if len(set(names)) < len(names):
        variants = [
            variant if len(variant) <= MAX_VARIANT else "full"
            for variant in _variants(trainings, _NOT_IN_NAMES)
        ]
        names = [
            name if variant == "full" else f"{name}, {variant}"
            for name, variant in zip(names, variants, strict=True)
        ]
    if len(set(names)) < len(names) and len({events[0]["config"].get("seed") for events in trainings}) > 1:
        names = [
            f"{name}, seed {events[0]['config'].get('seed')}"
            for name, events in zip(names, trainings, strict=True)
        ]
    return [
        f"{name} ({names[: i + 1].count(name)})" if names.count(name) > 1 else name
        for i, name in enumerate(names)
    ]


def _smoothed(values: Sequence[float]) -> tuple[float, ...]:
    """Means of consecutive blocks."""
    return tuple(float(np.mean(block)) for block in batches(values, SMOOTHING))


def _spread(scores: Sequence[float]) -> str:
    """Mean and, of several, standard deviation."""
    return f"{np.mean(scores):.3f}" + (f" ± {np.std(scores, ddof=1):.3f}" if len(scores) > 1 else "")


Event = dict[str, Any]
Measured = tuple[int, Event, Event]
"""Number of a tuning, its first event, and one on held-out questions."""

_COLUMNS: dict[str, Callable[[Measured], Cell]] = {
    "tuning": lambda of: of[0],
    "when": lambda of: f"after {of[2]['step']} updates" if of[2]["step"] else "before",
    "n": lambda of: of[1]["n_held_out"],
    "valid": lambda of: of[2]["valid"],
    "reward": lambda of: of[2]["reward"],
    "answer F1": lambda of: of[2]["answer_f1"],
    "support F1": lambda of: of[2]["support_f1"],
    "support recall": lambda of: of[2]["support_recall"],
    "chunks": lambda of: of[2]["chunks"],
    "tokens": lambda of: of[2]["tokens"],
}
_TOLD = {"reward": "Reward of the sets drawn", "valid": "Share of them that are valid actions"}


def tunings(all_events: Sequence[Sequence[Event]]) -> Report:
    """A table, and the curves of GRPO. Raises BadRequest for a tuning that measured nothing yet."""
    measured: list[Measured] = []
    charts = []
    for number, events in enumerate(all_events, start=1):
        held_out = [event for event in events if event["event"] == "held_out"]
        if not held_out:
            raise BadRequest(
                f"tuning {number} has measured nothing yet; wait for its first held-out questions"
            )
        measured += [(number, events[0], event) for event in held_out]
    for name, title in _TOLD.items():
        lines = lines_of(
            (f"tuning {number}", float(event["step"]), event[name])
            for number, events in enumerate(all_events, start=1)
            for event in events
            if event["event"] == "step" and name in event
        )
        if lines:
            charts.append(Chart(title, "update", name, lines))
    note = "Held-out questions at temperature 0; a reply that is no action has found nothing and costs most."
    return Report("tunings", (filled("Evidence sets written", _COLUMNS, measured),), tuple(charts), (note,))
