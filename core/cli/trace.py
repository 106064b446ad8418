"""`python -m core trace`: runs of the agent as JSON lines."""

from __future__ import annotations

import argparse
import time
from itertools import islice

from core.answer.evidence import answer_evidence, found_order
from core.answer.reader import load_reader
from core.base.config import check_query
from core.base.errors import BadRequest
from core.base.events import fold
from core.cli.common import check_targets, named_log, print_json, say
from core.cli.flags import AS_JSON, FILE, JSON_LINES, add_cluster_flag, add_episode_flags, add_inputs
from core.cli.inputs import agent_of, config_of, episode_seed, keep_run, questions, read_queries
from core.cli.trec import found_lines, line_file
from core.encode.encoder import DualEncoder, load_encoder
from core.lab.evaluate.completeness import completeness
from core.methods.qrag.agent import Agent
from core.methods.qrag.episode import Episode
from core.methods.qrag.retriever import AgentRetriever
from core.methods.registry import retrieve_all
from core.runs.again.records import answers_to
from core.views.question import cut_sentence
from core.views.report import trace_json

_BATCH = 16
"""Episodes whose states are embedded together."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `trace`."""
    add = parser.add_argument
    add_inputs(parser, with_corpus=True)
    add_cluster_flag(parser)
    add_episode_flags(parser)
    add(
        "--within",
        type=float,
        metavar="SECONDS",
        help="embed no longer than this before asking what is there by then, and what shares most words with"
        " the question; the JSON says which share was searched, and the next command goes on from there",
    )
    each = 'with --corpus, in place of --query: a line {"_id", "text"} each, as BEIR has them'
    add("--queries", **JSON_LINES, help=each)
    add("--run", **FILE, help="with --queries: write the documents that were found as a TREC run")
    add("--full", action="store_true", help="Q and position of all chunks at every step")
    add("--json", **AS_JSON)
    parser.set_defaults(func=run_trace)


def run_trace(args: argparse.Namespace) -> int:
    """Runs the agent, one query or a batch."""
    if args.corpus is not None:
        return _trace_corpus(args)
    if args.cluster is not None or args.queries is not None or args.run is not None:
        raise BadRequest(
            "--cluster, --queries and --run are for what embed-corpus made; name that with --corpus"
        )
    began = time.perf_counter()
    encoder, read = agent_of(args)
    loading = 1000 * (time.perf_counter() - began) - (0 if read is None else read.milliseconds)
    retriever = AgentRetriever(Agent(encoder))
    reader = load_reader(device=args.device)
    asked = questions(args, encoder, read)
    with named_log(args.log) as log:
        while batch := list(islice(asked, _BATCH)):
            corpora = [question.corpus(encoder) for question in batch]  # may bound what a config searches
            pairs = zip(batch, corpora, strict=True)
            episodes = [Episode(question.query, corpus, question.config) for question, corpus in pairs]
            ran = list(zip(batch, retrieve_all(retriever, episodes), strict=True))
            began = time.perf_counter()
            workspaces = [question.workspace for question in batch]
            answers = answers_to(reader, [trace for _, trace in ran], workspaces)
            answering = 1000 * (time.perf_counter() - began) / len(ran)
            for (question, trace), answer in zip(ran, answers, strict=True):
                _say_cut(encoder, question.query, question.id)
                spent = {"steps": trace.milliseconds, "answer": answering}
                timings = {"loading": loading, **question.timings, **spent}
                likely = completeness(encoder.spec, trace)
                result = trace_json(
                    trace, timings=timings, full=args.full, answer=answer, completeness=likely
                )
                result |= question.sources(trace.chosen)
                print_json({"id": question.id, **result} if args.episodes else result)
                keep_run(log, trace, question, encoder, answer)
    return 0


def _trace_corpus(args: argparse.Namespace) -> int:
    """Runs the agent over a corpus on disk, in this process or on a cluster."""
    from core.integrations.cluster.agent import ShardedAgent
    from core.integrations.cluster.parts import CorpusParts, EmbeddedCorpus
    from core.integrations.cluster.workers import opened_index

    if (args.query is None) == (args.queries is None) or args.log is not None or args.within is not None:
        raise BadRequest(
            "--corpus takes one of --query and --queries, and neither --log nor --within; put the flags right"
        )
    if args.run is not None and args.queries is None:
        raise BadRequest("--run names queries by their ids; give them with --queries")
    check_targets([args.run], [args.queries])
    if args.queries is None:
        check_query(args.query)
        queries: list[tuple[str | None, str]] = [(None, args.query)]
    else:
        queries = [*read_queries(args.queries)]
    parts = CorpusParts(args.corpus)
    encoder = load_encoder(args.checkpoint or parts.plan.checkpoint, args.device)
    if encoder.vector_fingerprint != parts.plan.vectors:
        raise BadRequest(
            f"{args.corpus} was embedded by {parts.plan.checkpoint} as {parts.plan.vectors}, not as"
            f" {encoder.vector_fingerprint}; name that checkpoint, or set QRAG_ENGINE to that engine"
        )
    config = config_of(args, encoder.spec, len(parts))
    agent = Agent(encoder) if args.full else ShardedAgent(encoder)
    retriever, reader = AgentRetriever(agent), load_reader(device=args.device)
    with line_file(args.run) as keep_found, opened_index(parts, encoder.spec, args.cluster) as index:
        corpus = EmbeddedCorpus(parts, index)
        for query_id, query in queries:
            _say_cut(encoder, query, query_id)
            seed = config.seed if query_id is None else episode_seed(config.seed, query_id)
            trace = fold(retriever.retrieve(query, corpus, config.with_(seed=seed)))
            evidence = {chunk_id: corpus.text(chunk_id) for chunk_id in trace.evidence}
            [answer] = answer_evidence(reader, [query], [evidence], [found_order(trace)])
            timings, likely = {"steps": trace.milliseconds}, completeness(encoder.spec, trace)
            result = trace_json(trace, timings=timings, full=args.full, answer=answer, completeness=likely)
            titles = {chunk_id: corpus.title(chunk_id) for chunk_id in evidence}
            named = {} if query_id is None else {"id": query_id}
            print_json({**named, **result, "documents": {str(key): name for key, name in titles.items()}})
            if query_id is not None:
                names = (titles[chunk_id] for chunk_id in trace.picks)
                keep_found(found_lines(query_id, names, encoder.spec.name))
    return 0


def _say_cut(encoder: DualEncoder, query: str, named: str | int | None) -> None:
    """`named`: among several questions."""
    if cut := cut_sentence(encoder, query):
        say(cut if named is None else f"{named}: {cut}")
