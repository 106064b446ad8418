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
from functools import partial
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
_SCORE = "Score: Fact F1 with an oracle stop, mean of the validation examples"
_NOT_IN_NAMES = ("data", "updates", "validate_every", "n_validation")
"""Settings that a curve's name leaves out: the data begins it, and the curve shows the others."""


def trainings_in(path: Path) -> list[Path]:
    """The trainings of a folder that is none itself, by name; else the path as it is."""
    is_collection = path.is_dir() and not (path / "progress.jsonl").exists()
    return sorted(path.iterdir()) if is_collection else [path]


def read_training(path: Path, told: str = "alpha") -> list[dict[str, Any]]:
    """The events of a training, from its folder or a copy of its progress.jsonl, plain or gzipped. `told`:
    what its first event, or the configuration in it, says: by default what only an agent's training does.
    Raises BadRequest when it hasn't begun or is none of these.
    """
    file = path / "progress.jsonl" if path.is_dir() else path
    try:
        opened = gzip.open if file.suffix == ".gz" else open
        with opened(file, "rt", encoding="utf-8") as lines:
            events = [json.loads(line) for line in lines if line.endswith("\n")]
        if events[0]["event"] != "started" or told not in events[0] | events[0].get("config", {}):
            raise ValueError(f"its first line says of no {told.replace('_', ' ')}")
    except (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError) as error:
        raise BadRequest(
            f"{file} holds no training that this study reads ({error}); name the folder of one, or its"
            " progress.jsonl"
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
    note = f"Means of {SMOOTHING} updates. {_SCORE}."
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
    lines: list[tuple[Cell, ...]] = []
    for group in grouped(named, itemgetter(0)):
        best, latest = zip(*((max(scores), scores[-1]) for _, scores in group), strict=True)
        lines.append((group[0][0], len(group), _spread(best), _spread(latest)))
    untrained = [first["score"] for first, *_ in validated if first["update"] == 0]
    if untrained:
        lines.append(("without fine-tuning", len(untrained), _spread(untrained), _spread(untrained)))
    columns = ("variant", "seeds", "best validation", "last validation")
    note = f"{_SCORE}; mean and standard deviation over seeds."
    return Report("ablations", (Table("Ablations", columns, tuple(lines)),), notes=(note,))


def sweep(trainings: Sequence[Events], setting: str, symbol: str) -> Report:
    """Validation score by one setting (figure 3 a, b): mean and deviation over the rest, such as seeds."""
    pairs = [
        (float(events[0]["config"][setting]), max(event["score"] for event in _validated(events)))
        for events in trainings
    ]
    groups = grouped(sorted(pairs, key=itemgetter(0)), itemgetter(0))
    by_value = [(group[0][0], [score for _, score in group]) for group in groups]
    means = (("best validation", value, float(np.mean(scores))) for value, scores in by_value)
    title = f"Validation score by {symbol}"
    rows = tuple((f"{value:g}", len(scores), _spread(scores)) for value, scores in by_value)
    table = Table(title, (symbol, "trainings", "best validation"), rows)
    chart = Chart(title, symbol, "Fact F1 (oracle stop)", lines_of(means))
    return Report(symbol, (table,), (chart,))


def _of(events: Events, kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == kind]


def _validated(events: Events) -> list[dict[str, Any]]:
    validated = _of(events, "validated")
    if not validated:
        raise BadRequest("a training has no validation yet; wait for the first")
    return validated


def _variants(trainings: Sequence[Events], left_out: Sequence[str] = ()) -> list[str]:
    """What sets each training apart from most of them, seed and `left_out` aside; a setting that an older
    version did not know counts as its own value.
    """
    configs = [events[0]["config"] for events in trainings]
    apart: list[list[str]] = [[] for _ in configs]
    for name in dict.fromkeys(name for config in configs for name in config):
        values = [json.dumps(config.get(name)) for config in configs]
        [(usual, _)] = Counter(values).most_common(1)
        for words, config, value in zip(apart, configs, values, strict=True):
            if value != usual and name not in ("seed", *left_out):
                words.append(_words(name, config.get(name)))
    return [", ".join(words) or "full" for words in apart]


def _words(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return _SWITCHES.get(name, f"{name.replace('_', ' ')} {'on' if value else 'off'}")
    if (name, value) == ("objective", "supervised"):
        return "supervised fine-tuning"
    return f"{name.replace('_', ' ')} {value}"


def _names(trainings: Sequence[Events]) -> list[str]:
    """Distinct names: the data, a short difference from the others, then the seed, then a number."""
    configs = [events[0]["config"] for events in trainings]
    names = [f"{config.get('data', 'training')}" for config in configs]
    seeds = [config.get("seed") for config in configs]
    if len(set(names)) < len(names):
        for i, variant in enumerate(_variants(trainings, _NOT_IN_NAMES)):
            if variant != "full" and len(variant) <= MAX_VARIANT:
                names[i] += f", {variant}"
    if len(set(names)) < len(names) and len(set(seeds)) > 1:
        names = [f"{name}, seed {seed}" for name, seed in zip(names, seeds, strict=True)]
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


Measured = tuple[int, dict[str, Any], dict[str, Any]]
"""Number of a tuning, its first event, and one on held-out questions."""


def _figure(of: Measured, name: str) -> Cell:
    cell: Cell = of[2][name]
    return cell


_FIGURES = ("valid", "reward", "answer_f1", "support_f1", "support_recall", "chunks", "tokens")
_COLUMNS: dict[str, Callable[[Measured], Cell]] = {
    "tuning": lambda of: of[0],
    "when": lambda of: f"after {of[2]['step']} updates" if of[2]["step"] else "before",
    "n": lambda of: of[1]["n_held_out"],
    **{name.replace("_f1", " F1").replace("_", " "): partial(_figure, name=name) for name in _FIGURES},
}
_TOLD = {"reward": "Reward of the sets drawn", "valid": "Share of them that are valid actions"}


def tunings(all_events: Sequence[Events]) -> Report:
    """A table, and the curves of GRPO. Raises BadRequest for a tuning that measured nothing yet."""
    measured: list[Measured] = []
    charts = []
    for number, events in enumerate(all_events, start=1):
        held_out = _of(events, "held_out")
        if not held_out:
            raise BadRequest(
                f"tuning {number} has measured nothing yet; wait for its first held-out questions"
            )
        measured += [(number, events[0], event) for event in held_out]
    for name, title in _TOLD.items():
        lines = lines_of(
            (f"tuning {number}", float(event["step"]), event[name])
            for number, events in enumerate(all_events, start=1)
            for event in _of(events, "step")
            if name in event
        )
        if lines:
            charts.append(Chart(title, "update", name, lines))
    note = "Held-out questions at temperature 0; a reply that is no action has found nothing and costs most."
    return Report("tunings", (filled("Evidence sets written", _COLUMNS, measured),), tuple(charts), (note,))
