"""Questions about whole documents, with word-for-word quotes as proof.

A quote is looked for by its letters and digits alone, case ignored: line breaks, markup and blanks differ
between converters. Labels are places in the text, so any way of cutting it and any method can be scored.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from os.path import isfile  # no for a name that is too long, where pathlib raises
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Protocol, get_args

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from core.base.config import ChunkConfig
from core.base.errors import BadDocument, BadRequest
from core.base.rows import grouped
from core.base.types import Document, Workspace
from core.ingest import MAX_FILE_BYTES, Tokenizer, chunk_document, default_chunker, read_document
from core.lab.tasks.data import checked_question, is_text, json_lines, read_bytes

QuestionKind = Literal["single", "bridge", "comparison", "temporal", "table", "unanswerable"]
KINDS: tuple[QuestionKind, ...] = get_args(QuestionKind)
MAX_QUESTIONS_BYTES = 256 * 1024 * 1024
MAX_LINE_BYTES = 1024 * 1024
MAX_QUOTES = 32
"""Of one question."""
ENDINGS = ("", ".txt", ".md", ".html")
"""What may stand behind a document's name in its folder, and .gz behind that."""
PLACES = "documents.tsv"
"""Names of documents and their paths below the folder, where they don't lie there under their names."""
MOST_BEHIND = 100
"""Characters by which a passage is made longer to stand once."""
CHUNK_TOKENS = 220
"""Of a chunk of a whole document, as the agents that ship read it."""
_SHOWN = 70
"""Characters of a quote in an error."""

TextPlace = tuple[int, int]
"""(first character, behind the last) of a document's text."""


@dataclass(frozen=True, slots=True)
class MarkedPassage:
    """A reader's mark as it stands in a file of questions, see `core.runs.log.marks.Mark`."""

    start: Annotated[int, Field(ge=0)]
    end: int
    quote: Annotated[str, Field(min_length=1)]
    belongs: bool

    def stands_in(self, text: str) -> bool:
        """The text has the passage at this place."""
        return self.end - self.start == len(self.quote) and text.startswith(self.quote, self.start)


@dataclass(frozen=True)
class DocumentQuestion:
    """One question about one whole document."""

    id: str
    document: str
    kind: QuestionKind
    question: str
    answers: tuple[str, ...]
    """Each of them is accepted; none where nobody knows."""
    quotes: tuple[str, ...]
    """In the order of reasoning; none for "unanswerable"."""
    marks: tuple[MarkedPassage, ...] = ()
    """Those that a reader made: each quote is one that belongs, longer where that stands more than once."""

    def marks_in(self, text: str) -> tuple[MarkedPassage, ...]:
        """The marks that stand in a text; none unless all quotes are among them."""
        marks = tuple(mark for mark in self.marks if mark.stands_in(text))
        belonging = [mark.quote for mark in marks if mark.belongs]
        same = len(belonging) == len(self.quotes) and all(map(str.startswith, self.quotes, belonging))
        return marks if same else ()


_MARKS: TypeAdapter[tuple[MarkedPassage, ...]] = TypeAdapter(
    Annotated[tuple[MarkedPassage, ...], Field(max_length=MAX_QUOTES)]
)


def read_document_questions(path: Path) -> list[DocumentQuestion]:
    """All questions of JSON lines, plain or gzipped. Raises BadRequest for the first bad line."""
    questions: list[DocumentQuestion] = []
    ids: set[str] = set()
    for where, record in json_lines(path, max_bytes=MAX_QUESTIONS_BYTES, max_line_bytes=MAX_LINE_BYTES):
        question = _question(record, where)
        if question.id in ids:
            raise BadRequest(f"{where}: the id {question.id!r} stands twice; give each question its own")
        ids.add(question.id)
        questions.append(question)
    if not questions:
        raise BadRequest(
            f'{path.name} has no questions; write lines {{"id", "document", "kind", "question", "answer",'
            ' "support"}'
        )
    return questions


def _question(record: dict[str, Any], where: str) -> DocumentQuestion:
    for name in ("id", "document", "question"):
        if not is_text(record.get(name)) or not record[name].strip():
            raise BadRequest(f'{where} has no "{name}" with a text; add one')
    kind, quotes, answers = record.get("kind"), record.get("support"), record.get("answer")
    if kind not in KINDS:
        raise BadRequest(f'{where}: "kind" is {str(kind)[:_SHOWN]!r}; choose among {", ".join(KINDS)}')
    if not isinstance(quotes, list) or not all(is_text(quote) and _letters(quote) for quote in quotes):
        raise BadRequest(f'{where} needs "support", a list of quotes with letters or digits; put it right')
    if (kind == "unanswerable") == bool(quotes) or len(quotes) > MAX_QUOTES:
        bounds = "none" if kind == "unanswerable" else f"1 to {MAX_QUOTES}"
        raise BadRequest(
            f'{where} has {len(quotes)} quotes in "support", and a question of kind {kind} has {bounds}; put'
            " it right"
        )
    accepted = [answers] if isinstance(answers, str) else answers if isinstance(answers, list) else []
    if not all(is_text(answer) for answer in accepted):
        raise BadRequest(f'{where}: "answer" must be a text or a list of texts; put it right')
    question = checked_question(record["question"], where)
    try:
        marks = _MARKS.validate_python(record.get("marks", ()))
    except ValidationError:
        raise BadRequest(
            f'{where}: "marks" must be a list of at most {MAX_QUOTES} {{"start", "end", "quote", "belongs"}};'
            " put it right or leave it out"
        ) from None
    non_empty = tuple(answer for answer in accepted if answer.strip())
    return DocumentQuestion(record["id"], record["document"], kind, question, non_empty, tuple(quotes), marks)


class QuoteFinder:
    """The letters and digits of a text, with their places."""

    def __init__(self, text: str, name: str) -> None:
        """`name`: of the document, for errors."""
        self.name, self.text = name, text
        places = np.fromiter((i for i, character in enumerate(text) if character.isalnum()), dtype=np.int64)
        small = [text[i].lower() for i in places]
        self._letters = "".join(small)
        if len(self._letters) > len(small):  # a few letters become two in lower case
            places = np.repeat(places, [len(letters) for letters in small])
        self._places = places

    def find(self, quote: str) -> TextPlace:
        """Where the quote stands. Raises BadRequest, which names it, unless it stands exactly once."""
        letters = _letters(quote)
        at = self._letters.find(letters) if letters else -1
        again = self._letters.find(letters, at + len(letters)) if at >= 0 else -1
        if at < 0 or again >= 0:
            short = quote if len(quote) <= _SHOWN else f"{quote[: _SHOWN - 1]}…"
            often = "does not stand" if at < 0 else "stands more than once"
            raise BadRequest(
                f"the quote {short!r} {often} in {self.name}; quote a passage that stands there exactly once,"
                " word for word"
            )
        return int(self._places[at]), int(self._places[at + len(letters) - 1]) + 1


def _letters(text: str) -> str:
    """What of a text is compared. Letter by letter, so that a letter has one form wherever it stands."""
    return "".join(character.lower() for character in text if character.isalnum())


def places_of(question: DocumentQuestion, finder: QuoteFinder) -> tuple[TextPlace, ...]:
    """Where quotes stand, as they were marked, else found. Raises BadRequest, naming the question."""
    if marks := question.marks_in(finder.text):
        return tuple((mark.start, mark.end) for mark in marks if mark.belongs)
    try:
        return tuple(map(finder.find, question.quotes))
    except BadRequest as error:
        raise BadRequest(f"question {question.id}: {error}") from None


def placed(
    questions: Iterable[DocumentQuestion],
    text: str,
    name: str,
    on_fault: Callable[[BadRequest], None] = lambda _: None,
) -> list[tuple[DocumentQuestion, tuple[TextPlace, ...]]]:
    """Questions whose quotes stand exactly once in the named document, and where; `on_fault`: the others."""
    finder = QuoteFinder(text, name)
    there = []
    for question in questions:
        try:
            there.append((question, places_of(question, finder)))
        except BadRequest as fault:
            on_fault(fault)
    return there


def by_document(questions: Iterable[DocumentQuestion]) -> dict[str, list[DocumentQuestion]]:
    """The questions of each document, in the order in which they name them."""
    groups = grouped(questions, lambda question: question.document)
    return {own[0].document: [*own] for own in groups}


def cut_whole(documents: Sequence[Document], tokenizer: Tokenizer) -> Workspace:
    """Documents in chunks of CHUNK_TOKENS, each cut as its kind is."""
    tables = []
    for document in documents:
        config = ChunkConfig(chunker=default_chunker(document.kind), max_tokens=CHUNK_TOKENS)
        tables.append(chunk_document(document, config, tokenizer))
    return Workspace(tuple(documents), tuple(tables))


def standing_once(text: str, start: int, end: int, finder: QuoteFinder) -> str:
    """A passage, longer by at most MOST_BEHIND characters where it takes them to stand once."""
    for longer in range(end, min(end + MOST_BEHIND, len(text)) + 1):
        with suppress(BadRequest):
            finder.find(text[start:longer])
            return text[start:longer]
    return text[start:end]


class Documents(Protocol):
    """Documents by name."""

    def read(self, name: str) -> Document:
        """Raises BadRequest when it isn't there, BadDocument when it can't be read."""
        ...


class DocumentFolder:
    """Documents by name: files of a folder, under their names or where a `documents.tsv` says."""

    def __init__(self, folder: Path, questions: Path) -> None:
        """`documents.tsv` may lie in the folder, in its `natural`, or beside the questions. Raises
        BadRequest.
        """
        if not folder.is_dir():
            raise BadRequest(f"{folder} is no folder; name the one that holds the documents")
        self.folder = folder
        tables = [place / PLACES for place in (folder, folder / "natural", questions.parent)]
        self._paths = next((_read_places(table) for table in tables if table.is_file()), {})

    def read(self, name: str) -> Document:
        """The bounds on reading are for this one alone. Raises BadRequest, BadDocument."""
        path, part = self._find(name)
        data = _read_part(path, part) if part else read_bytes(path, MAX_FILE_BYTES, BadDocument)
        return read_document(data, name if part else path.name.removesuffix(".gz"))

    def _find(self, name: str) -> tuple[Path, str]:
        """(file, id of the record in it that is the document, if it holds several)."""
        for ending, packed in product(ENDINGS, ("", ".gz")):
            path = self._below(f"{name}{ending}{packed}")
            if isfile(path):
                return path, ""
        if name not in self._paths:
            raise BadRequest(
                f"document {name!r} is not in {self.folder}; put it there as {name} or {name}.txt, or name"
                f" its path in {PLACES}"
            )
        place, _, part = self._paths[name].partition("#")
        return self._below(place), part

    def _below(self, place: str) -> Path:
        """Names come from a file that a stranger may have made."""
        parts = PurePosixPath(place.replace("\\", "/"))
        if not parts.is_absolute() and ".." not in parts.parts:
            return self.folder / parts
        raise BadRequest(
            f"document {place!r} lies outside of {self.folder}; name documents by paths below it"
        )


def each_document(
    questions: Iterable[DocumentQuestion], documents: Documents, tokenizer: Tokenizer
) -> Iterator[tuple[Workspace, list[tuple[DocumentQuestion, tuple[TextPlace, ...]]]]]:
    """A document's chunks, and its questions whose quotes stand there once, with places. Raises BadRequest,
    BadDocument.
    """
    for name, own in by_document(questions).items():
        document = documents.read(name)
        yield cut_whole([document], tokenizer), placed(own, document.text, name)


def _read_places(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter="\t"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadRequest(
            f"{path} can't be read ({error}); write a line NAME, tab, PATH a document"
        ) from error
    return {row[0]: row[1] for row in rows if len(row) >= 2}


def _read_part(path: Path, part: str) -> bytes:
    """The text of one record of a file of JSON lines."""
    for _, record in json_lines(path, max_bytes=MAX_QUESTIONS_BYTES, max_line_bytes=MAX_FILE_BYTES):
        if record.get("id") == part and is_text(record.get("text")):
            return str(record["text"]).encode()
    raise BadDocument(f"{path.name} holds no text with the id {part!r}; correct {PLACES}")
