"""What a reader says of the evidence of a run.

Evidence is read in document order, and the JSON-LD of the pages (RES-RAG eq. 7) is read where the chunks
alone hold no sure answer: an answer from it cites no chunk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from core.answer.kinds import Asks, unanswered
from core.answer.protocol import Reader, Span, State
from core.base.config import SETS
from core.base.events import Trace
from core.corpus.context import below

Place = tuple[int, int]
"""First character and behind the last, in the text of a chunk."""


@dataclass(frozen=True, slots=True)
class EvidenceAnswer:
    """What was answered from some chunks."""

    text: str
    """The best wording, of whatever state; `told_text` is what a reader is told."""
    confidence: float | None
    """None where nobody measured it, as with language models."""
    by: str
    citations: tuple[int, ...] = ()
    """Chunks that the answer rests on; none for "yes", "no" and an empty answer."""
    place: Place | None = None
    """Where the answer stands in the text of the cited chunk."""
    state: State = "answer"
    passage: int | None = None
    """Chunk in which an answer is likeliest: what is worth reading, whatever the state."""
    nearest: Place | None = None
    """Its likeliest words."""
    asks: Asks | None = None
    """What the question asks for, in the state "passages"."""
    document: int | None = None
    """Document whose JSON-LD the answer stands in; None for an answer from chunks."""

    @property
    def told_text(self) -> str:
        """What is said to be the answer, surely or as a guess; empty in the other states."""
        return self.text if self.state in ("answer", "guess") else ""

    @property
    def shown_chunk(self) -> int | None:
        """The chunk that is worth reading."""
        return self.citations[0] if self.citations else self.passage

    def place_in(self, chunk_id: int) -> Place | None:
        """What is marked in a chunk; None where nothing is."""
        if self.place is not None and self.citations[0] == chunk_id:
            return self.place
        return self.nearest if self.passage == chunk_id else None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `span` is None where no place can be pointed at."""
        span = None
        if self.place is not None:
            span = {"chunk_id": self.citations[0], "start": self.place[0], "end": self.place[1]}
        return {
            "state": self.state,
            "text": self.told_text,
            "confidence": self.confidence,
            "reliable": self.state == "answer",
            "asks": self.asks,
            "by": self.by,
            "citations": list(self.citations),
            "span": span,
            "passage": self.passage,
            "nearest": None if self.nearest is None else list(self.nearest),
            "document": self.document,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any], texts: Mapping[int, str]) -> EvidenceAnswer | None:
        """Inverse of `to_json` for an answer from chunks of these texts, else None: strangers bring logs.

        Older logs have no state and tell a guess by `reliable`.
        """
        span, reliable = values.get("span"), values.get("reliable", True)
        told = "absent" if not values.get("text") else "answer" if reliable else "guess"
        known = {"state": told, "confidence": None, "citations": None, **values}
        try:
            known["place"] = None if span is None else [span["start"], span["end"]]
            answer = _ADAPTER.validate_json(json.dumps(known), strict=True)
            is_first = span is None or answer.citations[:1] == (span["chunk_id"],)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return answer if type(reliable) is bool and is_first and answer._fits(texts) else None

    def _fits(self, texts: Mapping[int, str]) -> bool:
        """Whether it may have been read off chunks of these texts."""
        cited = texts.get(self.citations[0], "") if self.citations else ""
        nearest_in = "" if self.passage is None else texts.get(self.passage, "")
        named = {*self.citations} if self.passage is None else {*self.citations, self.passage}
        return (
            (self.confidence is None or 0 <= self.confidence <= 1)
            and texts.keys() >= named
            and (self.document is None or (self.document >= 0 and not self.citations))
            and bool(self.text) == (self.state in ("answer", "guess"))
            and (self.asks is None) == (self.state != "passages")
            and (self.place is None or (_is_in(self.place, cited) and cited[slice(*self.place)] == self.text))
            and (self.nearest is None or _is_in(self.nearest, nearest_in))
        )


_ADAPTER = TypeAdapter(EvidenceAnswer)


def _is_in(place: Place, text: str) -> bool:
    return 0 <= place[0] < place[1] <= len(text)


def found_order(trace: Trace) -> tuple[int, ...]:
    """Chunk ids of a run in the order in which they were found; none for a set of RES-RAG."""
    return () if trace.started.method in SETS else trace.picks


def answer_evidence(
    reader: Reader,
    questions: Sequence[str],
    evidence: Sequence[Mapping[int, str]],
    found: Sequence[Sequence[int]] = (),
    metadata: Sequence[Sequence[str]] = (),
    contexts: Sequence[Mapping[int, str]] = (),
) -> list[EvidenceAnswer]:
    """An answer to each question from its chunks, texts by chunk id. `found`: by question these ids in the
    order in which they were found, nothing where they have none. `metadata`: by question the JSON-LD of each
    document as text, empty where a document has none; nothing where it isn't to be read. `contexts`: by
    question what the chunks stand under (`core.corpus.context`), which is read before each; an answer in it
    cites the chunk and has no place.
    """
    nothing: Sequence[Mapping[int, str]] = [{}] * len(questions)
    answers = _from_chunks(reader, questions, evidence, found or [()] * len(questions), contexts or nothing)
    unsure = [at for at, answer in enumerate(answers) if answer.state != "answer" and at < len(metadata)]
    again = [at for at in unsure if any(metadata[at])]
    read = reader.read_many([questions[at] for at in again], [metadata[at] for at in again]) if again else []
    for at, answer in zip(again, read, strict=True):
        if answer.state == "answer" and answer.span is not None:
            answers[at] = EvidenceAnswer(
                answer.text, round(answer.confidence, 4), reader.name, document=answer.span.passage
            )
    return answers


def _from_chunks(
    reader: Reader,
    questions: Sequence[str],
    evidence: Sequence[Mapping[int, str]],
    found: Sequence[Sequence[int]],
    contexts: Sequence[Mapping[int, str]],
) -> list[EvidenceAnswer]:
    chunk_ids = [sorted(texts) for texts in evidence]
    passages = [
        [below(above.get(chunk_id, ""), texts[chunk_id]) for chunk_id in ids]
        for ids, texts, above in zip(chunk_ids, evidence, contexts, strict=True)
    ]
    ranks = [
        [order.index(chunk_id) for chunk_id in ids] if order else []
        for ids, order in zip(chunk_ids, found, strict=True)
    ]
    read = reader.read_many(questions, passages, ranks)
    answers = []
    for question, ids, above, answer in zip(questions, chunk_ids, contexts, read, strict=True):
        no_words = answer.state in ("absent", "unsure")
        is_read = answer.likeliest is not None
        asks = unanswered(question, answer.text, is_absent=no_words) if is_read else None
        cited, place = _stands(None if asks or no_words else answer.span, ids, above)
        passage, nearest = _stands(answer.likeliest, ids, above)
        confidence = round(answer.confidence, 4)
        citations = () if cited is None else (cited,)
        state: State = "passages" if asks else answer.state
        told = EvidenceAnswer(
            answer.text, confidence, reader.name, citations, place, state, passage, nearest, asks
        )
        answers.append(told)
    return answers


def _stands(
    span: Span | None, chunk_ids: Sequence[int], contexts: Mapping[int, str]
) -> tuple[int | None, Place | None]:
    """The chunk of a span and its place there; no place where it begins in what was read before the chunk."""
    if span is None:
        return None, None
    chunk_id = chunk_ids[span.passage]
    shift = len(below(contexts.get(chunk_id, ""), ""))
    if span.start < shift:
        return chunk_id, None
    return chunk_id, (span.start - shift, span.end - shift)
