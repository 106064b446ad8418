"""What every client shares."""

from __future__ import annotations

import pytest

from core.llm.probe import Greeting, probe
from core.llm.protocol import LlmError, Message, UnfitReply
from tests.core.llm.scripted import ScriptedLlm

ASKED = [Message("user", "Is it so?")]


def test_a_function_sees_the_conversation_and_its_complaints() -> None:
    llm = ScriptedLlm(
        lambda messages: '{"ready": true}' if "can't be used" in messages[-1].content else "Well.",
        name="doubting",
    )
    reply = llm.chat(ASKED, schema=Greeting)
    assert (reply.value, reply.structure, reply.n_attempts, reply.counted_by) == (
        Greeting(ready=True),
        "text",
        2,
        "estimate",
    )
    assert probe(llm) is not None


def test_replies_that_came_to_nothing_are_counted() -> None:
    llm = ScriptedLlm(["Well, no.", "Certainly."])
    with pytest.raises(UnfitReply) as unfit:
        llm.chat(ASKED, schema=Greeting)
    spent = unfit.value.spent
    asked = [sum(len(message.content) for message in messages) for messages in llm.calls]
    assert (spent.calls, spent.completion_tokens, spent.prompt_tokens) == (
        2,
        3 + 3,
        sum(-(-n // 4) for n in asked),
    )
    assert spent.milliseconds > 0
    assert [messages[-1].content.count("fits this JSON schema") for messages in llm.calls] == [1, 1]

    gone = ScriptedLlm(["Well, no."])
    with pytest.raises(LlmError, match="no reply left") as failed:
        gone.chat(ASKED, schema=Greeting)
    assert (failed.value.spent.calls, failed.value.spent.completion_tokens) == (2, 3), (
        "the first reply was there, whatever became of the second"
    )
