"""trl's DPO trainer with a weight for each pair.

It can do without a reference model (SPARC-RAG section 3.4), and departs from trl in three places. The loss of
a pair is multiplied by its weight; a batch is one pair, as in the paper, so this is exact, and steps are made
of several batches. Without a reference, its log-probabilities are zeros that trl takes for computed in
advance. No telemetry is sent. Loading this module takes seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from datasets import Dataset
from trl import DPOTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference

from core.lab.tune.pairs import Preference

WEIGHT, REFERENCE = "weight", ("ref_chosen_logps", "ref_rejected_logps")
"""Columns beside the messages; the latter by trl's names."""


def preference_rows(pairs: Sequence[Preference], *, reference: bool) -> Dataset:
    """What the trainer reads, a row a pair."""
    rows = [pair.to_json() for pair in pairs]
    columns: dict[str, list[Any]] = {
        name: [row[name] for row in rows] for name in ("prompt", "chosen", "rejected", WEIGHT)
    }
    if not reference:
        columns |= {name: [0.0] * len(pairs) for name in REFERENCE}
    return Dataset.from_dict(columns)


class PairCollator(DataCollatorForPreference):  # type: ignore[misc]
    """trl's collator, and the weight."""

    def torch_call(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch of one pair."""
        return {
            **super().torch_call(examples),
            WEIGHT: torch.tensor([example[WEIGHT] for example in examples]),
        }


class Quiet:
    """What trl's trainers also do and is not wanted here."""

    def _send_telemetry(self) -> None:
        pass

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """None of trl's: the folder gets one of ours."""


class WeightedDpoTrainer(Quiet, DPOTrainer):  # type: ignore[misc]
    """DPO with loss w * -log sigmoid(beta * margin) against the untuned model, or not without `reference`."""

    def __init__(self, *, reference: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.precompute_ref_logps = not reference

    def _compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool) -> torch.Tensor:
        weight = inputs.pop(WEIGHT).item()  # one pair: raises for more
        loss: torch.Tensor = super()._compute_loss(model, inputs, return_outputs) * weight
        return loss

    def _set_signature_columns_if_needed(self) -> None:
        super()._set_signature_columns_if_needed()
        columns: list[str] = self._signature_columns
        if WEIGHT not in columns:
            columns.append(WEIGHT)
