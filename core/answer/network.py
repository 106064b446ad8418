"""The reader's network: the base encoder with two heads.

A window answers with one of its spans, or with one of CLASSES. A span's score is that of its first token as a
beginning plus that of its last token as an end; all spans within one passage up to the longest answer compete
with the classes in one softmax, so a string that occurs twice may share its probability between its places,
and training need not know which of them is meant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import nn

from core.answer.windows import Window
from core.encode.forward import SERVED_WIDTH_STEP, last_states, padded_width, reads_segments
from core.encode.traced import Pass

if TYPE_CHECKING:
    from core.encode.mpnet import Encoder

CLASSES = ("none", "yes", "no")
"""Answers that are no span; "none": the window holds no answer."""
NONE = CLASSES.index("none")


@dataclass(frozen=True, eq=False, slots=True)
class Logits:
    """Scores of B windows of at most T tokens, float32; spans that can't be answers have -inf."""

    spans: torch.Tensor
    """(B, T, L): row by first token, column by number of tokens less one."""
    classes: torch.Tensor
    """(B, len(CLASSES))."""

    def flat(self) -> torch.Tensor:
        """(B, T * L + len(CLASSES))."""
        return torch.cat([self.spans.flatten(1), self.classes], dim=1)


class ReaderNetwork(nn.Module):
    """See the module."""

    def __init__(self, encoder: Encoder, longest_answer: int, pad_id: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.longest_answer, self._pad_id = longest_answer, pad_id
        dim = int(encoder.config.hidden_size)
        self.borders = nn.Linear(dim, 2)
        self.classes = nn.Linear(dim, len(CLASSES))
        self.reads_segments = reads_segments(encoder)
        """Whether the encoder is told what is question and what passage."""
        self.hidden_states: Pass = partial(last_states, encoder)

    @property
    def heads(self) -> nn.ModuleDict:
        """What is added to the encoder, by name."""
        return nn.ModuleDict({"borders": self.borders, "classes": self.classes})

    def forward(self, windows: Sequence[Window]) -> Logits:
        """The scores of some windows, padded to a common width."""
        device = self.borders.weight.device
        width = padded_width(max(len(window.ids) for window in windows), self.encoder, SERVED_WIDTH_STEP)
        ids = torch.full((len(windows), width), self._pad_id)
        mask, segments, passages = torch.zeros_like(ids), torch.zeros_like(ids), torch.full_like(ids, -1)
        begins, ends = torch.zeros_like(ids, dtype=torch.bool), torch.zeros_like(ids, dtype=torch.bool)
        for row, window in enumerate(windows):
            n = len(window.ids)
            ids[row, :n], mask[row, :n], segments[row, window.n_question : n] = torch.tensor(window.ids), 1, 1
            passages[row, :n] = torch.from_numpy(window.passages)
            begins[row, :n] = torch.from_numpy(window.may_begin)
            ends[row, :n] = torch.from_numpy(window.may_end)
        inputs = [ids, mask, segments] if self.reads_segments else [ids, mask]
        hidden = self.hidden_states(*(given.to(device) for given in inputs)).float()
        borders = self.borders(hidden)
        allowed = _allowed(passages, begins, ends, self.longest_answer).to(device)
        spans = borders[:, :, 0, None] + _shifted(borders[:, :, 1], self.longest_answer, 0.0)
        return Logits(spans.masked_fill(~allowed, -torch.inf), self.classes(hidden[:, 0]))


def marginal_loss(logits: Logits, gold: torch.Tensor) -> torch.Tensor:
    """Mean over windows of -log of the gold answers' probability; `gold`: bool, one in each row at least."""
    scores = logits.flat()
    return (scores.logsumexp(1) - scores.masked_fill(~gold, -torch.inf).logsumexp(1)).mean()


def _shifted(values: torch.Tensor, width: int, filler: float) -> torch.Tensor:
    """(B, T, width) from (B, T): entry [b, t, k] is values[b, t + k], the filler behind the end."""
    return nn.functional.pad(values, (0, width - 1), value=filler).unfold(1, width, 1)


def _allowed(passages: torch.Tensor, begins: torch.Tensor, ends: torch.Tensor, width: int) -> torch.Tensor:
    """(B, T, width) bool: the span lies within one passage and between word borders."""
    same = _shifted(passages, width, -1) == passages[:, :, None]
    may_begin = (begins & (passages >= 0))[:, :, None]
    return same & may_begin & _shifted(ends.to(torch.int8), width, 0).bool()
