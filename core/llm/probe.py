"""Whether a language model answers, how fast, with which structure."""

from __future__ import annotations

from pydantic import BaseModel

from core.llm.protocol import Llm, Message, Reply, Sampling, UnfitReply

_MAX_TOKENS = 200
"""Room for models that think before they speak."""


class Greeting(BaseModel):
    """What the model is asked for."""

    ready: bool


def probe(llm: Llm) -> Reply | None:
    """Asks for {"ready": true}. None: it replies, but without a usable JSON object. Raises LlmError."""
    messages = [Message("user", 'Is anybody there? Set "ready" to true.')]
    try:
        return llm.chat(messages, Sampling(max_tokens=_MAX_TOKENS), schema=Greeting)
    except UnfitReply:
        return None
