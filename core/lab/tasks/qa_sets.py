"""Readers of question-answering sets whose support is known.

    *.jsonl     a record a line, ours ({"question", "chunks", "support"}) or MuSiQue's ({"question",
                "paragraphs"})
    *.json      one list in HotpotQA's format, which 2WikiMultiHopQA shares ({"question", "context",
                "supporting_facts"})
    a folder    BEIR: corpus.jsonl, queries.jsonl and qrels/<part>.tsv (or TREC's four columns)

All but the last may be gzipped. A chunk is "title: text", since a paragraph often leaves its subject's name
to its title; without a title it is the text alone. A paragraph that stands twice in a record is kept once.
The files are other people's: whatever is wrong with one becomes a sentence that names file and line.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from core.base.config import check_query
from core.base.errors import BadRequest
from core.corpus.bm25 import WordIndex
from core.corpus.words import words_of
from core.lab.tasks.data import data_folder, is_text, json_lines
from core.lab.tasks.example import Example
from core.lab.tasks.own_questions import checked_support

FOLDERS = {
    "hotpotqa": "hotpotqa",
    "musique": "musique",
    "2wiki": "2wikimultihopqa",
    "nq": "nq_gold",
    "squad": "squad_v11_part",
    "clapnq": "clapnq_dev",
    "hybridqa": "hybridqa",
}
"""Sets by the name of their task, and their folders among the data sets."""

MAX_FILE_BYTES = 2 * 1024**3
"""Largest file, unpacked: HotpotQA's training file and a million passages of BEIR have 0.6 GB."""
MAX_LINE_BYTES = 16 * 1024 * 1024
"""Longest record of a JSONL file."""
MAX_CORPUS = 500_000
"""Most passages of a BEIR corpus: ten million tokens have fewer."""

_WORD = re.compile(r"\w+")


def read_qa(source: str | Path, part: str = "eval", data: Path | None = None) -> list[Example]:
    """A set by name (`hotpotqa`, ...; file `<part>.jsonl.gz` of its folder), or a file or BEIR folder by
    path.

    Raises BadRequest when there is no such set or file, or it isn't in one of the formats.
    """
    if str(source) in FOLDERS:
        task, path = str(source), data_folder(data) / FOLDERS[str(source)] / f"{part}.jsonl.gz"
    else:
        path = Path(source)
        task = path.name.partition(".")[0]
    if not path.exists():
        raise BadRequest(
            f"{source} ({part}) is neither a file nor one of {', '.join(FOLDERS)}; there is no {path}"
        )
    examples = read_beir(path, part) if path.is_dir() else list(_file(path, task))
    if not examples:
        raise BadRequest(f"{path.name} holds no question; choose another file")
    return examples


def _file(path: Path, task: str) -> Iterator[Example]:
    match path.name.removesuffix(".gz").rpartition(".")[2]:
        case "json":
            return _hotpotqa(path, task)
        case "jsonl":
            return _json_lines(path, task)
        case suffix:
            raise BadRequest(
                f"{path.name} ends in .{suffix}; question sets are read from .json, .jsonl or a BEIR folder"
            )


def chunk_text(title: str, text: str) -> str:
    """How a paragraph is given to an encoder.

    >>> chunk_text("Scheria", "A region in Greek mythology."), chunk_text("", "A region.")
    ('Scheria: A region in Greek mythology.', 'A region.')
    """
    return f"{title.strip()}: {text.strip()}" if title.strip() else text.strip()


def _json_lines(path: Path, task: str) -> Iterator[Example]:
    for where, record in json_lines(path, max_bytes=MAX_FILE_BYTES, max_line_bytes=MAX_LINE_BYTES):
        if "paragraphs" not in record:
            yield _common(record, where, task)
        elif record.get("answerable", True):  # MuSiQue-Full has questions without support, too
            yield _musique(record, where, task)


def _common(record: Mapping[str, Any], where: str, task: str) -> Example:
    given = _list(record, "chunks", where)
    chunks = [_paragraph(chunk, "title", "text", where) for chunk in given]
    support = checked_support(record.get("support"), len(chunks), where)
    answers, hops = _answers(record.get("answer")), record.get("hops")
    kind = record.get("type") or (f"{hops} hops" if isinstance(hops, int) else "")
    return _example(record, where, task, chunks, support, answers, kind)


def _musique(record: Mapping[str, Any], where: str, task: str) -> Example:
    paragraphs = _list(record, "paragraphs", where)
    chunks = [_paragraph(paragraph, "title", "paragraph_text", where) for paragraph in paragraphs]
    support = [
        row
        for row, paragraph in enumerate(paragraphs)
        if isinstance(paragraph, dict) and paragraph.get("is_supporting")
    ]
    answers = _answers(record.get("answer")) + _answers(record.get("answer_aliases"))
    hops = str(record.get("id", "")).partition("hop")[0]
    return _example(
        record,
        where,
        task,
        chunks,
        checked_support(support, len(chunks), where),
        answers,
        f"{hops} hops" if hops.isdigit() else "",
    )


def _hotpotqa(path: Path, task: str) -> Iterator[Example]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
        if len(text) > MAX_FILE_BYTES:
            raise BadRequest(
                f"{path.name} has more than {MAX_FILE_BYTES:,} bytes; split it and read the parts"
            )
        records = json.loads(text)
    except (OSError, EOFError) as error:
        raise BadRequest(f"{path} can't be read ({error}); fetch it again") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadRequest):
            raise
        raise BadRequest(f"{path.name} is no JSON ({error}); fetch it again") from None
    if not isinstance(records, list):
        raise BadRequest(
            f"{path.name} holds no list of questions; fetch HotpotQA or 2WikiMultiHopQA in the original"
            " format"
        )
    for number, record in enumerate(records, start=1):
        where = f"{path.name} question {number}"
        if not isinstance(record, dict):
            raise BadRequest(f"{where} is no object; fetch the file again")
        try:
            chunks = [
                _paragraph({"title": title, "text": "".join(sentences)}, "title", "text", where)
                for title, sentences in _list(record, "context", where)
            ]
            gold = {title for title, _ in _list(record, "supporting_facts", where)}
            support = [row for row, (title, _) in enumerate(record["context"]) if title in gold]
        except (TypeError, ValueError, AttributeError) as error:
            if isinstance(error, BadRequest):
                raise
            raise BadRequest(
                f"{where}: context must be pairs of a title and sentences, supporting_facts pairs of a title"
                " and a number"
            ) from None
        if len({record["context"][row][0] for row in support}) < len(gold):
            raise BadRequest(f"{where} lacks a paragraph that supports it; take the set's distractor setting")
        yield _example(
            record,
            where,
            task,
            chunks,
            checked_support(support, len(chunks), where),
            _answers(record.get("answer")),
            record.get("type", ""),
        )


def read_beir(folder: Path, part: str = "test") -> list[Example]:
    """The judged queries of a BEIR folder over its whole corpus, which all examples share; support are the
    passages judged above 0.

    Judgements may also be TREC's: four columns without a header. Raises BadRequest naming file and line.
    """
    rows: dict[str, int] = {}
    chunks: list[str] = []
    for where, record in _lines_of(folder, "corpus.jsonl"):
        if len(chunks) == MAX_CORPUS:
            raise BadRequest(
                f"the corpus of {folder.name} has more than {MAX_CORPUS:,} passages; take a part of it"
            )
        rows[_text(record, "_id", where)] = len(chunks)
        chunks.append(chunk_text(_text(record, "title", where, default=""), _text(record, "text", where)))
    queries = {
        _text(record, "_id", where): _question(record, "text", where)
        for where, record in _lines_of(folder, "queries.jsonl")
    }
    path = next(
        (path for name in (f"{part}.tsv", f"{part}.txt") if (path := folder / "qrels" / name).is_file()), None
    )
    if path is None:
        raise BadRequest(f"{folder} has no qrels/{part}.tsv; choose another part")
    judged: dict[str, set[int]] = {}
    for where, query, passage in _qrels(path):
        if query not in queries or passage not in rows:
            raise BadRequest(
                f"{where} judges query {query!r} and passage {passage!r}, of which one is missing; fetch the"
                " set again"
            )
        judged.setdefault(query, set()).add(rows[passage])
    shared = tuple(chunks)
    return [
        Example(query, folder.name, queries[query], shared, tuple(sorted(support)))
        for query, support in judged.items()
    ]


def _lines_of(folder: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    path = folder / name
    return json_lines(
        path if path.exists() else folder / f"{name}.gz",
        max_bytes=MAX_FILE_BYTES,
        max_line_bytes=MAX_LINE_BYTES,
    )


def _qrels(path: Path) -> Iterator[tuple[str, str, str]]:
    """(where, query, passage) of each judgement above 0."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            fields = line.split()
            if not fields or fields[-1] == "score":
                continue
            if len(fields) not in (3, 4) or not fields[-1].lstrip("-").isdigit():
                raise BadRequest(
                    f"{path.name} line {number} must have three columns (query, passage, score) or TREC's"
                    " four; put it right"
                )
            if int(fields[-1]) > 0:
                yield f"{path.name} line {number}", fields[0], fields[-2]


def _example(
    record: Mapping[str, Any],
    where: str,
    task: str,
    chunks: Sequence[str],
    support: Iterable[int],
    answers: tuple[str, ...],
    kind: object,
) -> Example:
    """The checked example, repeated paragraphs kept once."""
    question = _question(record, "question", where)
    first = {text: row for row, text in enumerate(dict.fromkeys(chunks))}
    gold = tuple(sorted({first[chunks[row]] for row in support}))
    example_id = str(record.get("id") or record.get("_id") or where)
    return Example(
        example_id, task, question, tuple(first), gold, answers, kind if isinstance(kind, str) else ""
    )


def _question(record: Mapping[str, Any], name: str, where: str) -> str:
    text = _text(record, name, where)
    try:
        return check_query(text)
    except BadRequest as error:
        raise BadRequest(f"{where}: {error}") from None


def _paragraph(value: object, title: str, text: str, where: str) -> str:
    if isinstance(value, str):
        value = {text: value}
    if not isinstance(value, dict):
        raise BadRequest(f"{where} has a paragraph that is neither a text nor an object; put it right")
    return chunk_text(_text(value, title, where, default=""), _text(value, text, where))


def _list(record: Mapping[str, Any], name: str, where: str) -> list[Any]:
    value = record.get(name)
    if not isinstance(value, list) or not value:
        raise BadRequest(f'{where} needs "{name}", a list that isn\'t empty; put it right')
    return value


def _text(record: Mapping[str, Any], name: str, where: str, default: str | None = None) -> str:
    value = record.get(name, default)
    if not isinstance(value, str) or not is_text(value):
        raise BadRequest(f'{where} needs "{name}", a text without halves of characters; put it right')
    return value


def _answers(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list):
        return tuple(text for text in value if isinstance(text, str))
    return ()


class DistractorPool:
    """Paragraphs of many questions, to borrow from what looks like one's own: harder than one's own ten."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self.texts = list(dict.fromkeys(text for example in examples for text in example.chunks))
        self._lowered = [text.casefold() for text in self.texts]
        self._titles = [_title(text) for text in self.texts]
        self._index = WordIndex(self.texts)

    def extend(self, example: Example, n: int, rng: Random, hard_share: float = 0.5) -> Example:
        """The example with up to n more paragraphs, all in random order: a share of them the lexically
        closest to the question, the rest random.

        Never one that stands in the example already, has the title of one of its support paragraphs, or holds
        an accepted answer: any of these might support the question unlabelled.
        """
        near = self._near(example)
        hard = [row for row in near[: 4 * n] if self._is_foreign(row, example)]
        rng.shuffle(hard)
        taken = dict.fromkeys(hard[: round(n * hard_share)])
        for row in rng.sample(range(len(self.texts)), min(len(self.texts), 4 * n)):
            if len(taken) == n:
                break
            if row not in taken and self._is_foreign(row, example):
                taken[row] = None
        texts = [*enumerate(example.chunks), *((-1, self.texts[row]) for row in taken)]
        rng.shuffle(texts)
        support = tuple(now for now, (was, _) in enumerate(texts) if was in example.support)
        return replace(example, chunks=tuple(text for _, text in texts), support=support)

    def _near(self, example: Example) -> list[int]:
        """Rows by falling BM25 score, those that share no word left out."""
        scores = self._index.scores(words_of(example.question))
        rows = np.argsort(-scores, kind="stable")
        near: list[int] = rows[scores[rows] > 0].tolist()
        return near

    def _is_foreign(self, row: int, example: Example) -> bool:
        answers = [answer.casefold() for answer in example.answers if answer.casefold() not in ("yes", "no")]
        gold_titles = {_title(example.chunks[chunk_id]) for chunk_id in example.support} - {""}
        return (
            self.texts[row] not in example.chunks
            and self._titles[row] not in gold_titles
            and not any(answer and answer in self._lowered[row] for answer in answers)
        )


def _title(text: str) -> str:
    """The title that `chunk_text` put before a text; "" where there is none."""
    title, colon, _ = text.partition(": ")
    return title.casefold() if colon else ""
