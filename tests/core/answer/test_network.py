"""The distribution over spans and classes, against the plain loop."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from core.answer.network import CLASSES, Logits, ReaderNetwork, marginal_loss
from core.answer.windows import NOWHERE, read_windows
from core.encode.checkpoint import architecture
from core.encode.forward import SERVED_WIDTH_STEP
from core.encode.tokens import FastTokenizer

LONGEST = 3


@pytest.fixture(scope="module")
def parts(base: Path) -> tuple[ReaderNetwork, FastTokenizer]:
    torch.manual_seed(0)
    tokenizer = FastTokenizer(base)
    return ReaderNetwork(architecture(base), LONGEST, tokenizer.pad_id).eval(), tokenizer


@torch.inference_mode()
def test_spans_are_sums_of_borders_within_one_passage(parts: tuple[ReaderNetwork, FastTokenizer]) -> None:
    """spans (B, T, L), row by first token, column by length less one."""
    network, tokenizer = parts
    windows = [
        read_windows(tokenizer, "where is mary?", passages, 64)[0]
        for passages in (["mary went there.", "john got milk."], ["old man"])
    ]
    logits = network(windows)
    assert logits.classes.shape == (2, len(CLASSES))
    alone = network(windows[1:])
    assert torch.allclose(alone.spans[0], logits.spans[1, : alone.spans.shape[1]], atol=1e-5)
    for row, window in enumerate(windows):
        for first in range(logits.spans.shape[1]):
            for more in range(LONGEST):
                last = first + more
                inside = last < len(window.ids) and window.passages[first] == window.passages[last] != NOWHERE
                allowed = inside and window.may_begin[first] and window.may_end[last]
                assert math.isfinite(logits.spans[row, first, more]) == bool(allowed)


@torch.inference_mode()
def test_half_precision_reads_in_few_widths(base: Path, parts: tuple[ReaderNetwork, FastTokenizer]) -> None:
    """On a CPU every width compiles kernels of its own, which stay in memory; float32 is as wide
    as its text.
    """
    exact, tokenizer = parts
    half = ReaderNetwork(architecture(base), LONGEST, tokenizer.pad_id).eval()
    half.load_state_dict(exact.state_dict())
    half.encoder.to(torch.bfloat16)
    texts = ["mary went there. " * n for n in range(1, 9)]
    windows = [read_windows(tokenizer, "where is mary?", [text], 64)[0] for text in texts]
    lengths = {len(window.ids) for window in windows}
    assert {exact([window]).spans.shape[1] for window in windows} == lengths
    widths = {half([window]).spans.shape[1] for window in windows}
    assert len(widths) < len(lengths)
    assert all(width % SERVED_WIDTH_STEP == 0 for width in widths)
    for window in windows:
        one, same = exact([window]).flat(), half([window])
        assert torch.allclose(one[:, -len(CLASSES) :], same.classes, atol=0.05)
        assert not torch.isfinite(same.spans[:, len(window.ids) :]).any()


def test_the_loss_is_of_all_right_answers_together() -> None:
    spans = torch.tensor([[[math.log(2.0), -torch.inf], [math.log(3.0), math.log(1.0)]]])
    logits = Logits(spans, torch.tensor([[math.log(4.0), 0.0, -torch.inf]]))
    gold = torch.tensor([[False, False, True, True, True, False, False]])
    assert marginal_loss(logits, gold).item() == pytest.approx(-math.log((3 + 1 + 4) / (2 + 3 + 1 + 4 + 1)))
