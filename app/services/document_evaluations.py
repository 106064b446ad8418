"""Questions about whole documents, for the page.

The one file of JSON lines among a person's files holds the questions. What was measured before a cancel is
kept. An evaluation is found again by its id, in a file of its own: its rows are of whole documents, which the
log's tables have no place for.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.services.agents import Agents
from app.services.opener import MAX_FILES
from app.services.shared import Services
from core.base.errors import BadDocument, BadRequest
from core.base.home import home, make_folder
from core.base.types import Document
from core.corpus.opening import OpenProgress, Progress
from core.encode.checkpoint import CheckpointSpec
from core.encode.encoder import DualEncoder
from core.ingest import read_document
from core.lab.evaluate.document_evaluation import METHOD_NAMES, DocumentSetting, evaluate_documents
from core.lab.evaluate.documents import GOLD, DocumentRow
from core.lab.tasks.documents import (
    DocumentFolder,
    DocumentQuestion,
    Documents,
    QuoteFinder,
    read_document_questions,
    standing_once,
)
from core.lab.tasks.marked import ask_marked
from core.lab.tasks.samples import find_quote, list_samples
from core.llm.protocol import Llm
from core.methods.choice import Choice, Encoders
from core.methods.registry import facts_of
from core.runs.log import new_run_id
from core.runs.log.atomic import write_whole

OFFERED = tuple(name for name in METHOD_NAMES if name != GOLD and not facts_of(name).trained)
"""What the app would choose first; agents are chosen by that."""
QUESTION_FILES = (".jsonl", ".jsonl.gz")
MAX_QUESTIONS = 1_000
"""Of one evaluation."""
MAX_KEPT = 100
"""Evaluations, the latest ones."""


@dataclass(frozen=True)
class DocumentOrder:
    """What a person asks for."""

    files: tuple[Path, ...]
    """Documents, and one file of questions; none: the documents that ship with the app."""
    methods: tuple[str, ...] = DocumentSetting().methods
    k: int | None = None
    """None: what suits each document. Else the most chunks of every method."""
    stops: bool = True
    """Agents stop by themselves."""


@dataclass(frozen=True)
class DocumentsProgress:
    """How far an evaluation is, and what it has found."""

    n_documents: int = 0
    document: str = ""
    """Under way."""
    n_done: int = 0
    """Documents whose rows are there."""
    now: OpenProgress | None = None
    """Of the document under way."""
    questions: tuple[DocumentQuestion, ...] = ()
    """That have rows."""
    rows: tuple[DocumentRow, ...] = ()
    left_out: tuple[str, ...] = ()
    """Why, a sentence a question; and what methods could not do or left out."""
    ended: bool = False
    sources: tuple[Path, ...] = ()
    """Files that questions can be asked of in Explore: the documents, by the names that questions give."""

    def source(self, place: int) -> Path | None:
        """The file that a question is about; None for one whose document is no file, or that isn't there."""
        name = self.questions[place].document if place < len(self.questions) else ""
        return next((path for path in self.sources if path.name == name and path.is_file()), None)


@dataclass(frozen=True)
class KeptEvaluation:
    """An evaluation that has ended, as it is written down, and whose it is."""

    owner: str | None
    n_documents: int
    questions: tuple[DocumentQuestion, ...]
    rows: tuple[DocumentRow, ...]
    left_out: tuple[str, ...]
    sources: tuple[Path, ...]


def keep_evaluation(state: DocumentsProgress, owner: str | None) -> str:
    """Writes an evaluation down; its id, empty where that failed: the page shows it in any case."""
    folder, key = home() / "evaluations", new_run_id()
    found = state.questions, state.rows, state.left_out, state.sources
    kept = KeptEvaluation(owner, state.n_documents, *found)
    try:
        make_folder(folder)
        write_whole(folder / f"{key}.json", _KEPT.dump_json(kept))
        for path in sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)[:-MAX_KEPT]:
            path.unlink()
    except OSError:
        return ""
    return key


def kept_evaluation(key: str, owner: str | None) -> DocumentsProgress:
    """The evaluation with an id, of 32 hex digits. Raises BadRequest unless its owner asks."""
    try:
        kept = _KEPT.validate_json((home() / "evaluations" / f"{key}.json").read_bytes())
    except (OSError, ValidationError):
        kept = None
    if kept is None or kept.owner != owner:
        raise BadRequest(f"evaluation {key} is not kept here; ask its questions again")
    state = DocumentsProgress(kept.n_documents, n_done=kept.n_documents, ended=True, sources=kept.sources)
    return replace(state, questions=kept.questions, rows=kept.rows, left_out=kept.left_out)


_KEPT = TypeAdapter(KeptEvaluation)


def evaluate_files(
    services: Services,
    order: DocumentOrder,
    report: Callable[[DocumentsProgress], None],
    llm: Llm | None = None,
) -> DocumentsProgress:
    """All rows. `report` hears of each step, may raise Cancelled. Raises BadRequest, BadDocument."""
    _check(order)
    with tempfile.TemporaryDirectory() as folder:
        asked, documents = _sorted(order.files) if order.files else _samples(Path(folder))
        questions = read_document_questions(asked)
        if len(questions) > MAX_QUESTIONS:
            raise BadRequest(
                f"{asked.name} has {len(questions):,} questions, more than {MAX_QUESTIONS:,}; use the command"
                " evaluate-documents, or fewer"
            )
        for path in documents:
            (Path(folder) / path.name).symlink_to(path)
        state, there = DocumentsProgress(sources=tuple(documents)), DocumentFolder(Path(folder), asked)
        try:
            return _evaluate(services, state, questions, there, order, report, llm)
        except (BadRequest, BadDocument) as error:  # nobody can put anything into this folder
            raise type(error)(str(error).replace(folder, "what was dropped")) from error


def evaluate_marked(
    services: Services,
    order: DocumentOrder,
    owner: str | None,
    opened: Sequence[Document],
    report: Callable[[DocumentsProgress], None],
    llm: Llm | None = None,
) -> DocumentsProgress:
    """All rows of a visitor's marked questions, over documents that are `opened` or that runs searched."""
    _check(order)
    asked = ask_marked(services.own_log, owner, opened)
    if not asked.questions:
        none = "no question has a passage that belongs to its answer; mark one in Explore"
        raise BadRequest(next(iter(asked.left_out), none))
    state = DocumentsProgress(left_out=tuple(asked.left_out))
    return _evaluate(services, state, asked.questions, asked, order, report, llm)


def _check(order: DocumentOrder) -> None:
    if not order.methods:
        raise BadRequest("no method is chosen; choose one or more")


def _evaluate(
    services: Services,
    state: DocumentsProgress,
    questions: Sequence[DocumentQuestion],
    documents: Documents,
    order: DocumentOrder,
    report: Callable[[DocumentsProgress], None],
    llm: Llm | None,
) -> DocumentsProgress:
    setting = DocumentSetting(methods=order.methods, k=order.k, stops=order.stops)
    by_id = {question.id: question for question in questions}
    state = replace(state, n_documents=len({question.document for question in questions}))
    faults = [*state.left_out]

    def following(name: str) -> Progress:
        return lambda now: report(replace(state, document=name, now=now))

    report(state)
    about = questions, documents, setting, _AgentsHere(services.agents), services.reader
    for judged in evaluate_documents(*about, lambda fault: faults.append(str(fault)), following, llm):
        ids = dict.fromkeys(row.id for row in judged.rows)
        faults.extend(judged.notices)
        state = replace(
            state,
            n_done=state.n_done + 1,
            questions=state.questions + tuple(by_id[name] for name in ids),
            rows=state.rows + judged.rows,
            left_out=tuple(faults),
        )
        report(state)
    return replace(state, left_out=tuple(faults), ended=True)


class _AgentsHere(Encoders):
    """Documents get the agents that Explore gives them, with the thresholds that they begin with there."""

    def __init__(self, agents: Agents) -> None:
        super().__init__(None, None)
        self._agents = agents

    def choice(self, document: Document) -> tuple[Choice, DualEncoder]:
        chosen = self._agents.choice_for([document])
        return chosen, self._agents.load(chosen.checkpoint).encoder

    def usual(self, spec: CheckpointSpec) -> CheckpointSpec:
        return self._agents.served(spec)


def _samples(folder: Path) -> tuple[Path, list[Path]]:
    """(questions, documents) of the samples; the questions are written down in the folder."""
    records: list[dict[str, Any]] = []
    for sample in list_samples():
        text = read_document(sample.path.read_bytes(), sample.key).text
        finder = QuoteFinder(text, sample.key)
        for labelled in sample.questions:
            places = [find_quote(text, quote) for quote in labelled.support]
            quotes = [standing_once(text, *place, finder) for place in places]
            record = {
                "id": f"{sample.key} {labelled.id}",
                "document": sample.key,
                "kind": "single" if len(quotes) == 1 else "bridge",
                "question": labelled.question,
                "answer": labelled.answer,
                "support": quotes,
            }
            records.append(record)
    asked = folder / "questions.jsonl"
    asked.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return asked, [sample.path for sample in list_samples()]


def _sorted(files: Sequence[Path]) -> tuple[Path, list[Path]]:
    """(questions, documents). Raises BadRequest."""
    asked = [path for path in files if path.name.lower().endswith(QUESTION_FILES)]
    documents = [path for path in files if path not in asked]
    if len(asked) != 1:
        raise BadRequest(
            f"{len(asked)} files end in .jsonl; drop one, with the questions, beside the documents that they"
            " are about"
        )
    if not documents:
        raise BadRequest(
            "no document is chosen; drop the files that the questions are about, under the names that stand"
            " there"
        )
    if (n := len(documents)) > MAX_FILES:
        raise BadRequest(
            f"{n} documents are more than {MAX_FILES}; use the command evaluate-documents, or fewer"
        )
    names = [path.name for path in documents]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadRequest(f"two files are called {twice}; rename one of them, in the questions too")
    return asked[0], documents
