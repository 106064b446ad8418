"""The explorer for callers without a page.

HTTP, MCP and Python call the functions that the tabs call. A caller names documents by the id that opening
them gave and runs by their id in the log, never a path or an address. Whose they are is the visitor key's,
which every function takes and only public mode reads. Hints stay real types here, not strings: Gradio reads
the schema of HTTP and MCP off them, and off the docstrings, which app.calls.arguments completes.
"""

import base64
import binascii
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, fields, replace
from typing import Any, Literal, TypedDict, cast

import gradio as gr

from app.calls.arguments import described
from app.services.comparisons import Compared, ComparisonOrder, Comparisons, label_of_key, own_key
from app.services.experiments import Experiments
from app.services.explorer import Explorer, same_settings
from app.services.in_view import OpenDocuments, RunInView
from app.services.opener import Opener
from app.services.session import Session
from app.services.shared import Services
from app.services.sparc_runs import SparcOrder, SparcRuns
from app.services.visitors import owner_of, owner_of_user
from core.base.config import ChunkConfig, EpisodeConfig
from core.base.errors import BadRequest, Cancelled
from core.base.progress import finish
from core.ingest import ReadingConfig
from core.integrations.adapters.search import passages_of
from core.lab.evaluate.completeness import completeness_note
from core.methods.qrag.retriever import QRAG
from core.methods.sparc.config import check_sparc_config
from core.methods.sparc.events import SparcConfig
from core.runs.again.records import sparc_answer
from core.runs.log.records import Status, moment
from core.runs.log.transfer import finished_run
from core.runs.log.wire import run_lines
from core.runs.whatif.comparison import comparison_json
from core.views.question import cut_sentence

Chunker = Literal["", "structure", "sentences"]
Threshold = float | Literal["none"] | None
Count = int | Literal["none"] | None
_OR_NONE = ("stop_threshold", "review_threshold", "top_k_actions")
"""The arguments of these two types."""
Timings = dict[str, float]
"""Milliseconds by stage."""


class NoticeReply(TypedDict):
    """What reading a document left out, guessed, cut or could not read."""

    document: int | None
    """Among `titles`; null: of all."""
    sentence: str
    at: int | None
    """Character of the document's text where it stands, null for nowhere in it."""


class OpenReply(TypedDict):
    """Documents that are open now."""

    document_id: str
    agent: str
    titles: list[str]
    n_chunks: int
    n_tokens: int
    n_embedded: int
    questions: list[dict[str, Any]]
    notices: list[NoticeReply]
    timings: Timings


class RunReply(TypedDict):
    """A run as far as it went: the object of `trace --json` with its ids."""

    run_id: str
    parent_run_id: str | None
    fork_step: int | None
    document_id: str
    status: Status
    query: str
    checkpoint: str
    config: dict[str, Any]
    n_chunks: int
    stop_reason: str | None
    stop_sentence: str | None
    steps: list[dict[str, Any]]
    stop: dict[str, Any] | None
    evidence: list[int]
    completeness: float | None
    answer: dict[str, Any] | None
    timings: Timings


class SparcReply(TypedDict):
    """A SPARC run: its answer, its evidence, and the trace that the SPARC tab draws."""

    run_id: str
    document_id: str
    status: Status
    text: str
    confidence: float | None
    by: str
    citations: list[int]
    stop_reason: str | None
    evidence: list[int]
    cost: dict[str, int]
    trace: dict[str, Any]
    timings: Timings


class CompareReply(TypedDict):
    """A comparison: what the Compare tab's JSON holds by the names that were asked, with the ids of its runs."""

    run_ids: dict[str, str]
    query: str
    documents: list[dict[str, Any]]
    methods: dict[str, Any]
    refused: dict[str, str]
    chunks: list[dict[str, Any]]
    sets: dict[str, list[int]]
    overlap: dict[str, Any]
    support: dict[str, Any]
    timings: Timings


class RetrieveReply(TypedDict):
    """What the document's agent keeps for a question, for a language model to answer from."""

    run_id: str
    passages: list[dict[str, Any]]
    completeness: float | None
    note: str
    notice: str
    timings: Timings


class ImportReply(TypedDict):
    """Runs that another retriever made, now in the log."""

    runs: list[dict[str, Any]]
    notices: list[str]
    timings: Timings


class SearchReply(TypedDict):
    """A page of runs, as `runs list --json`."""

    total: int
    runs: list[dict[str, Any]]
    timings: Timings


class GetReply(TypedDict):
    """A logged run: `run` as `runs show --json`."""

    run: dict[str, Any]
    timings: Timings


class ExportReply(TypedDict):
    """A logged run as the lines of `runs export --format json`."""

    run_id: str
    jsonl: str
    timings: Timings


class Operations:
    """What callers can do, over shared services. Every public method is an endpoint; its docstring is what callers read."""

    def __init__(
        self,
        services: Services,
        comparisons: Comparisons,
        sparc: SparcRuns,
        call: Callable[[], Callable[[], bool]] = lambda: lambda: False,
    ) -> None:
        """call: of the call at hand, whether its caller has hung up, to be asked again and again and from any thread; by default none ever does."""
        self.services, self.comparisons, self.sparc, self._call = services, comparisons, sparc, call
        self.explorer = Explorer(services)

    @described(ChunkConfig, ReadingConfig)
    def open_document(
        self,
        text: str = "",
        content: str = "",
        name: str = "",
        sample: str = "",
        run_id: str = "",
        agent: str = "",
        chunker: Chunker = "",
        max_tokens: int | None = None,
        encoding: str = "",
        keep_side_matter: bool = False,
        visitor: str = "",
        request: gr.Request | None = None,
    ) -> OpenReply:
        """Opens a document: cuts it into chunks and embeds them. Give one of text, content, sample and run_id. What was opened before opens at once. How it
        is cut suits the document where chunker is empty, and the agent where max_tokens is null.

        Args:
            text: Plain text or HTML.
            content: The bytes of a file in base64: PDF, DOCX, EPUB, HTML, Markdown, text, a picture, or a zip of them.
            name: File name of the content; its extension tells the kind of a text.
            sample: File name of a document that ships with the app, for example river-chronicle.txt.
            run_id: A logged run whose documents are opened again as they were, under its agent.
            agent: Name of the agent that will search; empty for the one that suits the document.

        Returns:
            document_id for the other functions, agent, titles, n_chunks, n_tokens, n_embedded (chunks that were not known before),
            known questions with their support, notices (what reading lost or guessed: document, sentence, at), and timings in milliseconds.
        """
        owner = self._owner(visitor, request)
        given = {"text": text, "content": content, "sample": sample, "run_id": run_id}
        sources = [name for name, value in given.items() if value]
        if len(sources) != 1:
            raise BadRequest(
                f"{' and '.join(sources) or 'nothing'} {'are' if sources else 'is'} given to open; give one of"
                " text, content, sample and run_id"
            )
        if run_id:
            if agent or chunker or max_tokens or encoding or keep_side_matter:
                raise BadRequest(
                    "a run's documents open as the run had them; leave agent, chunker, max_tokens, encoding and keep_side_matter out"
                )
            opening = self.explorer.attach(run_id, owner)
        else:
            fresh = Session(owner=owner, agent_chosen=bool(agent))
            reading = ReadingConfig(encoding=encoding, keep_side_matter=keep_side_matter)
            opener = Opener(self.explorer, fresh, agent, chunker, max_tokens, reading)
            if text:
                opening = opener.pasted(text)
            elif sample:
                opening = opener.sample(sample)
            else:
                opening = opener.content(_bytes(content), _file_name(name))
        return _open_reply(self.explorer.documents(finish(opening, self._while_wanted())))

    @described(EpisodeConfig)
    def run_agent(
        self,
        document_id: str,
        query: str,
        step_budget: int | None = None,
        temperature: float | None = None,
        stop_threshold: Threshold = None,
        review_threshold: Threshold = None,
        seed: int | None = None,
        beam_width: int | None = None,
        top_k_actions: Count = None,
        use_positions: bool | None = None,
        forced: list[list[int]] | None = None,
        forbidden: list[int] | None = None,
        visitor: str = "",
        request: gr.Request | None = None,
    ) -> RunReply:
        """Runs the agent over an open document until it stops: a whole run, logged. What is null is as the agent has it.

        Returns:
            The run as trace --json prints it: run_id, steps with chunk_id, q_value and text, evidence (chunk ids in document order), stop_reason,
            completeness (how likely the evidence holds all that the question needs, null where nothing is known of it),
            timings in milliseconds.
        """
        settings = _given(locals(), _settings(EpisodeConfig))
        session = Session(
            corpus=document_id, forbidden=tuple(forbidden or ()), owner=self._owner(visitor, request)
        )
        settings["forced"] = tuple(map(_pair, forced or ()))
        settings["forbidden"] = session.forbidden
        usual = self.explorer.usual_config(self.explorer.documents(session))
        return self._advance(session, query, usual.with_(**settings), None)

    @described()
    def retrieve(
        self,
        document_id: str,
        query: str,
        k: int | None = None,
        visitor: str = "",
        request: gr.Request | None = None,
    ) -> RetrieveReply:
        """Finds passages that answer a question, in the order in which a careful reader would need them, and says how likely they are complete: with a low
        completeness, answer that the document doesn't say, or ask again in other words.

        Args:
            k: Most passages; null: as many as the agent finds worth taking.

        Returns:
            passages (text, title, headings, start, end: characters of the document's text, chunk_id, step, score, which is Q), completeness (how likely
            the passages hold all that the question needs, from 0 to 1, null where nothing is known of it), note (that in a sentence),
            notice (that the question is longer than the agent reads, mostly empty), run_id, and timings in milliseconds.
        """
        session = Session(corpus=document_id, owner=self._owner(visitor, request))
        documents = self.explorer.documents(session)
        config = self.explorer.usual_config(documents)
        if k is not None:
            if k < 1:
                enough = "leave it out for as many as the agent finds worth taking"
                raise BadRequest(f"k={k} must be 1 or more; {enough}")
            config = config.with_(step_budget=min(k, documents.n_searched))
        _, run = self._went(session, query, config, None)
        found = passages_of(run.trace, documents.workspace)
        passages = [{"text": passage.text, "score": passage.score, **passage.metadata} for passage in found]
        return {
            "run_id": run.run_id,
            "passages": passages,
            "completeness": run.completeness,
            "note": completeness_note(run.completeness),
            "notice": cut_sentence(documents.agent.encoder, query),
            "timings": {**documents.milliseconds, "steps": run.trace.milliseconds},
        }

    @described()
    def import_run(
        self,
        document_id: str,
        content: str,
        name: str = "run.jsonl",
        queries: str = "",
        passages: str = "",
        qrels: str = "",
        method: str = "",
        visitor: str = "",
        request: gr.Request | None = None,
    ) -> ImportReply:
        """Takes in what another retriever found in an open document, as logged runs that every page shows. What it returned is found again by its place or
        text; what isn't in the document is counted and kept.

        Args:
            content: A TREC run, or a line of JSON a run: query, retrieved (a list of texts, chunk ids, pairs of offsets, or objects with text and score), and
                where known answer and gold. Or OpenInference spans, as OTLP in JSON or as Phoenix exports them.
            name: What the content's file is called.
            queries: For a TREC run, the words of its queries: a line {"_id", "text"} each, or id and text with a blank between.
            passages: For a TREC run, the text of its passages: a line {"_id", "text"} each.
            qrels: For a TREC run, which passages are relevant.
            method: Name of the retriever; empty: as the content says.

        Returns:
            runs (run_id, query, method, evidence as chunk ids, support, n_returned, n_missing: passages that are not in the document, n_missing_gold),
            notices (what of the content could not be read), and timings in milliseconds.
        """
        session, began = Session(corpus=document_id, owner=self._owner(visitor, request)), time.perf_counter()
        beside = {"queries.jsonl": queries, "passages.jsonl": passages, "qrels.txt": qrels}
        given = {name: content} | {key if key != name else f"other-{key}": beside[key] for key in beside}
        for argument, words in (("name", name), ("method", method)):
            _encoded(words, argument)
        files = {key: _encoded(text, key) for key, text in given.items() if text}
        documents, report, left_out = self.explorer.documents(session), self._while_wanted(), list[str]()
        brought = Experiments(self.services).bring(files, documents, method, report, left_out.append)
        runs = [one.to_json() for one in brought]
        return {"runs": runs, "notices": left_out, "timings": _reading(began)}

    @described(EpisodeConfig)
    def step_run(
        self,
        run_id: str = "",
        document_id: str = "",
        query: str = "",
        step_budget: int | None = None,
        temperature: float | None = None,
        stop_threshold: Threshold = None,
        review_threshold: Threshold = None,
        seed: int | None = None,
        beam_width: int | None = None,
        top_k_actions: Count = None,
        use_positions: bool | None = None,
        forbidden: list[int] | None = None,
        visitor: str = "",
        request: gr.Request | None = None,
    ) -> RunReply:
        """Takes one step: of the run named, or of a new one over a document. With a setting changed, a larger step_budget where it has stopped, a run goes
        on as a child run that keeps its steps; the reply names it. So does one that was cancelled. What is null is as the run has it, or the agent. A beam
        above 1 makes all steps at once.

        Args:
            run_id: The run to go on with; empty to begin one.
            document_id: Of an open document, to begin a run over it; empty to go on.
            query: The question of a new run; empty to go on.

        Returns:
            The run as run_agent gives it; stop_reason is null while it can go on.
        """
        changes = _given(locals(), _settings(EpisodeConfig))
        owner = self._owner(visitor, request)
        if bool(run_id) == bool(document_id):
            both = "both of run_id and document_id are" if run_id else "neither of run_id and document_id is"
            raise BadRequest(f"{both} given; give the one to go on with")
        run = None
        if run_id:
            session = finish(self.explorer.attach(run_id, owner), self._while_wanted())
            run = self.explorer.run_of(session)
            assert run is not None  # attaching puts it in view
            if query and not run.asks(query):
                raise BadRequest(
                    f"run {run.run_id[:8]} asks another question; leave query out to go on with it, or give document_id to begin a run"
                )
            query, config = run.trace.started.query, run.config
        else:
            session = Session(corpus=document_id, owner=owner)
            config = self.explorer.usual_config(self.explorer.documents(session))
        if forbidden is not None:
            session = replace(session, forbidden=tuple(forbidden))
        config = config.with_(**changes | {"forbidden": session.forbidden})
        if run is not None and run.trace.stopped is not None and same_settings(run.config, config):
            raise BadRequest(
                f"run {run.run_id[:8]} has stopped; change a setting, such as step_budget={config.step_budget + 1}, to go on from it"
            )
        return self._advance(session, query, config, 1)

    @described(SparcConfig)
    def run_sparc(
        self,
        document_id: str,
        query: str,
        width: int | None = None,
        depth: int | None = None,
        k: int | None = None,
        strategies: list[str] | None = None,
        first_round: Literal["", "question", "rewrite"] = "",
        max_tokens: int | None = None,
        max_calls: int | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        llm: str = "",
        visitor: str = "",
        request: gr.Request | None = None,
    ) -> SparcReply:
        """Runs SPARC-RAG over an open document: rounds of branches that search at the same time, until an answer is accepted; a whole run, logged.

        A language model rewrites, answers and judges where there is one, else rules and the reader that ships. What is null is as the SPARC tab begins with.

        Returns:
            run_id, status, text (the answer) with confidence, by (who decided) and citations (chunk ids), stop_reason, evidence (chunk ids), cost,
            trace with every event of every branch, and timings in milliseconds.
        """
        settings, owner = _given(locals(), _settings(SparcConfig)), self._owner(visitor, request)
        documents = self.explorer.documents(Session(corpus=document_id, owner=owner))
        model = self.services.language_models.named(llm, owner)
        settings["strategies"] = self.sparc.strategies(documents) if strategies is None else tuple(strategies)
        config = check_sparc_config(SparcConfig(**settings))
        run = self.sparc.run(documents, SparcOrder(query, config), model, self._while_wanted())
        self.services.log.flush([run.run_id])
        cost = run.trace.cost
        reply = {
            "run_id": run.run_id,
            "document_id": documents.token,
            "status": run.status,
            **sparc_answer(run.trace),
            "stop_reason": None if run.trace.stopped is None else run.trace.stopped.reason,
            "evidence": list(run.evidence),
            "cost": {name: getattr(cost, name) for name in ("calls", "prompt_tokens", "completion_tokens")},
            "trace": run.trace.to_json(),
            "timings": {**documents.milliseconds, "agents": cost.milliseconds},
        }
        return cast(SparcReply, reply)

    @described(ComparisonOrder)
    def compare(
        self,
        document_id: str,
        query: str,
        methods: list[str] | None = None,
        k: int | None = None,
        own_stop: bool = False,
        llm: str = "",
        visitor: str = "",
        request: gr.Request | None = None,
    ) -> CompareReply:
        """Asks several methods the same question over the same chunks, at equal size of evidence. Each column is a logged run. What is null is as
        the Compare tab begins with.

        Args:
            methods: Any of {methods}, where qrag is the document's own agent and qrag:NAME another.

        Returns:
            By method, under the name that was asked for, its label, evidence, ranked choices, n_tokens and milliseconds; run_ids; sets (found by all, some,
            one), overlap, chunks with who found them, support where it is known, and timings in milliseconds.
        """
        owner = self._owner(visitor, request)
        documents = self.explorer.documents(Session(corpus=document_id, owner=owner))
        model, agent = self.services.language_models.named(llm, owner), documents.agent.spec.name
        own, names = own_key(agent), methods
        if names is None:
            names = [QRAG.name if key == own else key for key in self.comparisons.usual(agent)]
        keys = [own if name == QRAG.name else name for name in names]
        if {QRAG.name, own} <= {*names}:
            raise BadRequest(f"{QRAG.name} and {own} are one method here; leave one of the two out")
        k = self.comparisons.usual_k(documents) if k is None else k
        order = ComparisonOrder(query.strip(), tuple(keys), k, own_stop)
        refs = self.comparisons.run(documents, order, self._while_wanted(), model)
        self.comparisons.settle(refs)
        asked = {label_of_key(key): name for key, name in zip(keys, names, strict=True)}
        shown = self.comparisons.shown_columns(Compared(documents.token, order, refs))
        columns = [replace(column, name=asked[column.name]) for column in shown]
        runs = {column.name: column.run for column in columns if column.run is not None}
        for ref in refs:
            self.services.leave_run(ref.run)
        support = next((run.gold for run in runs.values()), ())
        values = comparison_json(order.query, columns, documents.workspace, support)
        for label, name in asked.items():
            if name in values["methods"]:
                values["methods"][name]["label"] = label
        timings = _summed([documents, *(run.documents for run in runs.values())])
        timings["steps"] = sum(column.milliseconds or 0.0 for column in columns)
        run_ids = {name: run.run_id for name, run in runs.items()}
        return cast(CompareReply, {"run_ids": run_ids, "support": {}, **values, "timings": timings})

    @described()
    def search_runs(
        self,
        text: str = "",
        method: str = "",
        checkpoint: str = "",
        document: str = "",
        status: Status | Literal[""] = "",
        since: str = "",
        until: str = "",
        hit: bool | None = None,
        limit: int = 50,
        offset: int = 0,
        visitor: str = "",
        request: gr.Request | None = None,
    ) -> SearchReply:
        """Your logged runs, newest first. Filters that are empty don't filter.

        Args:
            text: Part of the question.
            method: One of {methods}; of import_run imported:NAME, without scores imported-ranks:NAME.
            checkpoint: Name of the agent.
            document: The document's SHA-256, or part of its title.
            status: running, complete, cancelled or failed.
            since: Begun on this day or later, as 2026-03-31, or at this time, as 2026-03-31 14:30.
            until: Begun on this day or earlier, or before this time.
            hit: true for runs that chose all support of their question, false for those that did not; null for all runs.
            limit: Most runs in the reply, 1 to 1000.
            offset: Runs to pass over, to turn pages.

        Returns:
            total (how many runs match), runs as runs list --json prints them, and timings in milliseconds.
        """
        filters = _given(locals(), ("text", "method", "checkpoint", "document", "status", "hit"))
        owner, began = self._owner(visitor, request), time.perf_counter()
        page = self.services.own_log.search(
            owner=owner,
            **filters,
            since=moment(since) if since else None,
            until=moment(until, end=True) if until else None,
            limit=limit,
            offset=offset,
        )
        return cast(SearchReply, {**page.to_json(), "timings": _reading(began)})

    @described()
    def get_run(self, run_id: str, visitor: str = "", request: gr.Request | None = None) -> GetReply:
        """A logged run with its record and all its events, yours or one that was shared.

        Returns:
            run as runs show --json prints it, and timings in milliseconds.
        """
        owner = self._owner(visitor, request)
        began = time.perf_counter()
        run = self.services.own_log.get(run_id, owner)
        return {"run": run.to_json(), "timings": {**_reading(began), "steps": run.trace.milliseconds}}

    @described()
    def export_run(
        self, run_id: str, include_text: bool = False, visitor: str = "", request: gr.Request | None = None
    ) -> ExportReply:
        """A logged run that has ended, with Q of all chunks, in the lines that runs import takes back in.

        Args:
            include_text: true brings the texts of documents and chunks along; else titles and the question are all the text in it.

        Returns:
            jsonl, the lines as one text, and timings in milliseconds.
        """
        owner = self._owner(visitor, request)
        began = time.perf_counter()
        run = finished_run(self.services.own_log, run_id, owner)
        lines = "".join(run_lines(run if include_text else run.without_text(), set()))
        return {"run_id": run_id, "jsonl": lines, "timings": _reading(began)}

    def _while_wanted(self) -> Callable[[Any], None]:
        """Takes the progress of the call at hand, to which nobody listens. Raises Cancelled once its caller has hung up."""
        hung_up = self._call()

        def report(_: Any) -> None:
            if hung_up():
                raise Cancelled

        return report

    def _owner(self, visitor: str, request: gr.Request | None) -> str | None:
        """Whoever signed in, else the holder of the key."""
        settings = self.services.settings
        name = None if request is None else request.username
        return owner_of_user(settings, name) if name else owner_of(settings, visitor)

    def _went(
        self, session: Session, query: str, config: EpisodeConfig, steps: int | None
    ) -> tuple[Session, RunInView]:
        """The run as far as it went, logged."""
        report = self._while_wanted()
        with closing(self.explorer.advance(session, query, config, steps)) as sessions:
            for at in sessions:
                session = at
                report(at)
        run = self.explorer.run_of(session)
        assert run is not None  # it is the newest, and the newest is never forgotten
        self.services.log.flush([run.run_id])
        if run.ended:
            self.services.leave_run(run.token)
        return session, run

    def _advance(self, session: Session, query: str, config: EpisodeConfig, steps: int | None) -> RunReply:
        session, run = self._went(session, query, config, steps)
        run = self.services.answer(run)
        reply = {
            **run.to_json(),
            "parent_run_id": run.parent_run_id,
            "fork_step": run.fork_step if run.parent_run_id else None,
            "document_id": session.corpus,
            "status": "complete" if run.trace.stopped else "running",
        }
        return cast(RunReply, reply)


def _settings(config: type) -> list[str]:
    return [field.name for field in fields(config)]


def _given(arguments: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Of a call's arguments those among the names that its caller gave; where "none" is a value, it is None."""
    values = {name: arguments[name] for name in names if arguments.get(name) not in (None, "")}
    return {name: None if name in _OR_NONE and value == "none" else value for name, value in values.items()}


def _pair(choice: list[int]) -> tuple[int, int]:
    if len(choice) != 2:
        raise BadRequest(
            f"forced choice {choice[:5]} must be a pair: the step, from 1 on, and the id of the chunk to choose at it"
        )
    return choice[0], choice[1]


def _bytes(content: str) -> bytes:
    try:
        return base64.b64decode("".join(content.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest(
            f"content is no base64 ({error}); encode the bytes of the file, or give its text as text"
        ) from error


def _encoded(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(
            f"{name[:80]!a} holds half a character at position {error.start + 1}; send it again as plain text"
        ) from error


def _file_name(name: str) -> str:
    if not name.strip():
        raise BadRequest("content came without a name; give the file's name, whose extension tells its kind")
    _encoded(name, "name")
    return name


def _open_reply(documents: OpenDocuments) -> OpenReply:
    workspace = documents.workspace
    notices = [
        NoticeReply(document=i, sentence=notice.sentence, at=notice.at)
        for i, document in enumerate(workspace.documents)
        for notice in document.notices
    ]
    of_all = [NoticeReply(document=None, sentence=sentence, at=None) for sentence in documents.notices]
    return {
        "document_id": documents.token,
        "agent": documents.agent.spec.name,
        "titles": [document.title for document in workspace.documents],
        "n_chunks": len(workspace),
        "n_tokens": workspace.n_tokens,
        "n_embedded": documents.n_embedded,
        "questions": [asdict(question) for question in documents.questions],
        "notices": [*notices, *of_all],
        "timings": documents.milliseconds,
    }


def _summed(opened: Collection[OpenDocuments]) -> Timings:
    """What opening took, the same documents counted once."""
    timings: Timings = {}
    for documents in {documents.token: documents for documents in opened}.values():
        for stage, milliseconds in documents.milliseconds.items():
            timings[stage] = timings.get(stage, 0.0) + milliseconds
    return timings


def _reading(began: float) -> Timings:
    return {"log": 1000 * (time.perf_counter() - began)}
