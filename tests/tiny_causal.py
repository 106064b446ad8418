"""A causal language model that a test makes."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}</s>{% endfor %}{% if"
    " add_generation_prompt %}<assistant>{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}" + TEMPLATE
)


def save_tiny_causal(folder: Path, *, template: str | None = TEMPLATE) -> Path:
    """Writes the model and its tokenizer; returns the folder."""
    # takes seconds: not for every worker that collects
    from transformers import (
        LlamaConfig,
        LlamaForCausalLM,
        PreTrainedTokenizerFast,
    )

    # the last two stand for blank and newline
    alphabet = sorted(
        set(pre_tokenizers.ByteLevel.alphabet()) & {*map(chr, range(33, 127)), "\u0120", "\u010a"}
    )
    vocabulary = {token: row for row, token in enumerate(["<s>", "</s>", *alphabet])}
    plain = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=plain, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    if template is not None:
        tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    model = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    return folder
