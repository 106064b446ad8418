"""Trainings side by side.

Learning curves, ablations, and sweeps of one setting, from the events that each training tells. A training is
the list of its events (`progress.jsonl`, see `core.lab.train.sitting`). What tells trainings apart is read
off their configurations: a setting that differs from what most of them have, the seed aside, makes a variant.
Pure functions of events.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.base.batches import batches
from core.base.errors import BadRequest
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
    return_lines, score_lines, q_lines, entropy_lines = [], [], [], []
    for name, events in zip(_names(trainings), trainings, strict=True):
        updates, validated = _of(events, "update"), _of(events, "validated")
        if not updates:
            raise BadRequest(f"the training of {name} has made no update yet; wait for the first")
        minutes = _smoothed([event["seconds"] / 60 for event in updates])
        return_lines.append(Line(name, minutes, _smoothed([sum(event["reward"]) for event in updates])))
        score_lines.append(
            Line(
                name,
                tuple(float(event["update"]) for event in validated),
                tuple(event["score"] for event in validated),
            )
        )
        at = _smoothed([float(event["update"]) for event in updates])
        q_lines += [
            Line(f"{name}: Q", at, _smoothed([float(np.mean(event["q"])) for event in updates])),
            Line(
                f"{name}: target",
                at,
                _smoothed([float(np.mean(event["returns"])) for event in updates]),
                dashed=True,
            ),
        ]
        entropy_lines.append(
            Line(name, at, _smoothed([float(np.mean(event["entropy"])) for event in updates]))
        )
        last = updates[-1]
        success = float(np.mean([event["success"] for event in updates[-SMOOTHING:]]))
        scores = [event["score"] for event in validated] or [None]
        best = max((event["score"] for event in validated), default=None)
        lines.append(
            (name, last["update"], f"{last['seconds'] / 60:.0f}", success, scores[0], best, scores[-1])
        )
    columns = ("training", "updates", "minutes", "success while exploring", "score before", "best", "last")
    return Report(
        "curves",
        (Table("Trainings", columns, tuple(lines)),),
        (
            Chart("Return of an episode while exploring", "minutes", "return", tuple(return_lines)),
            Chart("Validation score", "update", "score", tuple(score_lines)),
            Chart("Q of the choices and their targets", "update", "Q", tuple(q_lines)),
            Chart("Entropy of the policy", "update", "nats", tuple(entropy_lines)),
        ),
        (
            (
                f"Means of {SMOOTHING} updates. Score: Fact F1 with an oracle stop, mean of the validation"
                " examples."
            ),
        ),
    )


def ablations(trainings: Sequence[Events]) -> Report:
    """What each part brings (table 3), on validation examples: mean and standard deviation over seeds."""
    by_variant: dict[str, list[Events]] = {}
    for name, events in zip(_variants(trainings), trainings, strict=True):
        by_variant.setdefault(name, []).append(events)
    lines: list[tuple[Cell, ...]] = []
    for name, group in by_variant.items():
        scores = [[event["score"] for event in _validated(events)] for events in group]
        lines.append(
            (
                name,
                len(group),
                _spread([max(seed) for seed in scores]),
                _spread([seed[-1] for seed in scores]),
            )
        )
    untrained = [
        _validated(events)[0]["score"] for events in trainings if _validated(events)[0]["update"] == 0
    ]
    if untrained:
        lines.append(("without fine-tuning", len(untrained), _spread(untrained), _spread(untrained)))
    note = (
        "Score: Fact F1 with an oracle stop, mean of the validation examples; mean and standard deviation"
        " over seeds."
    )
    return Report(
        "ablations",
        (Table("Ablations", ("variant", "seeds", "best validation", "last validation"), tuple(lines)),),
        notes=(note,),
    )


def sweep(trainings: Sequence[Events], setting: str, symbol: str) -> Report:
    """Validation score by one setting (figure 3 a, b): mean and deviation over the rest, such as seeds."""
    by_value: dict[float, list[float]] = {}
    for events in trainings:
        by_value.setdefault(float(events[0]["config"][setting]), []).append(
            max(event["score"] for event in _validated(events))
        )
    ordered = sorted(by_value.items())
    means = tuple(float(np.mean(scores)) for _, scores in ordered)
    line = Line("best validation", tuple(value for value, _ in ordered), means)
    rows = tuple((f"{value:g}", len(scores), _spread(scores)) for value, scores in ordered)
    table = Table(f"Validation score by {symbol}", (symbol, "trainings", "best validation"), rows)
    return Report(
        symbol, (table,), (Chart(f"Validation score by {symbol}", symbol, "Fact F1 (oracle stop)", (line,)),)
    )


def alpha(trainings: Sequence[Events]) -> Report:
    """Figure 3 a."""
    return sweep(trainings, "alpha", "alpha")


def trace_lambda(trainings: Sequence[Events]) -> Report:
    """Figure 3 b."""
    return sweep(trainings, "trace_lambda", "lambda")


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
