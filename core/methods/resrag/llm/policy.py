"""The policy of RES-RAG as in the paper.

A language model reads question and chunks, and writes the action. Where not all chunks fit its context, it
reads those that cosine and words rank first, in document order, and is told so. An action larger than the
budget loses the chunks that stand furthest down in their lists.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictInt, WithJsonSchema, create_model

from core.base.config import RESRAG_LLM, EpisodeConfig
from core.base.errors import BadRequest
from core.base.events import Event, Trace
from core.corpus.index import Searchable
from core.encode.encoder import DualEncoder
from core.llm.client import estimated_tokens
from core.llm.prompts import Marks, template
from core.llm.protocol import Llm, LlmError, Message, Sampling, never
from core.methods.hybrid import hybrid_scores
from core.methods.protocol import Method, check, one_look_events
from core.methods.resrag.action import UNREAD, Action, action_of, chunk_ids_of, document_key
from core.methods.resrag.sets import LEAST_CHANCE

CONTEXT_TOKENS = 8_192
"""Of prompt and reply together, unless somebody knows better."""
_REPLY_SHARE = 4
"""At most one token in so many of the context is kept for the reply."""
_AROUND_CHUNK = 10
"""Tokens of the marks around a chunk."""
_MARKS = Marks("chunk", "document", "question")

Shown = Mapping[int, Sequence[int]]
"""By document the numbers of the chunks that are read, both ascending; documents without any left out."""


RESRAG_LLM_METHOD = Method(
    name=RESRAG_LLM,
    label="RES-RAG, language model",
    sentence=(
        "A language model reads question and chunks and writes the smallest set that should answer (RES-RAG"
        " section 3); connect one first"
    ),
    score_name="taken",
)


class LlmEvidenceSet:
    """A `Retriever` that asks a language model once.

    A chunk's score is 1 where it was taken, 0 where it was read and left, UNREAD where it didn't fit.
    """

    name = RESRAG_LLM

    def __init__(
        self, llm: Llm | None, encoder: DualEncoder, *, context_tokens: int = CONTEXT_TOKENS
    ) -> None:
        """llm: None refuses every question. encoder: ranks the chunks where not all fit."""
        self.llm, self.encoder, self.context_tokens = llm, encoder, context_tokens
        self.cancelled: Callable[[], bool] = never
        """Asked again and again while the model is silent; once true, `retrieve` raises LlmCancelled."""

    def retrieve(self, query: str, corpus: Searchable, config: EpisodeConfig) -> Iterator[Event]:
        """See `Retriever`. Raises BadRequest (model unreachable, or no action written), LlmCancelled."""
        query = check(query, corpus, config)
        if self.llm is None:
            raise BadRequest(
                "no language model is connected; connect one, or choose resrag, which needs none"
            )
        config = config.with_(stop_threshold=LEAST_CHANCE)
        started = time.perf_counter()
        task = set_prompt(query, corpus, config, self.encoder, self.context_tokens)
        taken = self._taken(task, corpus, config)
        values = np.full(len(corpus), UNREAD, np.float32)
        values[list(task.read)], values[taken] = 0.0, 1.0
        left = next((chunk_id for chunk_id in task.read if chunk_id not in taken), None)
        if len(taken) == config.step_budget:
            left = None
        yield from one_look_events(
            self.name, self.encoder.spec.name, query, corpus, config, values, taken, started, left
        )

    def _taken(self, task: SetPrompt, corpus: Searchable, config: EpisodeConfig) -> list[int]:
        """Chunk ids in falling relevance, at most the budget."""
        assert self.llm is not None
        sampling = Sampling(max_tokens=self.llm.reply_tokens or task.room, seed=config.seed)
        try:
            reply = self.llm.chat(task.messages, sampling, schema=task.schema, cancelled=self.cancelled)
        except LlmError as error:
            raise BadRequest(str(error)) from error
        assert reply.value is not None  # a schema was asked for
        return taken_by(reply.value, corpus.borders, config.step_budget)


@dataclass(frozen=True)
class SetPrompt:
    """What a language model is asked for one question."""

    read: tuple[int, ...]
    """Chunk ids it is shown, nearest to the question first."""
    messages: tuple[Message, ...]
    schema: type[BaseModel]
    """Of the action."""
    room: int
    """Tokens kept for the reply."""


def set_prompt(
    query: str, corpus: Searchable, config: EpisodeConfig, encoder: DualEncoder, context_tokens: int
) -> SetPrompt:
    """The question as the policy puts it. Raises BadRequest where the context has no room for a chunk."""
    scores, forbidden = hybrid_scores(encoder, query, corpus), {*config.forbidden}
    ranked = [i for i in np.argsort(-scores, kind="stable").tolist() if i not in forbidden]
    bare = messages(query, {}, None, config.step_budget, True)
    fixed = context_tokens // _REPLY_SHARE + estimated_tokens(*(one.content for one in bare))
    read = fitting(ranked, corpus.text, context_tokens - fixed)
    if not read:
        raise BadRequest(
            f"a context of {context_tokens:,} tokens has no room for a single chunk beside the"
            " question; give a longer one, or cut the documents into smaller chunks"
        )
    numbers = action_of(sorted(read), corpus.borders)
    shown = {document: own for document, own in enumerate(numbers) if own}
    return SetPrompt(
        tuple(read),
        tuple(messages(query, shown, corpus, config.step_budget, len(read) < len(ranked))),
        action_schema(shown),
        min(context_tokens // _REPLY_SHARE, 64 + 10 * len(shown) + 6 * len(read)),
    )


def taken_by(reply: BaseModel, borders: np.ndarray, budget: int) -> list[int]:
    """Chunk ids of a reply that fits `action_schema`, which bounds its numbers, as `first_of` gives them."""
    named = reply.model_dump()
    action = tuple(tuple(named.get(document_key(document), ())) for document in range(len(borders) - 1))
    return first_of(action, borders, budget)


def unread(trace: Trace) -> str:
    """That the model read only a part, in a sentence; empty for every other run."""
    seen = trace.scores_at(1)
    if trace.started.method != RESRAG_LLM or seen is None:
        return ""
    n = trace.started.n_chunks - len({*trace.started.config.forbidden})
    n_read = int(np.count_nonzero(seen.q_values != UNREAD))
    if n_read >= n:
        return ""
    return (
        f"the language model read {n_read:,} of {n:,} chunks, those nearest to the question: no more"
        " fit its context; open fewer documents, or raise --llm-context by command"
    )


def fitting(ranked: Sequence[int], text_of: Callable[[int], str], room: int) -> list[int]:
    """The first of ranked chunks whose texts fit `room` tokens together; one that is too long is passed over.

    >>> fitting([2, 0, 1], ["x" * 40, "y" * 4000, "z"].__getitem__, 40)
    [2, 0]
    """
    read = []
    for chunk_id in ranked:
        if room < _AROUND_CHUNK:
            break
        spent = _AROUND_CHUNK + estimated_tokens(text_of(chunk_id))
        if spent <= room:
            read.append(chunk_id)
            room -= spent
    return read


def first_of(action: Action, borders: np.ndarray, budget: int) -> list[int]:
    """Chunk ids of an action, first those at the head of their lists, at most `budget`.

    >>> first_of(((2, 1), (), (1,)), np.array([0, 3, 3, 5]), 2)
    [1, 3]
    """
    places = [place for numbers in action for place in range(len(numbers))]
    ids = chunk_ids_of(action, borders)
    return [ids[at] for at in sorted(range(len(ids)), key=lambda at: places[at])][:budget]


def action_schema(shown: Shown) -> type[BaseModel]:
    """What a reply must look like: every document shown, and of each only numbers shown, none twice."""
    fields: dict[str, Any] = {
        document_key(document): (_list_of(numbers), ...) for document, numbers in shown.items()
    }
    return create_model("Action", __config__=ConfigDict(extra="forbid"), **fields)


def _list_of(numbers: Sequence[int]) -> Any:
    valid = frozenset(numbers)

    def is_shown(number: int) -> int:
        if number not in valid:
            raise ValueError(f"{str(number)[:20]} is the number of no chunk that was shown")
        return number

    one = Annotated[
        StrictInt, AfterValidator(is_shown), WithJsonSchema({"type": "integer", "enum": list(numbers)})
    ]
    return Annotated[list[one], Field(max_length=len(valid)), AfterValidator(_once)]


def _once(numbers: list[int]) -> list[int]:
    if len(set(numbers)) < len(numbers):
        raise ValueError("a chunk stands in the list twice")
    return numbers


def messages(query: str, shown: Shown, corpus: Searchable | None, budget: int, is_cut: bool) -> list[Message]:
    """The conversation. is_cut: not all chunks are shown."""
    cut = "Only the chunks nearest to the question are shown, so numbers are missing between them.\n\n"
    documents = (_document(document, numbers, corpus) for document, numbers in shown.items() if corpus)
    values = {
        "documents": "\n".join(documents),
        "cut": cut if is_cut else "",
        "question": _MARKS.plain(query),
        "keys": ", ".join(map(document_key, shown)),
    }
    most = f"{budget:,} chunk{'s' * (budget > 1)}"
    return [
        Message("system", template(__package__, "system").substitute(budget=most)),
        Message("user", template(__package__, "user").substitute(values).strip()),
    ]


def _document(document: int, numbers: Sequence[int], corpus: Searchable) -> str:
    first = int(corpus.borders[document])
    chunks = "\n".join(_MARKS.quoted("chunk", corpus.text(first + number - 1), number) for number in numbers)
    return f'<document name="{document_key(document)}">\n{chunks}\n</document>'
