"""Texts to vectors: batches change nothing, states fit the window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from core.base.errors import BadRequest
from core.encode.checkpoint import CheckpointSpec, find_base, write_spec
from core.encode.encoder import DualEncoder, compute_dtype
from core.encode.packaged import MINILM

WORDS = ["mary", "john", "milk", "garden", "river", "night", "captain", "zzz", "."]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=300).map(" ".join)


def test_batches_sorted_by_length_change_nothing(encoder: DualEncoder) -> None:
    """700 texts of 1 to 90 words make several batches; each vector is what its text gives alone."""
    rng = np.random.default_rng(0)
    chunks = [" ".join(rng.choice(WORDS, size=rng.integers(1, 90))) for _ in range(700)]
    batches = list(encoder.iter_encode_chunks(chunks))
    assert len(batches) > 5
    assert sorted(np.concatenate([indices for indices, _ in batches]).tolist()) == list(range(700))
    vectors = encoder.encode_chunks(chunks)
    for i in range(0, 700, 70):
        np.testing.assert_allclose(vectors[i], encoder.encode_chunks([chunks[i]])[0], atol=1e-6)


def test_a_chunk_is_cut_to_what_the_checkpoint_reads(encoder: DualEncoder) -> None:
    room = encoder.spec.max_chunk_tokens - 2
    words = ["mary"] * room
    exact, longer, other = encoder.encode_chunks(
        [" ".join(chunk) for chunk in (words, [*words, *["john"] * 9], [*words[1:], "john"])]
    )
    np.testing.assert_allclose(exact, longer, atol=1e-6)
    assert np.abs(exact - other).max() > 1e-5  # the last word that is read still counts


@pytest.mark.parametrize("text", ["", " \n", "☃ \u0000 \ufffd", "x" * 5000])
def test_odd_texts_have_vectors(encoder: DualEncoder, text: str) -> None:
    assert np.isfinite(encoder.encode_chunks([text])).all()


def mean_of_last_hidden(model: torch.nn.Module, ids: list[int]) -> np.ndarray:
    """The plain computation: one text, no padding, mean over all its tokens."""
    with torch.inference_mode():
        mean: np.ndarray = model(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(0).numpy()
    return mean


def test_minilm_is_the_model_that_transformers_loads(minilm: DualEncoder) -> None:
    """Normalised mean pooling with transformers' own tokenizer; half the mantissa where the processor
    computes in bfloat16.
    """
    from transformers import AutoModel, AutoTokenizer  # takes seconds: not for every worker that collects

    folder = find_base(MINILM)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32)
    chunks = ["A doctor treats patients.", "Über den Dächern liegt Schnee; 3.14 und mehr.", "word " * 400]
    expected = [
        mean_of_last_hidden(model, tokenizer(chunk, truncation=True, max_length=256)["input_ids"])
        for chunk in chunks
    ]
    expected = [vector / np.linalg.norm(vector) for vector in expected]
    cosines = (minilm.encode_chunks(chunks) * np.stack(expected)).sum(1)
    assert (cosines > (0.99999 if minilm.dtype == torch.float32 else 0.999)).all()
    query = minilm.encode_states([minilm.state_tokens("who treats patients?", [])])[0]
    assert np.linalg.norm(query) == pytest.approx(1, abs=1e-4)


@pytest.fixture(scope="module")
def xlm_roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint on a tiny random XLM-R whose window is 34 - 2 = 32 tokens: positions are counted from
    behind the padding id.
    """
    # takes seconds: not for every worker that collects
    from transformers import XLMRobertaConfig, XLMRobertaModel

    folder = tmp_path_factory.mktemp("xlm-roberta")
    words = ["<s>", "<pad>", "</s>", "<unk>", *WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    (folder / "base").mkdir()
    tokenizer.save(str(folder / "base" / "tokenizer.json"))
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    config = XLMRobertaConfig(
        vocab_size=len(words),
        max_position_embeddings=34,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        type_vocab_size=1,
        **sizes,
    )
    XLMRobertaModel(config).save_pretrained(folder / "base")
    write_spec(
        folder,
        CheckpointSpec(
            name="xlm", trained=False, base=".", weights="base", vectors="float32", max_chunk_tokens=64
        ),
    )
    return folder


def test_xlm_roberta_has_its_own_separator_and_window(xlm_roberta: Path) -> None:
    from transformers import XLMRobertaModel

    encoder = DualEncoder(xlm_roberta, "cpu")
    model = XLMRobertaModel.from_pretrained(xlm_roberta / "base").eval()
    assert encoder.max_positions == 32
    state = encoder.state_tokens("mary milk", ["john garden", "river"])
    assert state.ids == [0, 4, 6, 2, 5, 7, 2, 8, 2]
    full = encoder.state_tokens(" ".join(["mary"] * 20), [" ".join(["john"] * 20), "river"])
    assert len(full.ids) in (31, 32)
    assert full.n_dropped > 0
    for vector, tokens in zip(encoder.encode_states([state, full]), (state, full), strict=True):
        np.testing.assert_allclose(vector, mean_of_last_hidden(model, tokens.ids), atol=1e-5)
    long_chunk = " ".join(["night"] * 50)
    np.testing.assert_allclose(
        encoder.encode_chunks([long_chunk])[0], mean_of_last_hidden(model, [0, *[9] * 30, 2]), atol=1e-5
    )


def test_precision(encoder: DualEncoder) -> None:
    """Imported checkpoints stay in float32 on any device."""
    assert encoder.spec.vectors == "float32"
    assert encoder.dtype == compute_dtype(encoder.spec, torch.device("cuda")) == torch.float32
    half = encoder.spec.model_copy(update={"vectors": "float16"})
    assert compute_dtype(half, torch.device("cpu")) in (torch.float32, torch.bfloat16)


@pytest.mark.parametrize("device", ["warp", "meta", "cuda:99", "cpu:x"])
def test_a_device_that_is_not_there(tiny_checkpoints: dict[str, Path], device: str) -> None:
    with pytest.raises(BadRequest, match=f"device '{device}' is not .*; choose cpu"):
        DualEncoder(tiny_checkpoints["none"], device)


def test_the_tokenizer_counts_and_points(encoder: DualEncoder) -> None:
    """No special tokens; offsets count code points."""
    tokenizer = encoder.tokenizer
    assert tokenizer.count(["mary went", "", "☃ mary"]).tolist() == [2, 0, 2]
    assert [len(ids) for ids in tokenizer.ids(["mary went", "", "☃ mary"])] == [2, 0, 2]
    assert ["𝒳 mary went"[start:end] for start, end in tokenizer.spans("𝒳 mary went")] == [
        "𝒳",
        "mary",
        "went",
    ]
