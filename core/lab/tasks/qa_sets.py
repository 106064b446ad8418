"""Readers of question-answering sets whose support is known.

    *.jsonl     a record a line, ours ({"question", "chunks", "support"}) or MuSiQue's ({"question",
                "paragraphs"})
    *.json      one list in HotpotQA's format, which 2WikiMultiHopQA shares ({"question", "context",
                "supporting_facts"})
    a folder    of BEIR, see `core.lab.tasks.beir`

All may be gzipped. A chunk is "title: text", since a paragraph often leaves its subject's name to its title.
A paragraph that stands twice in a record is kept once. The files are other people's: whatever is wrong with
one becomes a sentence that names file and line.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from core.base.config import MAX_QUERY_CHARACTERS
from core.base.errors import BadRequest
from core.corpus.bm25 import WordIndex
from core.corpus.words import words_of
from core.lab.tasks.beir import read_beir
from core.lab.tasks.data import checked_question, chunk_text, data_folder, is_text, json_lines, read_bytes
from core.lab.tasks.example import Example

FOLDERS = {
    "hotpotqa": "hotpotqa",
    "musique": "musique",
    "2wiki": "2wikimultihopqa",
    "nq": "nq_gold",
    "squad": "squad_v11_part",
    "clapnq": "clapnq_dev",
    "hybridqa": "hybridqa",
}

MAX_FILE_BYTES = 2 * 1024**3
"""Largest file, unpacked: HotpotQA's training file has 0.6 GB."""
MAX_LINE_BYTES = 16 * 1024 * 1024
"""Longest record of a JSONL file."""
MAX_CHUNKS = 100_000
"""Most chunks of one question."""
OWN = "own"
"""Task of a person's own questions, and the bounds of their file: bytes unpacked; of a line, which may be a
question over some five million words; questions.
"""
MAX_OWN_BYTES, MAX_OWN_LINE_BYTES, MAX_OWN_QUESTIONS = 256 * 1024 * 1024, 32 * 1024 * 1024, 100_000
MAX_SUPPORT = 32
"""Most support chunks of one question: an episode takes them one after another, a state has to hold them."""


def read_qa(source: str | Path, part: str = "eval", data: Path | None = None) -> list[Example]:
    """A set by name (`<part>.jsonl.gz` of its folder), or a path. Raises BadRequest for neither, or another
    format.
    """
    if str(source) in FOLDERS:
        task, path = str(source), data_folder(data) / FOLDERS[str(source)] / f"{part}.jsonl.gz"
    else:
        path = Path(source)
        task = path.name.partition(".")[0]
    if not path.exists():
        raise BadRequest(
            f"{source} ({part}) is neither a file, a BEIR folder nor one of {', '.join(FOLDERS)}; there is no"
            f" {path}"
        )
    examples = read_beir(path, part) if path.is_dir() else list(_file(path, task))
    if not examples:
        raise BadRequest(f"{path.name} holds no question; choose another file")
    [(name, count)] = Counter(example.id for example in examples).most_common(1)
    if count > 1:  # rows name questions by their ids
        raise BadRequest(f"{path.name} has the id {name[:80]!r} {count} times; give each question its own")
    return examples


def read_own_questions(path: Path) -> list[Example]:
    """A person's own questions, a line `{"question", "chunks": [text], "support": [0-based ids], "id"?,
    "answer"?}` each. Raises BadRequest for the first wrong line.
    """
    examples: list[Example] = []
    for where, record in json_lines(path, max_bytes=MAX_OWN_BYTES, max_line_bytes=MAX_OWN_LINE_BYTES):
        if len(examples) == MAX_OWN_QUESTIONS:
            raise BadRequest(f"{path.name} has more than {MAX_OWN_QUESTIONS:,} questions; split it")
        examples.append(_labelled(record, where, OWN))
    if not examples:
        raise BadRequest(
            f'{path.name} has no questions; write lines {{"question": ..., "chunks": [...], "support":'
            " [...]}"
        )
    return examples


def _file(path: Path, task: str) -> Iterator[Example]:
    match path.name.removesuffix(".gz").rpartition(".")[2]:
        case "json":
            return _hotpotqa(path, task)
        case "jsonl":
            return _json_lines(path, task)
        case suffix:
            raise BadRequest(f"{path.name} ends in .{suffix}; question sets are read from .json or .jsonl")


def title_of(text: str) -> str:
    """The title that `chunk_text` put before a text; empty where there is none."""
    title, colon, _ = text.partition(": ")
    return title if colon else ""


def _json_lines(path: Path, task: str) -> Iterator[Example]:
    for where, record in json_lines(path, max_bytes=MAX_FILE_BYTES, max_line_bytes=MAX_LINE_BYTES):
        if "paragraphs" not in record:
            yield _labelled(record, where, task)
        elif record.get("answerable", True):  # MuSiQue-Full has questions without support, too
            yield _musique(record, where, task)


def _labelled(record: Mapping[str, Any], where: str, task: str) -> Example:
    """A record of our own format. Raises BadRequest, which begins with `where`."""
    chunks = [_paragraph(chunk, "text", where) for chunk in _list(record, "chunks", where)]
    hops = record.get("hops")
    kind = record.get("type") or (f"{hops} hops" if isinstance(hops, int) else "")
    return _example(record, where, task, chunks, record.get("support"), _answers(record.get("answer")), kind)


def _musique(record: Mapping[str, Any], where: str, task: str) -> Example:
    paragraphs = _list(record, "paragraphs", where)
    chunks = [_paragraph(paragraph, "paragraph_text", where) for paragraph in paragraphs]
    support = [row for row, of in enumerate(paragraphs) if isinstance(of, dict) and of.get("is_supporting")]
    answers = _answers(record.get("answer")) + _answers(record.get("answer_aliases"))
    hops = str(record.get("id", "")).partition("hop")[0]
    return _example(record, where, task, chunks, support, answers, f"{hops} hops" if hops.isdigit() else "")


def _hotpotqa(path: Path, task: str) -> Iterator[Example]:
    text = read_bytes(path, MAX_FILE_BYTES)
    try:
        records = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{path.name} is no JSON ({error}); fetch it again") from None
    if not isinstance(records, list):
        raise BadRequest(
            f"{path.name} holds no list of questions; fetch HotpotQA or 2WikiMultiHopQA in the original"
            " format"
        )
    for number, record in enumerate(records, start=1):
        where = f"{path.name} question {number}"
        try:
            context = _list(record, "context", where)
            chunks = [chunk_text(title, "".join(sentences)) for title, sentences in context]
            gold = {title for title, _ in _list(record, "supporting_facts", where)}
            support = [row for row, (title, _) in enumerate(context) if title in gold]
        except (TypeError, ValueError, AttributeError):
            raise BadRequest(
                f"{where} must be an object whose context are pairs of a title and sentences, and whose"
                " supporting_facts pairs of a title and a number; fetch the file again"
            ) from None
        if len({context[row][0] for row in support}) < len(gold):
            raise BadRequest(f"{where} lacks a paragraph that supports it; take the set's distractor setting")
        answers = _answers(record.get("answer"))
        yield _example(record, where, task, chunks, support, answers, record.get("type", ""))


def _example(
    record: Mapping[str, Any],
    where: str,
    task: str,
    chunks: Sequence[str],
    support: object,
    answers: tuple[str, ...],
    kind: object,
) -> Example:
    """The checked example, repeated paragraphs kept once."""
    question = record.get("question")
    if not isinstance(question, str):
        raise BadRequest(f'{where} has no "question" with a text; add one')
    question = checked_question(question, where)
    example_id = str(record.get("id") or record.get("_id") or where)[:MAX_QUERY_CHARACTERS]
    if not all(map(is_text, (example_id, *chunks))):
        raise BadRequest(f"{where} has an id or a chunk that holds half a character; put it right")
    if len(chunks) > MAX_CHUNKS:
        raise BadRequest(f"{where} has {len(chunks):,} chunks, more than {MAX_CHUNKS:,}; leave some out")
    first = {text: row for row, text in enumerate(dict.fromkeys(chunks))}
    gold = tuple(sorted({first[chunks[row]] for row in _checked_support(support, len(chunks), where)}))
    named = kind if isinstance(kind, str) else ""
    return Example(example_id, task, question, tuple(first), gold, answers, named)


def _checked_support(support: object, n_chunks: int, where: str) -> set[int]:
    """Support ids. Raises BadRequest unless they are 1 to MAX_SUPPORT different chunks."""
    if not isinstance(support, list) or not all(type(chunk_id) is int for chunk_id in support):
        raise BadRequest(f'{where} needs "support", a list of whole numbers; put it right')
    outside = [chunk_id for chunk_id in support if not 0 <= chunk_id < n_chunks]
    if outside:
        raise BadRequest(
            f"{where}: support {outside[0]} is no chunk; its numbers must be between 0 and {n_chunks - 1}"
        )
    if not 1 <= len(set(support)) <= MAX_SUPPORT:
        raise BadRequest(
            f"{where} has {len(set(support))} support chunks, there must be between 1 and {MAX_SUPPORT};"
            " change their number"
        )
    return set(support)


def _paragraph(value: object, text: str, where: str) -> str:
    """A chunk, from a text or an object with a title and a text."""
    title, words = (value.get("title", ""), value.get(text)) if isinstance(value, dict) else ("", value)
    if isinstance(words, str) and isinstance(title, str) and words.strip():
        return chunk_text(title, words)
    raise BadRequest(f"{where} has a chunk that is no text, or object with one, or is empty; put it right")


def _list(record: Mapping[str, Any], name: str, where: str) -> list[Any]:
    value = record.get(name)
    if not isinstance(value, list) or not value:
        raise BadRequest(f'{where} needs "{name}", a list that isn\'t empty; put it right')
    return value


def _answers(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(text for text in value if isinstance(text, str)) if isinstance(value, list) else ()


class DistractorPool:
    """Paragraphs of many questions, to borrow from what looks like one's own: harder than one's own ten."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self.texts = list(dict.fromkeys(text for example in examples for text in example.chunks))
        self._lowered = [text.casefold() for text in self.texts]
        self._titles = [title_of(text).casefold() for text in self.texts]
        self._index = WordIndex(self.texts)

    def extend(self, example: Example, n: int, rng: Random) -> Example:
        """The example with up to n more paragraphs in random order: those closest to the question by BM25,
        then random ones. Never one that stands there already, has the title of a support paragraph, or holds
        an answer: it might support the question unlabelled.
        """
        scores = self._index.scores(words_of(example.question))
        rows = np.argsort(-scores, kind="stable")
        near = rows[scores[rows] > 0][: 4 * n].tolist()
        hard = [row for row in near if self._is_foreign(row, example)]
        rng.shuffle(hard)
        taken = dict.fromkeys(hard[:n])
        for row in rng.sample(range(len(self.texts)), min(len(self.texts), 4 * n)):
            if len(taken) == n:
                break
            if row not in taken and self._is_foreign(row, example):
                taken[row] = None
        texts = [*enumerate(example.chunks), *((-1, self.texts[row]) for row in taken)]
        rng.shuffle(texts)
        support = tuple(now for now, (was, _) in enumerate(texts) if was in example.support)
        return replace(example, chunks=tuple(text for _, text in texts), support=support)

    def _is_foreign(self, row: int, example: Example) -> bool:
        answers = [answer.casefold() for answer in example.answers if answer.casefold() not in ("yes", "no")]
        gold_titles = {title_of(example.chunks[row]).casefold() for row in example.support} - {""}
        return (
            self.texts[row] not in example.chunks
            and self._titles[row] not in gold_titles
            and not any(answer and answer in self._lowered[row] for answer in answers)
        )
