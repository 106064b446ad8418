"""What a model on this machine may write next.

Token by token, so that its reply fits a JSON schema, by llguidance, an optional library (the extra
`constrained`). Decides that objects are written on one line with at most a blank between their parts,
keys in the schema's order, and that no list of enumerated values holds one twice: schemas can say that, but
servers refuse such schemas. Of more than `BLOCK` values a list may hold any, those of an earlier block
first, for the library counts in 64 bits. A small model may never end a text: where a reply has no more tokens
left than its rest may take, texts and lists are ended at once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel

from core.llm.client import strict_schema

BLOCK = 64
"""Values of a list that may stand in any order."""
_BLANKS = " \u0120\u2581"
"""A blank, and how byte-level and SentencePiece vocabularies write one."""


def can_constrain() -> bool:
    """Whether the library is installed."""
    return find_spec("llguidance") is not None


class Constraints:
    """Of one model, which share what is read from its tokenizer. Needs the library."""

    def __init__(self, tokenizer: Any, n_logits: int, ends: Collection[int]) -> None:
        """ends: tokens that end a reply. Raises ValueError for a tokenizer that isn't a fast one."""
        from llguidance.hf import from_tokenizer

        self._tokens = from_tokenizer(tokenizer, n_vocab=n_logits, eos_token=[*ends])
        words = {token: text.lstrip(_BLANKS) for text, token in tokenizer.get_vocab().items()}
        self._ending = [
            np.isin(
                np.arange(n_logits), [token for token, text in words.items() if text and not {*text} - marks]
            )
            for marks in ({*'"]}'}, {","})
        ]

    def of(self, schema: type[BaseModel]) -> Constraint:
        """For one reply. Raises ValueError for a schema that the library doesn't know how to keep to."""
        from llguidance import LLMatcher

        strict = strict_schema(schema.model_json_schema())
        matcher = LLMatcher(self._tokens, grammar_of(strict), log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        parts = [strict, *strict.get("$defs", {}).values()]
        return Constraint(matcher, self._ending, sum(len(emptiest(part)) for part in parts))


class Constraint:
    """Where one reply stands in its grammar."""

    def __init__(self, matcher: Any, ending: Sequence[np.ndarray], rest: int) -> None:
        """ending: (V,) masks of tokens that end something, the most wanted first; rest: most tokens that a
        reply needs to end whole.
        """
        self._matcher, self._ending, self._rest = matcher, ending, rest

    def masked(self, logits: torch.Tensor, left: int) -> torch.Tensor:
        """logits: (1, V) of the next token; those that can't come next are -inf. left: tokens that may still
        be written.
        """
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        allowed = np.unpackbits(bits, count=logits.shape[1], bitorder="little").astype(bool)
        if left <= self._rest:
            allowed = next((some for mask in self._ending if (some := allowed & mask).any()), allowed)
        return logits.masked_fill(~torch.from_numpy(allowed).to(logits.device), -torch.inf)

    def take(self, token: int) -> None:
        """The token that was chosen."""
        self._matcher.consume_token(token)


def grammar_of(schema: dict[str, Any]) -> str:
    """The library's grammar of a strict JSON schema."""
    from llguidance import LLMatcher

    lists = {key: node.get("items", {}).get("enum") for key, node in schema.get("properties", {}).items()}
    if lists and all(lists.values()):
        return str(LLMatcher.grammar_from_lark(lists_grammar(lists)))
    loose = {"whitespace_flexible": False, "item_separator": ", ?", "key_separator": ": ?"}
    return str(LLMatcher.grammar_from_json_schema(schema, defaults=loose))


def emptiest(node: Any) -> str:
    """The shortest object of a strict schema, but for its longest words and the parts that it refers to.

    >>> emptiest({"properties": {"note": {"type": "string"}, "sources": {"type": "array"}}})
    '{"note": "", "sources": []}'
    """
    if "properties" in node:
        pairs = (f"{json.dumps(key)}: {emptiest(value)}" for key, value in node["properties"].items())
        return f"{{{', '.join(pairs)}}}"
    if "enum" in node:
        return max(map(json.dumps, node["enum"]), key=len)
    return {"array": "[]", "boolean": "false"}.get(node.get("type", ""), '""')


def lists_grammar(lists: dict[str, Sequence[Any]]) -> str:
    """Lark, as llguidance has it, of an object with a list for each key, of some of the key's values.

    A list's rules come in pairs, one before its first value and one after. A rule's number, the part behind
    `::`, has a bit for each value of its block that stands in the list.
    """
    keys = " /, ?/ ".join(
        f'{json.dumps(json.dumps(key))} /: ?/ "[" first_{place}_0 "]"' for place, key in enumerate(lists)
    )
    rules = [f'start: "{{" {keys} "}}"']
    for place, values in enumerate(lists.values()):
        blocks = [values[at : at + BLOCK] for at in range(0, len(values), BLOCK)]
        for row, block in enumerate(blocks):
            name = f"{place}_{row}"
            words = [json.dumps(json.dumps(value)) for value in block]
            first = [f"{word} more_{name}::{1 << bit:#x}" for bit, word in enumerate(words)]
            more = [
                f"/, ?/ {word} more_{name}::set_bit({bit}) %if bit_clear({bit})"
                for bit, word in enumerate(words)
            ]
            if row + 1 < len(blocks):
                first.append(f"first_{place}_{row + 1}")
                more.append(f"more_{place}_{row + 1}::0x0")
            else:
                first.append('""')
                more.append('""')
            rules.append(f"first_{name}: " + "\n  | ".join(first))
            rules.append(f"more_{name}::_: " + "\n  | ".join(more))
    return "\n".join(rules)
