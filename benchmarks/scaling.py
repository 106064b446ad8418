"""What corpora of 1M to 1T tokens take, from measured rates.

Computed, not measured: the rows that `python -m benchmarks cluster` left, in proportion to tokens, chunks or
workers, and the assumptions of `Assumed`, which nobody measured. A part breaks where it needs more than a
machine of that kind has, or longer than somebody waits; `_limits` names them and what replaces each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
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


@dataclass(frozen=True)
class Rates:
    """What was measured, by the unit that it grows with."""

    tokens_a_second: float
    """Of embedding, on one core."""
    tokens_a_chunk: float
    disk_a_chunk: float
    """Bytes, without its text."""
    step_a_chunk: float
    """CPU seconds of workers and the process that asks."""
    asking_a_chunk: float
    """CPU seconds of the process that asks: its positions."""
    asking_bytes_a_chunk: float
    sent: float
    """Bytes of a step's questions to two workers."""
    sent_back: float
    """Bytes of a worker's answer."""
    words_a_token: float
    """Bytes of the index of words while it is made."""


@dataclass(frozen=True)
class Limit:
    """A part that one machine, or one process, has alone."""

    part: str
    need: Callable[[float], float]
    """Tokens -> what it needs, in proportion to them."""
    have: float
    instead: str

    @property
    def tokens(self) -> float:
        """From which it does not do."""
        return self.have / self.need(1.0)


def rates_of(result: Mapping[str, Any]) -> Rates:
    """From what `benchmarks cluster --json` printed."""
    rows = result["rows"]
    largest = max(
        int(row["measure"].split(", ", 1)[1].split(" ")[0].replace(",", ""))
        for row in rows
        if row["measure"].startswith("one step, ")
    )
    where = f"{largest:,} chunks"

    def value(measure: str, unit: str) -> float:
        return next(
            float(row["value"]) for row in rows if row["measure"].startswith(measure) and row["unit"] == unit
        )

    return Rates(
        value("embedding a corpus", "tokens/CPU s"),
        value("a chunk", "tokens"),
        value("disk", "bytes/chunk"),
        value(f"one step, {where}, 2 workers", "CPU s") / largest,
        value(f"of a step, positions in the process that asks, {where}", "CPU s") / largest,
        value(f"memory of the process that asks, {where}", "bytes/chunk"),
        value(f"sent to 2 workers in a step, {where}", "bytes"),
        value(f"sent back by 2 workers in a step, {where}", "bytes") / 2,
        value("index of words, while it is made", "bytes/token"),
    )


def _limits(rates: Rates, assumed: Assumed) -> list[Limit]:
    memory = assumed.machine_gb * 1e9
    chunks = 1 / rates.tokens_a_chunk
    return [
        Limit(
            "the index of words, made in the process that asks",
            lambda tokens: tokens * rates.words_a_token,
            memory,
            "an index of words a shard, with the counts of all (not there yet); agents without words go on",
        ),
        Limit(
            "embedding in one machine",
            lambda tokens: tokens / rates.tokens_a_second / HOUR,
            assumed.machine_cores * assumed.embed_hours,
            "`embed-corpus --cluster`: parts are independent of each other, so twice the machines halve it",
        ),
        Limit(
            "vectors as float32 in one process, as the app holds them",
            lambda tokens: tokens * chunks * 4 * DIM,
            memory,
            "`embed-corpus` and `trace --corpus`: half precision, mapped from disk",
        ),
        Limit(
            "a step on one machine",
            lambda tokens: tokens * chunks * rates.step_a_chunk,
            assumed.machine_cores * assumed.step_seconds,
            "`trace --cluster`: a shard a core on more machines",
        ),
        Limit(
            "vectors of a corpus in one machine's memory",
            lambda tokens: tokens * chunks * rates.disk_a_chunk,
            memory,
            "`trace --cluster`: each machine holds its own shards; else each step reads the disk",
        ),
        Limit(
            "positions of all chunks, in the process that asks, within a step",
            lambda tokens: tokens * chunks * rates.asking_a_chunk,
            assumed.step_seconds,
            "each shard works out its own from the chosen chunks (not there yet)",
        ),
        Limit(
            "positions of all chunks, in the memory of the process that asks",
            lambda tokens: tokens * chunks * rates.asking_bytes_a_chunk,
            memory,
            "the same",
        ),
        Limit(
            "numbers of chunks in the strip's tiles, of 32 bits",
            lambda tokens: tokens * chunks,
            2.0**31,
            "64 bits (not there yet)",
        ),
    ]


def table(result: Mapping[str, Any]) -> str:
    """Markdown: what each size takes, then which part breaks from where on, then what was assumed."""
    rates, assumed = rates_of(result), Assumed()
    limits = sorted(_limits(rates, assumed), key=lambda limit: limit.tokens)
    head = (
        "tokens",
        "chunks",
        "parts",
        "disk",
        "embedding, core hours",
        "embedding, $",
        "a step on one core, s",
        f"cores for a step in {assumed.step_seconds:g} s",
        "machines for these cores and the vectors",
        "memory of the process that asks",
        "network a step",
        "words, once a question",
        "keeping it ready, $ a month",
    )
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_size_cells(tokens, rates, assumed)) + " |" for tokens in SIZES]
    lines += ["", "| part | breaks from, tokens | what replaces it |", "|---|---|---|"]
    lines += [f"| {limit.part} | {_short(limit.tokens)} | {limit.instead} |" for limit in limits]
    paid = rates.tokens_a_second * assumed.card_price / assumed.core_price
    meaning = setting_help(Assumed)
    said = "; ".join(
        f"{getattr(assumed, one.name):g} {meaning[one.name].rstrip('.')}" for one in fields(Assumed)
    )
    lines += [
        "",
        f"Assumed: {said}.",
        f"A card embeds for less than cores from {paid:,.0f} tokens a second on; its rate is not measured.",
        "",
    ]
    return "\n".join(lines)


def _size_cells(tokens: int, rates: Rates, assumed: Assumed) -> list[str]:
    chunks = tokens / rates.tokens_a_chunk
    vectors = chunks * rates.disk_a_chunk
    disk = vectors + tokens * BYTES_A_TOKEN
    hours = tokens / rates.tokens_a_second / HOUR
    step = chunks * rates.step_a_chunk
    cores = math.ceil(step / assumed.step_seconds)
    machines = max(math.ceil(vectors / assumed.machine_gb / 1e9), math.ceil(cores / assumed.machine_cores))
    network = rates.sent + max(cores - 2, 0) * 4 * DIM + cores * rates.sent_back
    ready = machines * assumed.machine_cores * assumed.core_price * MONTH_HOURS
    return [
        _short(tokens),
        _short(chunks),
        _short(max(1, tokens * BYTES_A_TOKEN / PART_BYTES)),
        _bytes(disk),
        f"{hours:,.3g}" if hours < 1000 else f"{hours:,.0f}",
        f"{hours * assumed.core_price:,.2f}",
        f"{step:,.3g}" if step < 1000 else f"{step:,.0f}",
        f"{cores:,}",
        f"{machines:,}",
        _bytes(chunks * rates.asking_bytes_a_chunk + tokens * rates.words_a_token),
        _bytes(network),
        _bytes(4 * chunks),
        f"{ready + disk / 1e9 * assumed.disk_price:,.0f}",
    ]


def _short(value: float) -> str:
    """Three digits, in thousands, millions, billions, trillions.

    >>> _short(4_933_000), _short(12)
    ('4.93M', '12')
    """
    power, letter = _power(value)
    return f"{value / power:.3g}{letter}"


def _bytes(value: float) -> str:
    """
    >>> _bytes(7_930_000_000)
    '7.93 GB'
    """
    power, letter = _power(value)
    return f"{value / power:.3g} {letter.replace('B', 'G')}B"


def _power(value: float) -> tuple[float, str]:
    return next(
        (
            (power, letter)
            for power, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
            if value >= power
        ),
        (1.0, ""),
    )
