"""An answer from chunks.

What a reader says of the evidence of a run, with the place in its chunk, as log, page and command line hold
it. Evidence is read in document order, and the JSON-LD of the pages (RES-RAG eq. 7) is read where the chunks
alone hold no reliable answer: an answer from it cites no chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.answer.protocol import Reader, Span
from core.base.config import SETS
from core.base.events import Trace
from core.corpus.context import below


@dataclass(frozen=True, slots=True)
class EvidenceAnswer:
    """What was answered from some chunks."""

    text: str
    """Empty when the evidence holds no answer."""
    confidence: float | None
    """None where nobody measured it, as with language models."""
    by: str
    """Name of who answered."""
    citations: tuple[int, ...] = ()
    """Chunks that the answer rests on; none for "yes", "no" and an empty answer."""
    place: tuple[int, int] | None = None
    """Where the answer stands in the text of the cited chunk."""
    reliable: bool = True
    """Whether its confidence reaches what the reader asks for."""
    passage: int | None = None
    """Chunk in which an answer is likeliest: what is worth reading where the answer isn't reliable."""
    document: int | None = None
    """Document whose JSON-LD the answer stands in; None for an answer from chunks."""

    @property
    def reliable_text(self) -> str:
        """What a reader is told: empty without an answer that is reliable."""
        return self.text if self.reliable else ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `span` is None where no place can be pointed at."""
        span = (
            None
            if self.place is None
            else {"chunk_id": self.citations[0], "start": self.place[0], "end": self.place[1]}
        )
        return {
            "text": self.text,
            "confidence": self.confidence,
            "reliable": self.reliable,
            "by": self.by,
            "citations": list(self.citations),
            "span": span,
            "passage": self.passage,
            "document": self.document,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any], texts: Mapping[int, str]) -> EvidenceAnswer | None:
        """Inverse of `to_json` for an answer from chunks of these texts, else None: strangers bring logs."""
        text, confidence, by, cited, span = (
            values.get(name) for name in ("text", "confidence", "by", "citations", "span")
        )
        measured = isinstance(confidence, int | float) and 0 <= confidence <= 1
        if not isinstance(text, str) or not isinstance(by, str) or not (measured or confidence is None):
            return None
        sure = None if confidence is None else float(confidence)
        if not isinstance(cited, list) or not all(
            type(chunk_id) is int and chunk_id in texts for chunk_id in cited
        ):
            return None
        reliable, passage, document = (
            values.get("reliable", True),
            values.get("passage"),
            values.get("document"),
        )
        if type(reliable) is not bool or not (passage is None or (type(passage) is int and passage in texts)):
            return None
        if not (document is None or (type(document) is int and document >= 0 and not cited)):
            return None
        if span is None:
            return cls(text, sure, by, tuple(cited), reliable=reliable, passage=passage, document=document)
        if not isinstance(span, dict) or span.get("chunk_id") not in cited[:1]:
            return None
        start, end = span.get("start"), span.get("end")
        if type(start) is not int or type(end) is not int or start < 0 or texts[cited[0]][start:end] != text:
            return None
        return cls(text, sure, by, tuple(cited), (start, end), reliable, passage)


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
    unsure = [at for at, answer in enumerate(answers) if not answer.reliable_text and at < len(metadata)]
    again = [at for at in unsure if any(metadata[at])]
    read = reader.read_many([questions[at] for at in again], [metadata[at] for at in again]) if again else []
    for at, answer in zip(again, read, strict=True):
        if answer.text and answer.reliable and answer.span is not None:
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
    answers = []
    for ids, above, answer in zip(
        chunk_ids, contexts, reader.read_many(questions, passages, ranks), strict=True
    ):
        place: tuple[int, int] | None = None
        citations: tuple[int, ...] = ()
        if answer.span is not None:
            citations = (ids[answer.span.passage],)
            place = _place(answer.span, above.get(citations[0], ""))
        passage = None if answer.passage is None else ids[answer.passage]
        answers.append(
            EvidenceAnswer(
                answer.text,
                round(answer.confidence, 4),
                reader.name,
                citations,
                place,
                answer.reliable,
                passage,
            )
        )
    return answers


def _place(span: Span, above: str) -> tuple[int, int] | None:
    """Where an answer stands in the chunk itself; None where it begins in what was read before it."""
    shift = len(below(above, ""))
    return (span.start - shift, span.end - shift) if span.start >= shift else None
