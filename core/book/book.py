"""Documents that can be asked, and their runs, for Python and notebooks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

from core.answer.evidence import EvidenceAnswer
from core.answer.protocol import Reader
from core.answer.reader import load_reader
from core.base.config import check_query
from core.base.errors import BadDocument, BadRequest
from core.base.events import StepTaken, Trace
from core.base.progress import finish
from core.base.types import Document, Workspace
from core.corpus.index import Corpus
from core.corpus.opening import chunk_documents, index_workspace
from core.encode.encoder import DualEncoder
from core.ingest import Converter, read_documents
from core.integrations.adapters.search import Passage, passages_of
from core.lab.evaluate.completeness import completeness
from core.methods.choice import Encoders
from core.methods.registry import facts_of
from core.methods.sparc.retriever import SPARC
from core.runs.again.records import answers_to, log_trace
from core.runs.foreign.files import ForeignRun, checked_run, file_bytes, files_of, read_foreign
from core.runs.foreign.places import Places
from core.runs.foreign.traces import Brought, bring, found_sentence, log_brought
from core.runs.log import default_log_path, open_log
from core.runs.whatif.comparison import compare, contestant
from core.views.draw.nodes import Node, h, html_of
from core.views.draw.run_map import run_picture
from core.views.draw.words import counted, shorten
from core.views.ending import end_sentence, review_sentence
from core.views.findings import found_by
from core.views.question import cut_sentence
from core.views.story import closed, reading_words

_TEXT = 240
"""Characters of a chunk that stand for it in a notebook."""


@dataclass(frozen=True, eq=False, repr=False)
class BookRun:
    """One question through one method."""

    trace: Trace
    workspace: Workspace
    reading: EvidenceAnswer | None = None
    complete: float | None = None
    """How likely the evidence holds all that the question needs; None where nothing is known of it."""
    run_id: str = ""
    """In the log; empty for a run that isn't kept."""
    notice: str = ""
    """What of an imported run was found again; of another, that its question is longer than what is read."""

    @property
    def query(self) -> str:
        return self.trace.started.query

    @property
    def method(self) -> str:
        return self.trace.started.method

    @property
    def steps(self) -> tuple[StepTaken, ...]:
        """Every choice, with its chunk, its score and the scores of all chunks then."""
        return self.trace.steps

    @property
    def evidence(self) -> list[Passage]:
        """What was kept, in document order."""
        passages = passages_of(self.trace, self.workspace)
        return sorted(passages, key=lambda passage: passage.metadata["chunk_id"])

    @property
    def answer(self) -> str | None:
        """The answer, also one that is only a guess; None where the evidence holds none. See `said`."""
        return None if self.reading is None else self.reading.told_text or None

    @property
    def said(self) -> str:
        """The answer as the pages say it, or why there is none; empty where nothing was read."""
        return "" if self.reading is None else reading_words(self.reading)

    def __repr__(self) -> str:
        said = self.said or "nothing was read"
        return f"<BookRun: {self.method} on {shorten(self.query, 80)!r}; {_size(self)}; {said}>"

    def _repr_html_(self) -> str:
        """Question, what is said to it, strip, and a row a chunk that was kept, for a notebook, which has no
        style sheet of ours. All text is escaped.
        """
        trace, said, complete = self.trace, self.said, self.complete
        sure = (
            "" if complete is None else f"The evidence is complete with a chance of {100 * complete:.0f} %."
        )
        rows = [
            h(
                "tr",
                h("td", str(passage.metadata["step"])),
                h("td", f"{passage.score:.3f}"),
                h("td", " › ".join([passage.metadata["title"], *passage.metadata["headings"]])),
                h("td", {"dir": "auto"}, shorten(passage.text, _TEXT)),
            )
            for passage in passages_of(trace, self.workspace)
        ]
        return _together(
            h("p", h("strong", {"dir": "auto"}, self.query)),
            h("p", {"dir": "auto"}, closed(said)) if said else None,
            h("p", sure) if sure else None,
            run_picture(trace),
            _table(["step", facts_of(self.method).score_name, "place", "text"], rows),
            h("p", " ".join(filter(None, [end_sentence(trace), review_sentence(trace), self.notice]))),
        )


@dataclass(frozen=True, eq=False, repr=False)
class BookComparison:
    """One question through several methods."""

    runs: Mapping[str, BookRun]
    """By method, in the order asked for; one that comes again has its number behind its name."""
    refused: Mapping[str, str]

    def __getitem__(self, method: str) -> BookRun:
        names = [*self.runs, *self.refused]
        if method not in names:
            choices = ", ".join(map(repr, names))
            raise BadRequest(f"{method!r} is no key of this comparison; choose among {choices}")
        if method in self.refused:
            raise BadRequest(self.refused[method])
        return self.runs[method]

    def __repr__(self) -> str:
        runs = [f"{name!r} ({_size(run)})" for name, run in self.runs.items()]
        return f"<BookComparison: {', '.join([*runs, *(f'{name!r} refused' for name in self.refused)])}>"

    def _repr_html_(self) -> str:
        """Who found what, by the step that chose it, each strip, and remarks, for a notebook."""
        traces = {name: run.trace for name, run in self.runs.items()}
        rows = []
        for chunk_id in found_by({name: trace.picks for name, trace in traces.items()}):
            finders = ((trace.chosen, chunk_id in trace.picks) for trace in traces.values())
            steps = [str(chosen.index(chunk_id) + 1) if found else "" for chosen, found in finders]
            text = shorten(next(iter(self.runs.values())).workspace[chunk_id].text, _TEXT)
            rows.append(h("tr", h("td", {"dir": "auto"}, text), *(h("td", step) for step in steps)))
        said = (h("td", {"dir": "auto"}, run.said or "no answer") for run in self.runs.values())
        rows.append(h("tr", h("td", "answer"), *said))
        labels = [  # with the number of one that comes again
            facts_of(run.method).label + name.removeprefix(run.method) for name, run in self.runs.items()
        ]
        pictures = zip(labels, map(run_picture, traces.values()), strict=True)
        notices = {name: run.notice for name, run in self.runs.items() if run.notice}
        return _together(
            *(h("div", h("p", label), picture) for label, picture in pictures),
            _table(["chunk", *labels], rows),
            *(h("p", f"{name}: {remark}") for name, remark in (notices | dict(self.refused)).items()),
        )


@dataclass(eq=False, repr=False)
class Book:
    """Open documents. `ask`, `compare` and `bring` search the same chunks."""

    workspace: Workspace
    agent: DualEncoder
    method: str
    """The one that suits the documents."""
    encoders: Encoders
    log_path: Path
    _corpora: dict[str, Corpus] = field(default_factory=dict)
    _left_out: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        titles = ", ".join(document.title for document in self.workspace.documents[:3])
        return f"<Book: {titles}; {counted(len(self.workspace), 'chunk')}; {self.agent.spec.name}>"

    @property
    def notices(self) -> list[str]:
        """What reading the files left out or guessed, also files that were brought."""
        told = [str(notice) for document in self.workspace.documents for notice in document.notices]
        return told + self._left_out

    def ask(
        self, query: str, method: str | None = None, *, k: int | None = None, log: bool = False
    ) -> BookRun:
        """One question. k: most chunks; None: the agent's number. log: keep the run. Raises BadRequest."""
        found = self.compare(query, [method or self.method], k=k, log=log)
        if found.refused:
            raise BadRequest(next(iter(found.refused.values())))
        return next(iter(found.runs.values()))

    def compare(
        self,
        query: str,
        methods: str | BookRun | Sequence[str | BookRun],
        *,
        k: int | None = None,
        log: bool = False,
    ) -> BookComparison:
        """One question through several methods over the same chunks; a run of these stands for itself."""
        query = check_query(query)
        if k is not None and (isinstance(k, bool) or not isinstance(k, Integral) or k < 1):
            raise BadRequest(f"k={k!r} must be a whole number, 1 or more; leave it out for the agent's own")
        budget = min(self.agent.spec.step_budget if k is None else int(k), len(self.workspace))
        config = self.agent.spec.episode_config(step_budget=budget)
        runs, refused = dict[str, BookRun](), dict[str, str]()
        for method in _several(methods, (str, BookRun), "compared", "a method's name or a run"):
            if isinstance(method, BookRun):
                runs[_free(method.method, runs)] = self._own(method, query)
                continue
            if method == SPARC:
                raise BadRequest(
                    "SPARC is not among a book's methods, since it runs in branches with an answer each; use"
                    " python -m core sparc, or the SPARC tab of the app"
                )
            one = contestant(method, self.agent, self.encoders.beside(method, self.agent), config)
            [column] = compare(query, [one], lambda one: self._corpus(one.encoder))
            if column.trace is None:
                refused[method] = column.refused
            else:
                runs[_free(method, runs)] = self._run(column.trace, one.encoder, log)
        return BookComparison(runs, refused)

    def _own(self, run: BookRun, query: str) -> BookRun:
        """A run of this question over these chunks. Raises BadRequest for any other."""
        if run.query != query:
            raise BadRequest(f"the run asked {run.query!r}, not {query!r}; compare runs of one question")
        if not self.workspace.is_cut_as(run.workspace.documents, run.workspace.tables):
            raise BadRequest("the run searched other chunks than this book's; ask this book and compare that")
        return run

    def bring(
        self, source: str | Path | Sequence[str | Path | ForeignRun], method: str = ""
    ) -> list[BookRun]:
        """Runs of another retriever, out of files (see `core.runs.foreign.files`) or as they are, which the
        log then keeps. What of the files can't be read is told in `notices`. Raises BadRequest.
        """
        given = _several(source, (str, PathLike, ForeignRun), "brought", "a file's path or a run")
        runs = [checked_run(one) for one in given if isinstance(one, ForeignRun)]
        if paths := [_path(one) for one in given if not isinstance(one, ForeignRun)]:
            runs += read_foreign(files_of(paths), method, self._left_out.append)
        return [self._brought(one) for one in self.keep(runs)]

    def keep(self, runs: Sequence[ForeignRun]) -> list[Brought]:
        """Logs runs of another retriever, their passages found again."""
        brought = bring(runs, self.workspace, self.agent.spec.name, places=self._places)
        with closing(open_log(self.log_path)) as log:
            return [log_brought(log, one, self.workspace, self.agent, None) for one in brought]

    def _brought(self, one: Brought) -> BookRun:
        texts = {step.chunk_id: step.text for step in one.trace.steps}
        answer = {} if one.run.answer is None else {"text": one.run.answer.strip(), "by": one.run.method}
        reading = EvidenceAnswer.from_json({**answer, "citations": []}, texts)
        return BookRun(one.trace, self.workspace, reading, None, one.run_id, found_sentence([one]))

    def _run(self, trace: Trace, encoder: DualEncoder, log: bool) -> BookRun:
        workspace, run_id = self.workspace, ""
        [reading] = answers_to(self._reader, [trace], [workspace])
        if log:
            with closing(open_log(self.log_path)) as opened:
                run_id = log_trace(opened, trace, workspace, encoder, reading)
        notice = (
            cut_sentence(encoder, trace.started.query) if facts_of(trace.started.method).has_vectors else ""
        )
        return BookRun(trace, workspace, reading, completeness(self.agent.spec, trace), run_id, notice)

    @cached_property
    def _places(self) -> Places:
        return Places(self.workspace)

    @cached_property
    def _reader(self) -> Reader:
        return load_reader(device=str(self.agent.device))

    def _corpus(self, encoder: DualEncoder) -> Corpus:
        """The chunks under an encoder's vectors, embedded when first asked for."""
        if encoder.fingerprint not in self._corpora:
            self._corpora[encoder.fingerprint] = finish(index_workspace(self.workspace, encoder)).corpus
        return self._corpora[encoder.fingerprint]


def _table(heads: Sequence[str], rows: Sequence[Node]) -> Node:
    return h("table", h("thead", h("tr", *(h("th", head) for head in heads))), h("tbody", *rows))


def _together(*nodes: Node | None) -> str:
    return html_of(h("div", *nodes))


def _size(run: BookRun) -> str:
    return counted(len(run.trace.evidence), "chunk")


def _free(name: str, taken: Mapping[str, object]) -> str:
    """The name, or with a number where it is taken."""
    names = chain([name], (f"{name} ({number})" for number in count(2)))
    return next(one for one in names if one not in taken)


def _several(given: Any, kinds: tuple[type, ...], done: str, wanted: str) -> list[Any]:
    """One of these kinds or several, as a list. Raises BadRequest for anything else."""
    alone = isinstance(given, (bytes, *kinds)) or not isinstance(given, Iterable)
    listed = [given] if alone else list(given)
    for one in listed:
        if not isinstance(one, kinds):
            raise BadRequest(f"{type(one).__name__} can't be {done}; give {wanted}, or several")
    return listed


def _path(named: str | PathLike[str]) -> Path:
    """Of a file. Raises BadRequest for an address, and for a text in place of a path."""
    words = str(named)
    if re.match(r"[A-Za-z][\w+.-]+://", words):
        raise BadRequest(f"{shorten(words, 80)} is an address, and none is fetched; download it first")
    if "\0" in words or (len(words) > 255 and not os.path.exists(words)):
        raise BadRequest(
            f"{shorten(words, 80)!r} has {len(words):,} characters and is no file's path; save a text as a"
            " file and name that"
        )
    return Path(named)


def open_book(
    source: str | Path | Document | Sequence[str | Path | Document],
    agent: str | Path | None,
    device: str | None,
    log: Path | None,
) -> Book:
    """See `core.open`."""
    given = _several(source, (str, PathLike, Document), "opened", "a file's path or a document")
    documents: list[Document] = []
    with Converter() as converter:
        for one in given:
            if isinstance(one, Document):
                documents.append(one)
            else:
                path = _path(one)
                documents += read_documents(file_bytes(path), path.name, converter).values()
    if not documents:
        raise BadDocument("no documents were given; name at least one file")
    encoders = Encoders(agent, device)
    choice, encoder = encoders.choice(documents[0])
    workspace = finish(chunk_documents(documents, encoder))
    return Book(workspace, encoder, choice.method, encoders, log or default_log_path())
