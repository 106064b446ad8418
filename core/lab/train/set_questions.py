"""Questions over several documents, which evidence sets are trained and measured on.

Paragraphs of the question-answering sets are documents and their sentences chunks: with one chunk per
document the penalty of RES-RAG could never act. Which sentences inherit the support of a paragraph is
guessed, see `sentence_support`. Sets that are cut into sentences already keep their chunks, and those under
one title are a document; so are the rows of a table. Questions about whole documents are asked over several
of these at once.

A training reads a few hundred of many kinds rather than many of one: a policy of features learns from little,
and each distinct text has to be embedded once. Validation holds out one question in nine of the training
parts; no test part is read. An agent's vectors know the answers to what it was trained on, so HotpotQA gives
questions that no agent saw, and 2WikiMultiHopQA and MuSiQue are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np

from core.base.errors import BadRequest
from core.base.types import Workspace, join_workspaces, workspace_of_chunks
from core.corpus.index import Corpus
from core.corpus.opening import index_of, vector_store
from core.corpus.words import words_of
from core.encode.cache import embed_chunks
from core.encode.encoder import DualEncoder
from core.ingest.sentences import split_sentences
from core.ingest.tokenizer import Tokenizer
from core.lab.tasks.data import data_folder, plain
from core.lab.tasks.documents import DocumentFolder, by_document, cut_whole, placed, read_document_questions
from core.lab.tasks.example import Example
from core.lab.tasks.natural import holding_chunks
from core.lab.tasks.qa_sets import read_qa, title_of


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Where the questions of one name lie."""

    folder: str
    cut: bool
    """Paragraphs are cut into sentences; False: chunks are annotated one by one."""
    train: str | None = "train"
    """File of the training part, if possible one that no shipped agent was trained on; None: none."""
    test: str | None = "eval"


SETS = {
    "hotpotqa": QuestionSet("hotpotqa", cut=True, train="train_more"),
    "hotpotqa-sentences": QuestionSet("hotpotqa", cut=False, train="train_sentences", test=None),
    "2wiki": QuestionSet("2wikimultihopqa", cut=True),
    "musique": QuestionSet("musique", cut=True),
    "nq": QuestionSet("nq_gold", cut=True),
    "clapnq": QuestionSet("clapnq_dev", cut=False, train=None),
    "conditionalqa": QuestionSet("conditionalqa", cut=False),
    "hybridqa": QuestionSet("hybridqa", cut=True),
}


@dataclass(frozen=True, eq=False)
class SetQuestion:
    """A question, what it is asked of, and what is known of its answer."""

    id: str
    task: str
    question: str
    workspace: Workspace
    support: tuple[int, ...]
    """Chunk ids over the workspace, ascending, none twice."""
    answers: tuple[str, ...]


def set_questions(
    name: str, part: Literal["train", "test"], n: int, tokenizer: Tokenizer, data: Path | None = None
) -> list[SetQuestion]:
    """At most n answered questions of a named set, random but the same each call. Raises BadRequest."""
    files = {
        known: file
        for known, source in SETS.items()
        if (file := source.train if part == "train" else source.test) is not None
    }
    if name not in files:
        raise BadRequest(f"question set {name!r} has no part {part}; choose among {', '.join(files)}")
    examples = [
        example
        for example in read_qa(data_folder(data) / SETS[name].folder / f"{files[name]}.jsonl.gz")
        if example.answers
    ]
    Random(f"{name} {part}").shuffle(examples)
    return [in_sentences(example, name, tokenizer, cut=SETS[name].cut) for example in examples[:n]]


def in_sentences(example: Example, task: str, tokenizer: Tokenizer, *, cut: bool) -> SetQuestion:
    """A labelled question with its paragraphs as documents. `cut`: into sentences."""
    titled: dict[str, list[int]] = {}
    for row, text in enumerate(example.chunks):
        titled.setdefault(title_of(text) or f"{row}", []).append(row)
    gold = set(example.support)
    titles = {title_of(example.chunks[row]) for row in gold} - {""}
    parts: list[Workspace] = []
    support: list[int] = []
    n_before = 0
    for title, rows in titled.items():
        chunks: list[str] = []
        for row in rows:
            text = example.chunks[row]
            own = [text[start:end] for start, end in split_sentences(text)] if cut else [text]
            if row in gold and own:
                bridges = titles - {title_of(text)}
                kept = sentence_support(own, example.question, example.answers, bridges)
                support += [n_before + len(chunks) + place for place in kept]
            chunks += own
        parts.append(workspace_of_chunks(chunks, tokenizer.count(chunks), title))
        n_before += len(chunks)
    return SetQuestion(
        example.id, task, example.question, join_workspaces(parts), tuple(sorted(support)), example.answers
    )


def sentence_support(
    sentences: Sequence[str], question: str, answers: Iterable[str], bridges: Iterable[str]
) -> list[int]:
    """Which sentences of a supporting paragraph inherit its support: those with an accepted answer or the
    title of another supporting paragraph.

    Where none has either, the one that shares most words with the question, the first of equals.

    >>> sentence_support(["Ann met Bo.", "Bo is tall.", "It rained."], "Who met Bo?", ["Ann"], ["Rain"])
    [0]
    >>> sentence_support(["He saw Rain.", "Bo is tall."], "Who is tall?", ["yes"], ["Rain (film)"])
    [0]
    >>> sentence_support(["It was late.", "Bo is tall."], "Who is tall?", ["yes"], [])
    [1]
    """
    plain_answers = [plain(answer) for answer in answers if plain(answer) not in ("", "yes", "no")]
    plain_answers += [name for title in bridges if (name := plain(title.partition(" (")[0]))]
    whole_words = [re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)") for answer in plain_answers]
    holding = [
        row
        for row, text in enumerate(map(plain, sentences))
        if any(pattern.search(text) for pattern in whole_words)
    ]
    if holding:
        return holding
    question_words = set(words_of(question))
    shared = [len(question_words & set(words_of(sentence))) for sentence in sentences]
    return [shared.index(max(shared))]


def document_questions(
    path: Path, groups: Sequence[Sequence[str]], tokenizer: Tokenizer, data: Path | None = None
) -> list[SetQuestion]:
    """Answered questions about whole documents, each over all documents of the group that holds its own.

    `groups`: names of documents that are searched together. A question whose quotes do not stand exactly once
    in its document is left out. Raises BadRequest and BadDocument.
    """
    answered = [
        question for question in read_document_questions(path) if question.quotes and question.answers
    ]
    asked, folder = by_document(answered), DocumentFolder(data_folder(data), path)
    questions: list[SetQuestion] = []
    for names in groups:
        workspace = cut_whole([folder.read(name) for name in names], tokenizer)
        for place, name in enumerate(names):
            first = int(workspace.borders[place])
            for question, places in placed(asked.get(name, ()), workspace.documents[place].text, name):
                support = tuple(first + row for row in holding_chunks(workspace.tables[place], places))
                asked_of = (question.question, workspace, support, question.answers)
                questions.append(SetQuestion(question.id, "natural", *asked_of))
    return questions


def indexed(questions: Sequence[SetQuestion], encoder: DualEncoder) -> Iterator[tuple[SetQuestion, Corpus]]:
    """Each question with its corpus; every distinct text is embedded once, all share one matrix."""
    workspaces = {id(question.workspace): question.workspace for question in questions}
    texts = {key: workspace.texts() for key, workspace in workspaces.items()}
    distinct = dict.fromkeys(chain.from_iterable(texts.values()))
    rows = {text: row for row, text in enumerate(distinct)}
    index = index_of(encoder, embed_chunks(encoder, list(rows), vector_store(encoder)))
    corpora = {
        key: Corpus(workspaces[key], index.arranged(np.array([rows[text] for text in own], dtype=np.int64)))
        for key, own in texts.items()
    }
    for question in questions:
        yield question, corpora[id(question.workspace)]


COUNTS = {"conditionalqa": 160, "nq": 160, "hotpotqa-sentences": 120, "hotpotqa": 100, "hybridqa": 8}
"""Questions of each set, drawn once; those whose questions bring many new texts are few."""
NATURAL_COUNT = 60
"""Questions about whole documents: their chunks are long, and reading them takes most of a training's time.
"""
LONG_DOCUMENTS = ("Doyle_Hound_1902.txt", "meeting_product_val1.txt")
"""Each searched alone."""
HELD_OUT = 9
"""One question in so many is validation's."""


def course_questions(
    tokenizer: Tokenizer, data: Path | None = None
) -> tuple[list[SetQuestion], list[SetQuestion]]:
    """(to train on, to validate with). Raises BadRequest when the data sets aren't there."""
    sets = (set_questions(name, "train", n, tokenizer, data) for name, n in COUNTS.items())
    questions = [question for of_set in sets for question in of_set]
    path = data_folder(data) / "natural" / "train.jsonl.gz"
    names = list(dict.fromkeys(question.document for question in read_document_questions(path)))
    pages = [name for name in names if name.endswith(".html")]
    essays = [name for name in names if name.startswith("essay")]
    groups = [pages[::2], pages[1::2], essays[::2], *([name] for name in LONG_DOCUMENTS)]
    natural = document_questions(path, groups, tokenizer, data)
    questions += sorted(natural, key=_digest)[:NATURAL_COUNT]
    learned, held_out = (
        [question for question in questions if is_held_out(question) is out] for out in (False, True)
    )
    return learned, held_out


def is_held_out(question: SetQuestion) -> bool:
    """Whether it validates, whoever is trained."""
    return _digest(question)[0] % HELD_OUT == 0


def _digest(question: SetQuestion) -> bytes:
    return hashlib.sha256(question.question.encode()).digest()


def counts_of(questions: Sequence[SetQuestion]) -> dict[str, int]:
    """How many questions there are of each set, for the record."""
    return dict(Counter(question.task for question in questions))
