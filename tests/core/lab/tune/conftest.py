"""A causal language model of a few thousand parameters with a word-level tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from core.lab.tune.pairs import Preference, TuneConfig
from core.llm.protocol import Message

N_LEVELS = 16
LEVELS = [f"evidence-{level}" for level in range(N_LEVELS)]
_SPECIAL = ["<pad>", "<end>", "<unknown>"]
_VOCABULARY = [*_SPECIAL, "system:", "user:", "assistant:", "stop", "continue", *LEVELS]

TOY = TuneConfig(epochs=1, learning_rate=0.01, accumulate=4, rank=8, seed=1)
"""Settings with which the tiny model learns in a second or two."""


def clear_pairs(n: int) -> list[Preference]:
    """Stopping is right at the three highest levels, going on at the three lowest."""
    rng, pairs = Random(3), []
    for i in range(n):
        low = (Message("user", LEVELS[rng.randrange(3)]),)
        high = (Message("user", LEVELS[-1 - rng.randrange(3)]),)
        pairs += [
            Preference("continue_over_stop", f"{i}", low, "continue", "stop"),
            Preference("stop_over_continue", f"{i}", high, "stop", "continue"),
        ]
    return pairs


def word_model(folder: Path, words: Sequence[str], seed: int = 0, **sizes: int) -> Any:
    """A model of one layer; its tokenizer, a word a token and without a chat template, is saved in the
    folder. `words`: those that stand for padding, the end and the unknown first.
    """
    # takes seconds: not for every worker that collects
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    pad, end, unknown = words[:3]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token=unknown))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=pad, eos_token=end, unk_token=unknown
    ).save_pretrained(folder)
    about = {"pad_token_id": 0, "bos_token_id": None, "eos_token_id": 1, "num_hidden_layers": 1}
    config = LlamaConfig(vocab_size=len(words), **({"max_position_embeddings": 64} | about | sizes))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)


def make_tiny_model(folder: Path, seed: int = 0) -> Path:
    """A folder with a model that replies "stop" or "continue", with equal probability whatever it reads, and
    a tokenizer without a chat template.

    Its parts are set by hand but for the attention's queries and keys. Levels of evidence lie on an arc, so
    that neighbours are alike, as to a real model; attention passes on what it sees, nothing of which bears on
    the choice between the two words yet.
    """
    model = word_model(folder, _VOCABULARY, seed, hidden_size=16, intermediate_size=32, num_attention_heads=2)
    with torch.no_grad():
        into, out, layer = model.model.embed_tokens.weight, model.lm_head.weight, model.model.layers[0]
        layer.self_attn.v_proj.weight.copy_(torch.eye(16))
        layer.self_attn.o_proj.weight.copy_(torch.eye(16))
        layer.mlp.down_proj.weight.zero_()
        into.zero_()
        out.zero_()
        word = {name: i for i, name in enumerate(_VOCABULARY)}
        for level, name in enumerate(LEVELS):
            angle = torch.tensor(torch.pi * level / (N_LEVELS - 1))
            into[word[name], :2] = torch.stack([angle.cos(), angle.sin()])
        for name, choice in (("stop", 3.0), ("continue", -3.0)):
            out[word[name], 2] = choice
            out[word[name], 3] = 3.0
            into[word[name], 4] = 1.0
        into[word["assistant:"], 3] = 1.0
        out[word["<end>"], 4] = 3.0
        model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("tiny") / "undecided")


def margins(model: Any, tokenizer: Any, prompts: list[str], chosen: str, rejected: str) -> list[float]:
    """log p(chosen) - log p(rejected) as the first word of the reply, a prompt each."""
    ids = [tokenizer.convert_tokens_to_ids(word) for word in (chosen, rejected)]
    turns = [[{"role": "user", "content": prompt}] for prompt in prompts]
    inputs = tokenizer.apply_chat_template(
        turns, tokenize=True, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.inference_mode():
        scores = torch.log_softmax(model(**inputs).logits[:, -1].float(), -1)
    return [float(row[ids[0]] - row[ids[1]]) for row in scores]
