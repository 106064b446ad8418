"""Whether a language model answers, how fast, and which structure it serves, by one tiny call."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel

from core.llm.protocol import Llm, Message, Reply, Sampling, Structure, UnfitReply

_MAX_TOKENS = 200
"""Room for models that think before they speak."""


class Greeting(BaseModel):
    """What the model is asked for."""

    ready: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """How a model answered."""

    model: str
    structure: Structure | None
    """Like the reply, None for a model that replies without a usable JSON object."""
    reply: Reply | None


def probe(llm: Llm) -> Probe:
    """Asks for {"ready": true}. Raises LlmError."""
    messages = [Message("user", 'Is anybody there? Set "ready" to true.')]
    try:
        reply = llm.chat(messages, Sampling(max_tokens=_MAX_TOKENS), schema=Greeting)
    except UnfitReply:
        return Probe(llm.name, None, None)
    return Probe(llm.name, reply.structure, reply)
