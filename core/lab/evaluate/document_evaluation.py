"""Questions about whole documents through several methods.

A document is read, cut and embedded once for all its questions and methods, and leaves memory before the
next. All methods search the chunks of the checkpoint that the app would open it under. Only agents may stop
by themselves, and one reader answers for every method. Quotes of all documents are looked for before anything
is embedded. A question for which a language model writes no set has no row of that method.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.answer.evidence import EvidenceAnswer, answer_evidence, found_order
from core.answer.protocol import Reader
from core.base.batches import batches
from core.base.config import RESRAG_LLM
from core.base.errors import BadRequest
from core.base.events import Trace, fold
from core.base.metrics import is_covered
from core.base.progress import finish
from core.base.types import Document, Workspace
from core.corpus.context import context
from core.corpus.index import Corpus
from core.corpus.opening import Progress, chunk_documents, index_workspace
from core.encode.encoder import DualEncoder
from core.lab.evaluate.completeness import completeness, lead
from core.lab.evaluate.documents import GOLD, DocumentRow
from core.lab.tasks.documents import DocumentQuestion, Documents, TextPlace, by_document, placed
from core.lab.tasks.natural import holding_chunks
from core.llm.protocol import Llm
from core.methods.bm25 import BM25
from core.methods.choice import Encoders
from core.methods.hybrid import HYBRID
from core.methods.qrag.episode import Episode
from core.methods.registry import BY_ENCODER, check_names, notice_of, retrieve_all
from core.methods.resrag.llm.policy import LlmEvidenceSet
from core.methods.topk import TOPK
from core.runs.whatif.comparison import Contestant, contestant

AUTO = "auto"
"""The agent or method that the app would choose for a document by itself."""
METHOD_NAMES = (AUTO, *BY_ENCODER, RESRAG_LLM, GOLD)
"""SPARC has an evaluation of its own."""
BATCH = 16
"""Questions whose runs, with the scores of all chunks, are in memory together."""


@dataclass(frozen=True, kw_only=True)
class DocumentSetting:
    """What is evaluated, and how."""

    methods: tuple[str, ...] = (AUTO, TOPK.name, BM25.name, HYBRID.name)
    k: int | None = None
    """Most chunks of every method; None: the budget of the checkpoint that a document is opened under."""
    stops: bool = True
    """Agents stop and review by their own thresholds."""

    def __post_init__(self) -> None:
        check_names(self.methods, METHOD_NAMES)
        if self.k is not None and self.k < 1:
            raise BadRequest(f"k={self.k} must be at least 1; choose how many chunks every method may take")


@dataclass(frozen=True, eq=False)
class DocumentResult:
    """The rows of one document, and which of its chunks hold the quotes."""

    rows: tuple[DocumentRow, ...]
    relevant: Mapping[str, tuple[int, ...]]
    """By question the fewest chunks that hold its quotes."""
    notices: tuple[str, ...]
    vectors: Mapping[str, str]
    """By checkpoint which vectors were searched, see `DualEncoder.vector_fingerprint`."""


@dataclass(frozen=True)
class AskedDocument:
    """A document, and its questions with the places of their quotes."""

    name: str
    placed: tuple[tuple[DocumentQuestion, tuple[TextPlace, ...]], ...]


def evaluate_documents(
    questions: Sequence[DocumentQuestion],
    folder: Documents,
    setting: DocumentSetting,
    encoders: Encoders,
    reader: Reader,
    on_fault: Callable[[BadRequest], None],
    on_progress: Callable[[str], Progress] = lambda _: lambda _: None,
    llm: Llm | None = None,
) -> Iterator[DocumentResult]:
    """A result a document, in the order in which questions name them. `on_progress` gets a document's name.
    `llm`: writes the sets of `resrag-llm`. Raises and calls `on_fault` as `asked_documents` does, and raises
    as `evaluate_document` does.
    """
    check_llm(setting, llm)
    for document in asked_documents(questions, folder, on_fault):
        yield evaluate_document(document, folder, setting, encoders, reader, on_progress(document.name), llm)


def check_llm(setting: DocumentSetting, llm: Llm | None) -> None:
    """Raises BadRequest for `resrag-llm` without a model."""
    if RESRAG_LLM in setting.methods and llm is None:
        raise BadRequest(
            f"method {RESRAG_LLM} asks a language model and none is connected; connect one (--llm-url and"
            " --llm-model by command), or leave the method out"
        )


def asked_documents(
    questions: Sequence[DocumentQuestion], folder: Documents, on_fault: Callable[[BadRequest], None]
) -> list[AskedDocument]:
    """The documents in the order in which questions name them, but those without any question left.
    `on_fault` hears of each question with a quote that does not stand exactly once. Raises BadRequest and
    BadDocument for a document that isn't there or can't be read.
    """
    documents = [
        AskedDocument(name, tuple(placed(named, folder.read(name).text, name, on_fault)))
        for name, named in by_document(questions).items()
    ]
    return [document for document in documents if document.placed]


def evaluate_document(
    document: AskedDocument,
    folder: Documents,
    setting: DocumentSetting,
    encoders: Encoders,
    reader: Reader,
    on_progress: Progress = lambda _: None,
    llm: Llm | None = None,
) -> DocumentResult:
    """All methods over one document. Raises as `Documents.read` does, where it has changed since."""
    text = folder.read(document.name)
    return _Evaluation(text, setting, encoders, reader, on_progress, llm).result_of(document)


_Ran = tuple[Trace | None, EvidenceAnswer]
"""A run with what the reader answers from its evidence; no trace for GOLD."""


class _Evaluation:
    """One document under one choice."""

    def __init__(
        self,
        document: Document,
        setting: DocumentSetting,
        encoders: Encoders,
        reader: Reader,
        on_progress: Progress,
        llm: Llm | None,
    ) -> None:
        self.setting, self.encoders, self.reader = setting, encoders, reader
        self._on_progress, self._llm = on_progress, llm
        self.choice, self.encoder = encoders.choice(document)
        self.workspace: Workspace = finish(chunk_documents([document], self.encoder), on_progress)
        self.notices = [f"{document.title}: {document.told}"] if document.notices else []
        self._corpora: dict[str, Corpus] = {}
        self._vectors: dict[str, str] = {}

    def result_of(self, document: AskedDocument) -> DocumentResult:
        spec, table = self.encoder.spec, self.workspace.tables[0]
        k = min(self.setting.k or spec.step_budget, len(self.workspace))
        config = self.encoders.usual(spec).episode_config(step_budget=k, temperature=0.0)
        if not self.setting.stops:
            config = config.with_(stop_threshold=None, review_threshold=None)
        methods = {name: self.choice.method if name == AUTO else name for name in self.setting.methods}
        contestants = [
            contestant(name, self.encoder, self.encoders.beside(name, self.encoder), config, self._llm)
            for name in dict.fromkeys(methods.values())
            if name != GOLD
        ]
        relevant = {question.id: holding_chunks(table, places) for question, places in document.placed}
        rows: list[DocumentRow] = []
        for part in batches(document.placed, BATCH):
            questions = [question for question, _ in part]
            ran = {one.name: self._run(one, questions) for one in contestants}
            if GOLD in methods:
                answers = self._answers(questions, [relevant[question.id] for question in questions])
                ran[GOLD] = [(None, answer) for answer in answers]
            for i, (question, places) in enumerate(part):
                for name, method in methods.items():
                    if (made := ran[method][i]) is not None:
                        trace, answer = made
                        chunk_ids = relevant[question.id] if trace is None else trace.picks
                        about = {"method": name, "ran": method, "k": len(chunk_ids) if trace is None else k}
                        about |= self._measured(trace, len(chunk_ids))
                        rows.append(self._row(question, places, chunk_ids, answer, about))
        return DocumentResult(tuple(rows), relevant, tuple(self.notices), self._vectors)

    def _run(self, one: Contestant, questions: Sequence[DocumentQuestion]) -> list[_Ran | None]:
        """None for a question that a language model wrote no set for."""
        corpus = self._corpus(one.encoder)
        episodes = [Episode(question.question, corpus, one.config) for question in questions]
        if isinstance(one.retriever, LlmEvidenceSet):
            traces = [
                self._written(one.retriever, question.id, episode)
                for question, episode in zip(questions, episodes, strict=True)
            ]
        else:
            traces = [*retrieve_all(one.retriever, episodes)]
        ran = [
            (question, trace) for question, trace in zip(questions, traces, strict=True) if trace is not None
        ]
        self.notices += [
            f"{question.id}: {notice}" for question, trace in ran if (notice := notice_of(trace))
        ]
        picks, found = [trace.picks for _, trace in ran], [found_order(trace) for _, trace in ran]
        answers = iter(self._answers([question for question, _ in ran], picks, found))
        return [None if trace is None else (trace, next(answers)) for trace in traces]

    def _answers(
        self,
        questions: Sequence[DocumentQuestion],
        evidence: Sequence[tuple[int, ...]],
        found: Sequence[Sequence[int]] = (),
    ) -> Sequence[EvidenceAnswer]:
        """What the reader answers each question from chunks."""
        texts = [{chunk_id: self.workspace[chunk_id].text for chunk_id in ids} for ids in evidence]
        contexts = [{chunk_id: context(self.workspace, chunk_id) for chunk_id in ids} for ids in evidence]
        asked = [question.question for question in questions]
        return answer_evidence(self.reader, asked, texts, found, contexts=contexts)

    def _written(self, chooser: LlmEvidenceSet, question: str, episode: Episode) -> Trace | None:
        """The set that a language model wrote; None, and a notice, where it wrote none."""
        try:
            return fold(chooser.retrieve(episode.query, episode.corpus, episode.config))
        except BadRequest as fault:
            self.notices.append(f"{question}: {RESRAG_LLM} has no row: {fault}")
            return None

    def _corpus(self, encoder: DualEncoder) -> Corpus:
        if encoder.vector_fingerprint not in self._corpora:
            opened = finish(index_workspace(self.workspace, encoder), self._on_progress)
            self._corpora[encoder.vector_fingerprint] = opened.corpus
            self._vectors[encoder.spec.name] = encoder.vector_fingerprint
            self.notices += opened.notices
        return self._corpora[encoder.vector_fingerprint]

    def _measured(self, trace: Trace | None, n: int) -> dict[str, Any]:
        """What a row says of a run, or of the `n` chunks of GOLD."""
        if trace is None:
            best = {"checkpoint": "", "stops": False, "scores": (1.0,) * n}
            return best | {"stopped": False, "milliseconds": 0.0}
        scores = {step.chunk_id: step.q_value for step in trace.steps}
        likely, first = completeness(self.encoder.spec, trace), trace.scores_at(1)
        first_lead = None if first is None else lead(first.q_values)
        return {
            "checkpoint": trace.started.checkpoint,
            "stops": self.setting.stops,
            "scores": tuple(round(scores[chunk_id], 7) for chunk_id in trace.picks),
            "stopped": trace.stopped is not None and trace.stopped.reason == "threshold",
            "milliseconds": round(trace.milliseconds, 3),
            "first_lead": None if first_lead is None else round(first_lead, 7),
            "completeness": None if likely is None else round(likely, 4),
        }

    def _row(
        self,
        question: DocumentQuestion,
        places: Sequence[TextPlace],
        chunk_ids: tuple[int, ...],
        answer: EvidenceAnswer,
        about: dict[str, Any],
    ) -> DocumentRow:
        table = self.workspace.tables[0]
        evidence = tuple((int(table.start[chunk_id]), int(table.end[chunk_id])) for chunk_id in chunk_ids)
        found_at = tuple(_found_at(place, evidence) for place in places)
        return DocumentRow(
            id=question.id,
            kind=question.kind,
            document=question.document,
            covered=tuple(at is not None for at in found_at),
            found_at=found_at,
            n_chunks=len(self.workspace),
            chunk_ids=chunk_ids,
            evidence=evidence,
            answer=answer.text or None,
            answer_confidence=1.0 if answer.confidence is None else answer.confidence,
            answer_reliable=answer.state == "answer",
            answer_state=answer.state,
            answers=question.answers,
            **about,
        )


def _found_at(place: TextPlace, evidence: Sequence[tuple[int, int]]) -> int | None:
    """With how many of its chunks the evidence covers a place: more never cover less, so by halving."""
    n = 1 + bisect_left(
        range(1, len(evidence) + 1), True, key=lambda n_chunks: is_covered(place, evidence[:n_chunks])
    )
    return n if n <= len(evidence) else None
