"""That benchmarks for machines that no test has run at all."""

from __future__ import annotations

from benchmarks import Row, gpu
from core.encode.encoder import load_encoder


def test_the_benchmark_of_a_card_measures_a_processor_as_well() -> None:
    encoder = load_encoder("narrative")
    beside = gpu._beside_faiss(encoder)
    assert beside.value < 1e-5
    steps = gpu._step(encoder, 1_000)
    assert [row.measure for row in steps] == [
        "a state encoded, 1,000 chunks",
        "scores, and the 200 best, 1,000 chunks",
        "a whole step, 1,000 chunks",
    ]
    assert all(isinstance(row, Row) and row.value > 0 and row.ratio for row in steps)
