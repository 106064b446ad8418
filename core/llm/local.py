"""A causal language model on this machine, by transformers.

A folder, or an id of the hub. Decides that one reply is generated at a time, since they would share the
processor; that code which comes with a model is never run and weights are safetensors only; and that
randomness comes from a generator of its own, not from the process's. The loop over tokens is written out here
because it has to end between any two of them. Structured replies are constrained to their schema where
`core.llm.constrained` can, which is told in words, too: tuned models learned from those. Elsewhere they are
found in free text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from core.base.errors import BadCheckpoint, quoted
from core.encode.hub import fetch
from core.llm.background import LOOK_EVERY, from_thread
from core.llm.client import (
    Ask,
    Client,
    Completion,
    StructureRefused,
    mended,
    without_thoughts,
)
from core.llm.constrained import Constraint, Constraints, can_constrain
from core.llm.protocol import LlmError, Message, Sampling, Spent, Structure

MODEL_FILES = ["*.json", "*.txt", "*.model", "*.jinja", "*.safetensors"]
_SECONDS = 3600.0
"""For one reply: a large model on a CPU takes its time, and may be cancelled."""
_UNFINISHED = "\ufffd"
"""What a tokenizer shows for a character whose last bytes are still to come."""
_MOST_UNFINISHED = 3
"""Bytes that may be missing to a character; more are none."""


class LocalLlm(Client):
    """A loaded model. Calls from several threads take turns."""

    def __init__(self, source: str, device: str | None = None) -> None:
        """`source`: folder or hub id; `device`: by default cuda where there is one. Raises BadCheckpoint."""
        super().__init__(Path(source).name if Path(source).is_dir() else source)
        folder = (
            Path(source)
            if Path(source).is_dir()
            else fetch(source, MODEL_FILES, "pass a folder with the model")
        )
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self._tokenizer, model = load_causal(folder)
        self._model = model.to(self._device).eval().requires_grad_(False)
        self._busy = threading.Lock()

    @property
    def _structures(self) -> Sequence[Structure]:
        return ("grammar", "text") if can_constrain() else ("text",)

    @cached_property
    def _constraints(self) -> Constraints:
        n_logits = self._model.config.get_text_config().vocab_size
        return Constraints(self._tokenizer, n_logits, self._ends)

    def _complete(self, ask: Ask) -> Completion:
        constraint: Constraint | None = None
        if ask.structure == "grammar":
            assert ask.schema is not None
            try:
                constraint = self._constraints.of(ask.schema)
            except (ImportError, ValueError):  # a wheel that does not load, too
                raise StructureRefused(0) from None
        prompt = self._prompt(ask.messages)
        most = min(ask.sampling.max_tokens, self._window - len(prompt))
        if most < 1:
            raise LlmError(
                f"{self.name} reads at most {self._window:,} tokens and was given {len(prompt):,}; ask over"
                " less evidence"
            )
        over = threading.Event()
        tokens: list[int] = []
        sent = ""

        def work(put: Callable[[int], None]) -> None:
            self._generate(prompt, ask.sampling, constraint, most, put, over)

        try:
            for token in from_thread(work, ask.cancelled, _SECONDS):
                tokens.append(token)
                text = self._text(tokens)
                if not text.endswith(_UNFINISHED) or len(text) - len(sent) > _MOST_UNFINISHED:
                    ask.on_text(mended(text[len(sent) :]))
                    sent = text
        except TimeoutError:
            sentence = (
                f"{self.name} was not done within {_SECONDS:.0f} s; lower the number of tokens, or choose a"
                " smaller model"
            )
            raise LlmError(sentence, Spent(1, len(prompt), len(tokens))) from None
        except torch.OutOfMemoryError:
            sentence = (
                f"{self.name} ran out of memory over {len(prompt):,} tokens; ask over less evidence, or"
                " choose a smaller model"
            )
            raise LlmError(sentence, Spent(1, len(prompt), len(tokens))) from None
        finally:
            over.set()
        cut = not tokens or tokens[-1] not in self._ends
        return Completion(
            without_thoughts(mended(self._text(tokens))), len(prompt), len(tokens), "tokenizer", cut=cut
        )

    @property
    def _window(self) -> int:
        """Tokens that the model reads and writes in all."""
        return int(
            getattr(
                self._model.config.get_text_config(),
                "max_position_embeddings",
                self._tokenizer.model_max_length,
            )
        )

    @property
    def _ends(self) -> frozenset[int]:
        """Tokens that end a reply."""
        ends = self._model.generation_config.eos_token_id
        of_model = ends if isinstance(ends, list) else [ends]
        return frozenset(token for token in (*of_model, self._tokenizer.eos_token_id) if token is not None)

    def _prompt(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a conversation that it is the model's turn in."""
        if self._tokenizer.chat_template is None:
            prompt = "\n\n".join(f"{message.role}: {message.content}" for message in messages)
            return list(self._tokenizer(f"{prompt}\n\nassistant:")["input_ids"])
        failure = ""
        for turns in (messages, without_system(messages)):  # some templates know no system
            try:
                return self._templated(turns)
            except Exception as error:  # a template is a program, and may raise anything
                failure = quoted(str(error))
        raise LlmError(
            f"the chat template of {self.name} takes no such conversation{failure}; choose another model"
        )

    def _templated(self, messages: Sequence[Message]) -> list[int]:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        text = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def _text(self, tokens: list[int]) -> str:
        return str(
            self._tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        )

    def _generate(
        self,
        prompt: list[int],
        sampling: Sampling,
        constraint: Constraint | None,
        most: int,
        put: Callable[[int], None],
        over: threading.Event,
    ) -> None:
        """Puts tokens until one that ends the reply, `most` of them, or `over`."""
        while not self._busy.acquire(timeout=LOOK_EVERY):
            if over.is_set():
                return
        try:
            for token in self._tokens(prompt, sampling, constraint, most):
                put(token)
                if token in self._ends or over.is_set():
                    return
        finally:
            self._busy.release()

    def _tokens(
        self, prompt: list[int], sampling: Sampling, constraint: Constraint | None, most: int
    ) -> Iterator[int]:
        """Token after token, `most` of them."""
        generator = torch.Generator(self._device)
        if sampling.seed is None:
            generator.seed()
        else:
            generator.manual_seed(sampling.seed)
        cache: Any = None
        ids = torch.tensor([prompt], device=self._device)
        with torch.inference_mode():
            for left in range(most, 0, -1):
                output = self._model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
                logits, cache = output.logits[:, -1].float(), output.past_key_values
                if constraint is not None:
                    logits = constraint.masked(logits, left)
                if sampling.temperature > 0:
                    ids = torch.multinomial(
                        torch.softmax(logits / sampling.temperature, dim=-1), 1, generator=generator
                    )
                else:
                    ids = logits.argmax(dim=-1, keepdim=True)
                token = int(ids)
                if constraint is not None:
                    constraint.take(token)
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


def without_system(messages: Sequence[Message]) -> list[Message]:
    """The same conversation with what the system says at the head of the first turn."""
    system = [message.content for message in messages if message.role == "system"]
    first, *further = [message for message in messages if message.role != "system"]
    return [Message(first.role, "\n\n".join([*system, first.content])), *further]
