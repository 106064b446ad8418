"""The benchmark of a GPU: its code runs on any device, and without a GPU it says so."""

from __future__ import annotations

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.gpu import measured


def test_every_figure_is_made_on_a_processor_too() -> None:
    rows = {row.measure: row for row in measured("cpu", 1_000, (400,))}
    assert rows["least cosine of a vector"].value == pytest.approx(1, abs=1e-5)
    assert rows["largest difference of a score, 400 chunks"].value == 0
    assert rows["a whole step, 400 chunks"].value > 0
    assert rows["rate"].value > 0


def test_without_a_gpu_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["gpu"]) == 2
    assert "no CUDA device; run it where there is one" in capsys.readouterr().err
