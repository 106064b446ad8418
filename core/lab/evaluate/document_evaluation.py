"""Questions about whole documents through several methods.

The result is one row per question and method. A document is read, cut and embedded once for all its questions
and methods, and leaves memory before the next. All methods search the chunks of the checkpoint that the app
would open it under; `gold` takes the chunks that hold the quotes. Only agents may stop by themselves, and the
reader that ships answers for every method. Quotes of all documents are looked for before anything is
embedded: a question whose quote is missing or stands twice is left out and reported. A question for which a
language model writes no set has no row of that method.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.answer.evidence import EvidenceAnswer, answer_evidence, found_order
from core.answer.protocol import Reader
from core.base.batches import batches
from core.base.config import RESRAG_LLM, EpisodeConfig
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
from core.lab.evaluate.documents import DocumentRow
from core.lab.tasks.documents import DocumentQuestion, Documents, TextPlace, by_document, placed
from core.lab.tasks.natural import holding_chunks
from core.llm.protocol import Llm
from core.methods.bm25 import BM25
from core.methods.choice import Choice, Encoders
from core.methods.hybrid import HYBRID
from core.methods.qrag.episode import Episode
from core.methods.registry import BY_ENCODER, check_names, notice_of, retrieve_all
from core.methods.resrag.llm.policy import LlmEvidenceSet
from core.methods.topk import TOPK
from core.runs.whatif.comparison import Contestant, contestant

AUTO = "auto"
"""The agent or method that the app would choose for a document by itself."""
GOLD = "gold"
"""The best any method can do: the fewest chunks that hold the quotes."""
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
    """Question by question, methods in the order asked for."""
    relevant: Mapping[str, tuple[int, ...]]
    """By question the fewest chunks that hold its quotes."""
    choice: Choice
    notices: tuple[str, ...]
    vectors: Mapping[str, str]
    """By checkpoint which vectors were searched, see `DualEncoder.vector_fingerprint`."""


@dataclass(frozen=True)
class AskedDocument:
    """The questions of one document."""

    name: str
    questions: tuple[DocumentQuestion, ...]
    """Those whose quotes stand in it."""
    places: Mapping[str, tuple[TextPlace, ...]]
    """By question where its quotes stand."""


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
    `llm`: writes the sets of `resrag-llm`.

    Raises and calls `on_fault` as `asked_documents` does, and raises as `evaluate_document` does.
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
    """The documents in the order in which questions name them, those without any question left.

    `on_fault` hears of each question that is left out since a quote of it does not stand exactly once. Raises
    BadRequest and BadDocument for a document that isn't there or can't be read.
    """
    documents = []
    for name, named in by_document(questions).items():
        if there := placed(named, folder.read(name).text, name, on_fault):
            places = {question.id: own for question, own in there}
            documents.append(AskedDocument(name, tuple(question for question, _ in there), places))
    return documents


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
    evaluation = _Evaluation(folder.read(document.name), setting, encoders, on_progress, llm)
    return evaluation.result_of(document.questions, document.places, reader)


class _Evaluation:
    """One document under one choice."""

    def __init__(
        self,
        document: Document,
        setting: DocumentSetting,
        encoders: Encoders,
        on_progress: Progress,
        llm: Llm | None,
    ) -> None:
        self.setting, self.encoders, self._on_progress, self._llm = setting, encoders, on_progress, llm
        self.choice, self.encoder = encoders.choice(document)
        self.workspace: Workspace = finish(chunk_documents([document], self.encoder), on_progress)
        self.notices = [f"{document.title}: {document.told}"] if document.notices else []
        self._corpora: dict[str, Corpus] = {}
        self._vectors: dict[str, str] = {}
        table = self.workspace.tables[0]
        self._start, self._end = table.start, table.end

    def result_of(
        self,
        questions: Sequence[DocumentQuestion],
        places: Mapping[str, tuple[TextPlace, ...]],
        reader: Reader,
    ) -> DocumentResult:
        spec = self.encoder.spec
        k = min(self.setting.k or spec.step_budget, len(self.workspace))
        config = spec.episode_config(step_budget=k, temperature=0.0)
        if not self.setting.stops:
            config = config.with_(stop_threshold=None, review_threshold=None)
        ran = {name: self.choice.method if name == AUTO else name for name in self.setting.methods}
        retrieving = [name for name in dict.fromkeys(ran.values()) if name != GOLD]
        contestants = [self._contestant(name, config) for name in retrieving]
        relevant = {
            question.id: holding_chunks(self.workspace.tables[0], places[question.id])
            for question in questions
        }
        rows: list[DocumentRow] = []
        for part in batches(questions, BATCH):
            done = {contestant.name: self._run(contestant, part, reader) for contestant in contestants}
            gold = self._gold_rows(part, places, relevant, reader) if GOLD in ran else []
            for i, question in enumerate(part):
                spans = places[question.id]
                for name, method in ran.items():
                    if name == GOLD:
                        rows.append(gold[i])
                    elif (ran_well := done[method][i]) is not None:
                        rows.append(self._row(question, spans, name, method, k, *ran_well))
        return DocumentResult(tuple(rows), relevant, self.choice, tuple(self.notices), self._vectors)

    def _contestant(self, name: str, config: EpisodeConfig) -> Contestant:
        plain = self.encoders.beside(name, self.encoder)
        return contestant(name, self.encoder, plain, config, self._llm)

    def _run(
        self, contestant: Contestant, questions: Sequence[DocumentQuestion], reader: Reader
    ) -> list[tuple[Trace, EvidenceAnswer] | None]:
        """None for a question that a language model wrote no set for."""
        corpus = self._corpus(contestant.encoder)
        episodes = [Episode(question.question, corpus, contestant.config) for question in questions]
        if isinstance(contestant.retriever, LlmEvidenceSet):
            traces = [
                self._written(contestant.retriever, question.id, episode)
                for question, episode in zip(questions, episodes, strict=True)
            ]
        else:
            traces = [*retrieve_all(contestant.retriever, episodes)]
        ran = [
            (question, trace) for question, trace in zip(questions, traces, strict=True) if trace is not None
        ]
        self.notices += [
            f"{question.id}: {notice}" for question, trace in ran if (notice := notice_of(trace))
        ]
        picks, found = [trace.picks for _, trace in ran], [found_order(trace) for _, trace in ran]
        answers = iter(self._answers(reader, [question for question, _ in ran], picks, found))
        return [None if trace is None else (trace, next(answers)) for trace in traces]

    def _answers(
        self,
        reader: Reader,
        questions: Sequence[DocumentQuestion],
        evidence: Sequence[tuple[int, ...]],
        found: Sequence[Sequence[int]] = (),
    ) -> Sequence[EvidenceAnswer]:
        """What the reader answers each question from chunks."""
        texts = [{chunk_id: self.workspace[chunk_id].text for chunk_id in ids} for ids in evidence]
        contexts = [{chunk_id: context(self.workspace, chunk_id) for chunk_id in ids} for ids in evidence]
        asked = [question.question for question in questions]
        return answer_evidence(reader, asked, texts, found, contexts=contexts)

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

    def _row(
        self,
        question: DocumentQuestion,
        places: Sequence[TextPlace],
        name: str,
        method: str,
        k: int,
        trace: Trace,
        answer: EvidenceAnswer,
    ) -> DocumentRow:
        scores = {step.chunk_id: step.q_value for step in trace.steps}
        likely, first = completeness(self.encoder.spec, trace), trace.scores_at(1)
        first_lead = None if first is None else lead(first.q_values)
        return replace(
            self._gold_row(question, places, trace.picks, answer),
            method=name,
            ran=method,
            checkpoint=trace.started.checkpoint,
            k=k,
            stops=self.setting.stops,
            scores=tuple(round(scores[chunk_id], 7) for chunk_id in trace.picks),
            stopped=trace.stopped is not None and trace.stopped.reason == "threshold",
            milliseconds=round(trace.milliseconds, 3),
            first_lead=None if first_lead is None else round(first_lead, 7),
            completeness=None if likely is None else round(likely, 4),
        )

    def _gold_rows(
        self,
        questions: Sequence[DocumentQuestion],
        places: Mapping[str, Sequence[TextPlace]],
        relevant: Mapping[str, tuple[int, ...]],
        reader: Reader,
    ) -> list[DocumentRow]:
        answers = self._answers(reader, questions, [relevant[question.id] for question in questions])
        return [
            self._gold_row(question, places[question.id], relevant[question.id], answer)
            for question, answer in zip(questions, answers, strict=True)
        ]

    def _gold_row(
        self,
        question: DocumentQuestion,
        places: Sequence[TextPlace],
        chunk_ids: tuple[int, ...],
        answer: EvidenceAnswer,
    ) -> DocumentRow:
        evidence = tuple((int(self._start[chunk_id]), int(self._end[chunk_id])) for chunk_id in chunk_ids)
        return DocumentRow(
            id=question.id,
            kind=question.kind,
            document=question.document,
            method=GOLD,
            ran=GOLD,
            checkpoint="",
            k=len(chunk_ids),
            stops=False,
            **_covered_quotes(places, evidence),
            n_chunks=len(self.workspace),
            chunk_ids=chunk_ids,
            scores=(1.0,) * len(chunk_ids),
            evidence=evidence,
            stopped=False,
            milliseconds=0.0,
            answer=answer.text or None,
            answer_confidence=1.0 if answer.confidence is None else answer.confidence,
            answer_reliable=answer.state == "answer",
            answer_state=answer.state,
            answers=question.answers,
        )


def _covered_quotes(places: Sequence[TextPlace], evidence: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Which quotes the evidence covers, and with how many of its chunks."""

    def found_at(place: TextPlace) -> int | None:
        # more chunks never cover less, so the fewest are found by halving
        n = 1 + bisect_left(
            range(1, len(evidence) + 1), True, key=lambda n_chunks: is_covered(place, evidence[:n_chunks])
        )
        return n if n <= len(evidence) else None

    steps = tuple(map(found_at, places))
    return {"covered": tuple(at is not None for at in steps), "found_at": steps}
