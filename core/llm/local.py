"""A causal language model on this machine, by transformers.

One reply is generated at a time, since they would share the processor. Code that comes with a model is never
run, and weights are safetensors only. The loop over tokens is written out here because it has to end between
any two of them, with randomness of its own. Where llguidance is installed (the extra `constrained`), it keeps
structured replies to their schema. They are told it in words, too: tuned models learned from those.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from os.path import isdir
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from core.base.errors import BadCheckpoint, quoted
from core.encode.hub import fetch
from core.llm.client import Ask, Client, strict_schema, without_system
from core.llm.draft import apart, mended, opening
from core.llm.protocol import Cost, LlmCancelled, LlmError, Message, Reply, Sampling

MODEL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.safetensors"]
_LOOK_EVERY = 0.1
"""Seconds between looks whether a caller who waits for a turn has cancelled."""
_UNFINISHED = "\ufffd"
"""What a tokenizer shows for a character whose last bytes are still to come."""
_MOST_UNFINISHED = 3
"""Bytes that may be missing to a character; more are none."""
_LEAST_TEMPERATURE = 1e-30
"""Logits divided by less are beyond float32."""
_ON_ONE_LINE = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
"""How JSON is written; a small model would never end a run of blanks."""


class LocalLlm(Client):
    """A loaded model. Calls from several threads take turns."""

    def __init__(self, source: str, device: str | None = None, reply_tokens: int | None = None) -> None:
        """`source`: folder or hub id; `device`: by default cuda where there is one. Raises BadCheckpoint,
        BadRequest.
        """
        folder, is_folder = Path(source), isdir(source)
        super().__init__(folder.name if is_folder else source, reply_tokens)
        if not is_folder:
            folder = fetch(source, MODEL_FILES, "pass a folder with the model")
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._tokenizer, model = load_causal(folder)
        self._model = model.to(self._device).eval().requires_grad_(False)
        self._busy = threading.Lock()
        ends = self._model.generation_config.eos_token_id
        of_model = ends if isinstance(ends, list) else [ends]
        self._ends = frozenset({*of_model, self._tokenizer.eos_token_id} - {None})
        self._shape = self._model.config.get_text_config()
        self._window = int(getattr(self._shape, "max_position_embeddings", self._tokenizer.model_max_length))
        """Tokens that it reads and writes in all."""

    def _complete(self, ask: Ask) -> Reply:
        matcher = self._matcher(ask.schema) if ask.schema else None
        prompt = self._prompt(ask.told())
        if len(prompt) >= self._window:
            raise LlmError(
                f"{self.name} reads at most {self._window:,} tokens and was given {len(prompt):,}; ask over"
                " less evidence"
            )
        most = min(ask.sampling.max_tokens, self._window - len(prompt))
        tokens: list[int] = []
        sent = ""
        # a grammar leaves no room for thoughts, whatever the prompt begins
        begun = "" if matcher else opening(self._tokenizer.decode(prompt))
        ask.draft.clear()
        ask.draft.add(begun)
        while not self._busy.acquire(timeout=_LOOK_EVERY):
            if ask.cancelled():
                raise LlmCancelled
        try:
            for token in self._tokens(prompt, ask.sampling, matcher):
                if ask.cancelled():
                    raise LlmCancelled
                tokens.append(token)
                text = self._text(tokens)
                if not text.endswith(_UNFINISHED) or len(text) - len(sent) > _MOST_UNFINISHED:
                    ask.draft.add(text[len(sent) :])
                    sent = text
                if token in self._ends or len(tokens) >= most:
                    break
        except torch.OutOfMemoryError:
            raise LlmError(
                f"{self.name} ran out of memory over {len(prompt):,} tokens; ask over less evidence, or"
                " choose a smaller model",
                Cost(1, len(prompt), len(tokens)),
            ) from None
        finally:
            self._busy.release()
        thoughts, said = apart(mended(begun + self._text(tokens)))
        return Reply(
            said,
            len(prompt),
            len(tokens),
            0.0,
            "tokenizer",
            structure="grammar" if matcher else "text",
            cut=tokens[-1] not in self._ends,
            thoughts=thoughts,
        )

    @cached_property
    def _vocabulary(self) -> Any:
        """The tokenizer as llguidance reads it."""
        from llguidance.hf import from_tokenizer

        return from_tokenizer(self._tokenizer, n_vocab=self._shape.vocab_size, eos_token=[*self._ends])

    def _matcher(self, schema: type[BaseModel]) -> Any:
        """What says which token may come next; None where the library is missing, or can't keep to this."""
        try:
            from llguidance import LLMatcher

            grammar = LLMatcher.grammar_from_json_schema(strict_schema(schema), defaults=_ON_ONE_LINE)
            matcher = LLMatcher(self._vocabulary, grammar, log_level=0)
        except (ImportError, ValueError):
            return None
        return None if matcher.is_error() else matcher

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a conversation that it is the model's turn in."""
        if self._tokenizer.chat_template is None:
            prompt = "\n\n".join(f"{message.role}: {message.content}" for message in messages)
            return list(self._tokenizer(f"{prompt}\n\nassistant:")["input_ids"])
        failure = ""
        for turns in (messages, without_system(messages)):  # some templates know no system
            try:
                chat = [{"role": turn.role, "content": turn.content} for turn in turns]
                text = self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
                return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
            except Exception as error:  # a template is a program, and may raise anything
                failure = quoted(str(error))
        raise LlmError(
            f"the chat template of {self.name} takes no such conversation{failure}; choose another model"
        )

    def _text(self, tokens: list[int]) -> str:
        return str(
            self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    @torch.inference_mode()
    def _tokens(self, prompt: list[int], sampling: Sampling, matcher: Any) -> Iterator[int]:
        """Token after token, without end."""
        generator = torch.Generator(self._device)
        generator.seed() if sampling.seed is None else generator.manual_seed(sampling.seed)
        cache: Any = None
        ids = torch.tensor([prompt], device=self._device)
        while True:
            output = self._model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
            logits, cache = output.logits[:, -1].float(), output.cache
            if matcher is not None:
                bits = np.frombuffer(matcher.compute_bitmask(), np.uint8)
                allowed = np.unpackbits(bits, count=logits.shape[1], bitorder="little").astype(bool)
                logits[:, torch.from_numpy(~allowed).to(self._device)] = -torch.inf
            if sampling.temperature > 0:
                shares = torch.softmax(logits / max(sampling.temperature, _LEAST_TEMPERATURE), dim=-1)
                ids = torch.multinomial(shares, 1, generator=generator)
            else:
                ids = logits.argmax(dim=-1, keepdim=True)
            token = int(ids)
            if matcher is not None:
                matcher.consume_token(token)
            yield token


def load_causal(folder: Path, dtype: torch.dtype | str = "auto") -> tuple[Any, Any]:
    """Tokenizer and model of a folder, on the CPU, without its code or pickles. Raises BadCheckpoint."""
    transformers_logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        model, loading = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, use_safetensors=True, trust_remote_code=False, output_loading_info=True
        )
    except Exception as error:  # whatever a hostile or foreign folder provokes
        raise BadCheckpoint(
            f"{folder.name} is no language model that transformers loads{quoted(str(error))}; choose"
            " another one"
        ) from error
    missing = sorted(loading["missing_keys"])
    if missing:  # they would be random
        raise BadCheckpoint(
            f"{folder.name} lacks {len(missing):,} of its weights, {missing[0]} first; fetch it again"
        )
    return tokenizer, model
