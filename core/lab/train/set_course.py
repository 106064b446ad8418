"""The questions that the light RES-RAG policy is trained and validated on.

A few hundred of many kinds rather than many of one: a policy of features learns from little, and each
distinct text has to be embedded once. Validation holds out one question in nine of the training parts; no
test part is read. An agent's vectors know the answers to what it was trained on, so HotpotQA gives questions
that no agent saw, and 2WikiMultiHopQA and MuSiQue are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from core.ingest.tokenizer import Tokenizer
from core.lab.tasks.data import data_folder
from core.lab.tasks.documents import read_document_questions
from core.lab.train.set_questions import SetQuestion, document_questions, set_questions

COUNTS = {
    "conditionalqa": 160,
    "nq": 160,
    "hotpotqa-sentences": 120,
    "hotpotqa": 100,
    "hybridqa": 8,
}
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
    questions = [
        question
        for name, n in COUNTS.items()
        for question in set_questions(name, "train", n, tokenizer, data)
    ]
    path = data_folder(data) / "natural" / "train.jsonl.gz"
    names = list(dict.fromkeys(question.document for question in read_document_questions(path)))
    pages, essays = ([name for name in names if is_kind(name)] for is_kind in (_is_page, _is_essay))
    natural = document_questions(
        path, [pages[::2], pages[1::2], essays[::2], *([name] for name in LONG_DOCUMENTS)], tokenizer, data
    )
    questions += sorted(natural, key=_digest)[:NATURAL_COUNT]
    learned, held_out = (
        [question for question in questions if is_held_out(question) is out] for out in (False, True)
    )
    return learned, held_out


def _is_page(name: str) -> bool:
    return name.endswith(".html")


def _is_essay(name: str) -> bool:
    return name.startswith("essay")


def is_held_out(question: SetQuestion) -> bool:
    """Whether it validates, whoever is trained."""
    return _digest(question)[0] % HELD_OUT == 0


def _digest(question: SetQuestion) -> bytes:
    return hashlib.sha256(question.question.encode()).digest()


def counts_of(questions: Sequence[SetQuestion]) -> dict[str, int]:
    """How many questions there are of each set, for the record."""
    counts: dict[str, int] = {}
    for question in questions:
        counts[question.task] = counts.get(question.task, 0) + 1
    return counts
