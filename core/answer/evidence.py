"""An answer from chunks.

What a reader says of the evidence of a run, with the place in its chunk, as log, page and command line hold
it. Evidence is read in document order, and the JSON-LD of the pages (RES-RAG eq. 7) is read where the chunks
alone hold no sure answer: an answer from it cites no chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

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
    """Name of who answered."""
    citations: tuple[int, ...] = ()
    """Chunks that the answer rests on; none for "yes", "no" and an empty answer."""
    place: Place | None = None
    """Where the answer stands in the text of the cited chunk."""
    state: State = "answer"
    """What a reader is told."""
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
        span = (
            None
            if self.place is None
            else {"chunk_id": self.citations[0], "start": self.place[0], "end": self.place[1]}
        )
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
        passage, nearest, asks, document = (
            values.get(name) for name in ("passage", "nearest", "asks", "document")
        )
        state = _state_from(values, text)
        if state is None or not (passage is None or (type(passage) is int and passage in texts)):
            return None
        if not (document is None or (type(document) is int and document >= 0 and not cited)):
            return None
        if (asks in get_args(Asks)) != (state == "passages"):
            return None
        if nearest is not None:
            nearest = None if passage is None else _place_from(nearest, texts[passage])
            if nearest is None:
                return None
        place = None
        if span is not None:
            if not isinstance(span, dict) or span.get("chunk_id") not in cited[:1]:
                return None
            place = _place_from([span.get("start"), span.get("end")], texts[cited[0]])
            if place is None or texts[cited[0]][slice(*place)] != text or document is not None:
                return None
        return cls(text, sure, by, tuple(cited), place, state, passage, nearest, asks, document)


def _state_from(values: Mapping[str, Any], text: str) -> State | None:
    """The state that somebody wrote down; None where it does not fit the text."""
    reliable = values.get("reliable", True)
    if type(reliable) is not bool:
        return None
    told: State = "absent" if not text else "answer" if reliable else "guess"
    state = values.get("state", told)
    if state not in get_args(State) or bool(text) != (state in ("answer", "guess")):
        return None
    return cast(State, state)


def _place_from(value: Any, text: str) -> Place | None:
    """A place in a text that somebody wrote down."""
    if not isinstance(value, list) or len(value) != 2 or not all(type(at) is int for at in value):
        return None
    start, end = value
    return (start, end) if 0 <= start < end <= len(text) else None


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
    answers = []
    for question, ids, above, answer in zip(
        questions, chunk_ids, contexts, reader.read_many(questions, passages, ranks), strict=True
    ):
        span, likeliest = answer.span, answer.likeliest
        no_words = answer.state in ("absent", "unsure")
        asks = unanswered(question, answer.text, is_absent=no_words) if likeliest is not None else None
        is_told = asks is None and not no_words
        answers.append(
            EvidenceAnswer(
                answer.text,
                round(answer.confidence, 4),
                reader.name,
                (ids[span.passage],) if span is not None and is_told else (),
                _place(span, ids, above) if span is not None and is_told else None,
                "passages" if asks is not None else answer.state,
                None if likeliest is None else ids[likeliest.passage],
                None if likeliest is None else _place(likeliest, ids, above),
                asks,
            )
        )
    return answers


def _place(span: Span, chunk_ids: Sequence[int], contexts: Mapping[int, str]) -> Place | None:
    """Where a span stands in the chunk itself; None where it begins in what was read before it."""
    shift = len(below(contexts.get(chunk_ids[span.passage], ""), ""))
    return (span.start - shift, span.end - shift) if span.start >= shift else None
