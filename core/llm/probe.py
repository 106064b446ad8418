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
    """Asks for {"ready": true}, as the app asks for all else. None: it replies, but without a usable JSON
    object. Raises LlmError.
    """
    messages = [Message("system", "Be brief."), Message("user", 'Is anybody there? Set "ready" to true.')]
    sampling = Sampling(max_tokens=llm.reply_tokens or _MAX_TOKENS, seed=0)
    try:
        return llm.chat(messages, sampling, schema=Greeting)
    except UnfitReply:
        return None
