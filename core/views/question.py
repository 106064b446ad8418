"""What there is to say of a question itself."""

from __future__ import annotations

from core.encode.encoder import DualEncoder


def cut_sentence(agent: DualEncoder, query: str) -> str:
    """That the agent reads only the beginning of a question, in a sentence; empty where it reads all."""
    most = agent.spec.max_state_part_tokens - 2
    if len(query) <= most:  # a token has a character or more
        return ""
    [tokens] = agent.tokenizer.ids([query.strip()])
    if len(tokens) <= most:
        return ""
    return f"Too long: the agent reads the first {most} of {len(tokens):,} tokens. Ask in fewer words."
