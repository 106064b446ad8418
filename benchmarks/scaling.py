"""What corpora of 1M to 1T tokens take, from measured rates.

Computed, not measured: the rows that `python -m benchmarks cluster` left, in proportion to tokens, chunks or
workers, and the assumptions of `Assumed`, which nobody measured. A part breaks where it needs more than a
machine of that kind has, or longer than somebody waits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any

from benchmarks.cluster import DIM
from benchmarks.prose import BYTES_A_TOKEN
from core.base.config import setting_help
from core.integrations.cluster.embedding import PART_BYTES

SIZES = tuple(10**exponent for exponent in range(6, 13))
"""Tokens."""
HOUR, MONTH_HOURS = 3600, 730


@dataclass(frozen=True)
class Assumed:
    """Prices, machines and patience. Change them to yours."""

    core_price: float = 0.04
    """$ an hour for a core."""
    card_price: float = 3.0
    """$ an hour for a graphics card."""
    disk_price: float = 0.08
    """$ a month for a GB of disk."""
    machine_cores: int = 32
    """cores of a machine."""
    machine_gb: float = 128.0
    """GB of memory of a machine, all of it for this."""
    embed_hours: float = 24.0
    """hours that embedding may take."""
    step_seconds: float = 1.0
    """s that a step may take."""


def rates_of(result: Mapping[str, Any]) -> SimpleNamespace:
    """From what `benchmarks cluster --json` printed, by the unit that each grows with."""
    rows = result["rows"]
    steps = [row["measure"].split()[2] for row in rows if row["measure"].startswith("one step, ")]
    largest = max(int(n_chunks.replace(",", "")) for n_chunks in steps)
    where = f"{largest:,} chunks"

    def value(measure: str, unit: str) -> float:
        return next(
            float(row["value"]) for row in rows if row["measure"].startswith(measure) and row["unit"] == unit
        )

    own = "in the process that asks"
    return SimpleNamespace(
        tokens_a_second=value("embedding a corpus", "tokens/CPU s"),  # on one core
        tokens_a_chunk=value("a chunk", "tokens"),
        disk_a_chunk=value("disk", "bytes/chunk"),  # without its text
        step_a_chunk=value(f"one step, {where}, 2 workers", "CPU s") / largest,  # and the process that asks
        asking_a_chunk=value(f"of a step, positions {own}, {where}", "CPU s") / largest,
        asking_bytes_a_chunk=value(f"memory of the process that asks, {where}", "bytes/chunk"),
        sent=value(f"sent to 2 workers in a step, {where}", "bytes"),
        sent_back=value(f"sent back by 2 workers in a step, {where}", "bytes") / 2,
        words_a_token=value("index of words, while it is made", "bytes/token"),
    )


def _limits(rates: SimpleNamespace, assumed: Assumed) -> list[tuple[str, float, str]]:
    """Parts that one machine, or one process, has alone: from how many chunks they don't do, what does."""
    memory, chunk = assumed.machine_gb * 1e9, rates.tokens_a_chunk
    embedded = assumed.machine_cores * assumed.embed_hours * HOUR * rates.tokens_a_second
    return [
        (
            "the index of words, made in the process that asks",
            memory / rates.words_a_token / chunk,
            "an index of words a shard, with the counts of all (not there yet); agents without words go on",
        ),
        (
            "embedding in one machine",
            embedded / chunk,
            "`embed-corpus --cluster`: parts are independent of each other, so twice the machines halve it",
        ),
        (
            "vectors as float32 in one process, as the app holds them",
            memory / 4 / DIM,
            "`embed-corpus` and `trace --corpus`: half precision, mapped from disk",
        ),
        (
            "a step on one machine",
            assumed.machine_cores * assumed.step_seconds / rates.step_a_chunk,
            "`trace --cluster`: a shard a core on more machines",
        ),
        (
            "vectors of a corpus in one machine's memory",
            memory / rates.disk_a_chunk,
            "`trace --cluster`: each machine holds its own shards; else each step reads the disk",
        ),
        (
            "positions of all chunks, in the process that asks, within a step",
            assumed.step_seconds / rates.asking_a_chunk,
            "each shard works out its own from the chosen chunks (not there yet)",
        ),
        (
            "positions of all chunks, in the memory of the process that asks",
            memory / rates.asking_bytes_a_chunk,
            "the same",
        ),
        ("numbers of chunks in the strip's tiles, of 32 bits", 2.0**31, "64 bits (not there yet)"),
    ]


def table(result: Mapping[str, Any]) -> str:
    """Markdown: what each size takes, then which part breaks from where on, then what was assumed."""
    rates, assumed = rates_of(result), Assumed()
    sizes = [_size(tokens, rates, assumed) for tokens in SIZES]
    limits = sorted(_limits(rates, assumed), key=lambda limit: limit[1])
    meaning = setting_help(Assumed)
    said = "; ".join(
        f"{getattr(assumed, field.name):g} {meaning[field.name].rstrip('.')}" for field in fields(Assumed)
    )
    paid = rates.tokens_a_second * assumed.card_price / assumed.core_price
    lines = [
        _cells(sizes[0]),
        "|" + "---|" * len(sizes[0]),
        *(_cells(size.values()) for size in sizes),
        "",
        "| part | breaks from, tokens | what replaces it |",
        "|---|---|---|",
        *(_cells((part, _short(n * rates.tokens_a_chunk), instead)) for part, n, instead in limits),
        "",
        f"Assumed: {said}.",
        f"A card embeds for less than cores from {paid:,.0f} tokens a second on; its rate is not measured.",
        "",
    ]
    return "\n".join(lines)


def _cells(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _size(tokens: int, rates: SimpleNamespace, assumed: Assumed) -> dict[str, str]:
    """A row of the table: what stands under each heading."""
    chunks = tokens / rates.tokens_a_chunk
    vectors = chunks * rates.disk_a_chunk
    disk = vectors + tokens * BYTES_A_TOKEN
    hours = tokens / rates.tokens_a_second / HOUR
    step = chunks * rates.step_a_chunk
    cores = math.ceil(step / assumed.step_seconds)
    machines = max(math.ceil(vectors / assumed.machine_gb / 1e9), math.ceil(cores / assumed.machine_cores))
    network = rates.sent + max(cores - 2, 0) * 4 * DIM + cores * rates.sent_back
    ready = machines * assumed.machine_cores * assumed.core_price * MONTH_HOURS
    return {
        "tokens": _short(tokens),
        "chunks": _short(chunks),
        "parts": _short(max(1, tokens * BYTES_A_TOKEN / PART_BYTES)),
        "disk": _bytes(disk),
        "embedding, core hours": f"{hours:,.3g}" if hours < 1000 else f"{hours:,.0f}",
        "embedding, $": f"{hours * assumed.core_price:,.2f}",
        "a step on one core, s": f"{step:,.3g}" if step < 1000 else f"{step:,.0f}",
        f"cores for a step in {assumed.step_seconds:g} s": f"{cores:,}",
        "machines for these cores and the vectors": f"{machines:,}",
        "memory of the process that asks": _bytes(
            chunks * rates.asking_bytes_a_chunk + tokens * rates.words_a_token
        ),
        "network a step": _bytes(network),
        "words, once a question": _bytes(4 * chunks),
        "keeping it ready, $ a month": f"{ready + disk / 1e9 * assumed.disk_price:,.0f}",
    }


def _bytes(value: float) -> str:
    return f"{_short(value, ' ').replace('B', 'G')}B"


def _short(value: float, before: str = "") -> str:
    """Three digits, in thousands, millions, billions, trillions; `before` their letters."""
    for power, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= power:
            return f"{value / power:.3g}{before}{letter}"
    return f"{value:.3g}{before}"
