"""A traced pass gives what it gave before, bit for bit, whatever the batch."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

import pytest
import torch

from core.encode.checkpoint import CheckpointSpec, max_positions_of
from core.encode.forward import pooled_vectors
from core.encode.traced import Pass, TracedLater, traced
from tests.conftest import few

SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 70,
}
DISTIL = {
    "vocab_size": 60,
    "dim": 32,
    "hidden_dim": 48,
    "n_layers": 2,
    "n_heads": 4,
    "max_position_embeddings": 70,
}


def made(kind: str, **config: Any) -> Any:
    from transformers import AutoConfig, AutoModel  # takes seconds: not for every worker that collects

    return AutoModel.from_config(AutoConfig.for_model(kind, **config)).eval().requires_grad_(False)


def batches(pad_id: int) -> list[tuple[torch.Tensor, ...]]:
    """ids, mask and segments of several widths, with padding and without."""
    made = []
    for n_rows, n_tokens, padding in ((1, 1, 0), (1, 16, 3), (4, 33, 0), (7, 64, 20), (3, 64, 63)):
        ids = torch.randint(3, 60, (n_rows, n_tokens), generator=torch.Generator().manual_seed(n_tokens))
        mask = torch.ones_like(ids)
        ids[0, n_tokens - padding :], mask[0, n_tokens - padding :] = pad_id, 0
        made.append((ids, mask, (torch.arange(n_tokens) % 2).expand(n_rows, -1)))
    return made


def values(of: Pass, asked: list[tuple[torch.Tensor, ...]], n_inputs: int = 2) -> list[torch.Tensor]:
    with torch.inference_mode():
        return [of(*batch[:n_inputs]) for batch in asked]


def equal(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("dtype", few([torch.float32, torch.bfloat16], 1))
@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("bert", SIZES),
        ("roberta", {**SIZES, "pad_token_id": 1}),
        ("mpnet", {**SIZES, "pad_token_id": 1}),
        ("distilbert", DISTIL),
    ],
)
def test_a_traced_pass_gives_the_same_vectors(kind: str, config: dict[str, int], dtype: torch.dtype) -> None:
    encoder = made(kind, **config).to(dtype)
    plain = partial(pooled_vectors, encoder, CheckpointSpec(name="made", trained=False, scale=0.5))
    asked = batches(encoder.config.pad_token_id)
    before = values(plain, asked)
    quick = traced(plain, encoder)
    assert quick is not plain
    for _ in range(3):  # the first passes are still being optimised
        assert equal(values(quick, asked), before)


@pytest.mark.parametrize(("kind", "first_position"), [("bert", 0), ("roberta", 2), ("mpnet", 2)])
def test_an_encoder_reads_what_it_says_and_no_more(kind: str, first_position: int) -> None:
    encoder = made(kind, **{**SIZES, "pad_token_id": min(first_position, 1)})
    most = max_positions_of(encoder)
    assert most == SIZES["max_position_embeddings"] - first_position
    ids = torch.full((1, most + 1), 5)
    encoder(input_ids=ids[:, :most])
    with pytest.raises((IndexError, RuntimeError)):
        encoder(input_ids=ids)


def test_a_pass_that_is_needed_often_is_traced_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.encode.traced._WITHOUT", 8)  # tests put it off
    encoder = made("bert", **SIZES)
    pooled = partial(pooled_vectors, encoder, CheckpointSpec(name="made", trained=False))
    calls: list[int] = []

    def plain(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        calls.append(len(ids))
        return pooled(ids, mask)

    later, asked, counts = TracedLater(plain, encoder), batches(0), []
    for _ in range(4):
        assert equal(values(later, asked), values(pooled, asked))
        counts.append(len(calls))
    assert counts[0] == len(asked), "the first ones as they come"
    assert counts[2] == counts[3], "the last ones without Python"


def test_the_weights_go_with_their_encoder() -> None:
    encoder = made("bert", **SIZES)
    weight = weakref.ref(encoder.embeddings.word_embeddings.weight)
    quick = traced(partial(pooled_vectors, encoder, CheckpointSpec(name="made", trained=False)), encoder)
    values(quick, batches(0))
    del encoder, quick
    gc.collect()
    assert weight() is None


def test_segments_are_heard() -> None:
    encoder = made("bert", **SIZES)

    def plain(ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = encoder(
            input_ids=ids, attention_mask=mask, token_type_ids=segments
        ).last_hidden_state
        return states

    quick = traced(plain, encoder, 3)
    asked = batches(0)
    assert quick is not plain
    assert equal(values(quick, asked, 3), values(plain, asked, 3))
    assert not equal(
        values(quick, asked, 3),
        values(quick, [(ids, mask, torch.zeros_like(ids)) for ids, mask, _ in asked], 3),
    )


def test_what_a_trace_can_not_hold_is_left_as_it_was() -> None:
    encoder = made("bert", **SIZES)
    steady = encoder.forward

    def moody(input_ids: torch.Tensor, attention_mask: torch.Tensor, **others: Any) -> Any:
        """Decides by its input, which a trace can't hold."""
        told = steady(input_ids=input_ids, attention_mask=attention_mask, **others)
        if len(input_ids) == 3:
            told.last_hidden_state = -told.last_hidden_state
        return told

    encoder.forward = moody
    plain = partial(pooled_vectors, encoder, CheckpointSpec(name="made", trained=False))
    assert traced(plain, encoder) is plain


def test_what_can_not_be_traced_is_left_as_it_was() -> None:
    encoder = made("bert", **SIZES)

    def plain(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("no trace of this")

    assert traced(plain, encoder) is plain
