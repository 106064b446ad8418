"""`python -m core sparc`.

One question through SPARC, its trace as JSON; and the evaluations behind `study sparc`. Dense retrieval
searches the untrained encoder's vectors and Q-RAG the checkpoint's, and rounds are told on stderr as they go.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random

import numpy as np

from core.answer.protocol import Reader
from core.answer.reader import load_reader
from core.base.errors import BadRequest
from core.base.types import workspace_of_chunks
from core.cli.common import count_printer, named_log, print_json, say
from core.cli.flags import AS_JSON, COUNT, FOLDER, add_inputs, add_llm_flags, add_settings, flag_help, llm_of
from core.cli.inputs import Question, agent_of, questions
from core.corpus.index import Corpus
from core.corpus.opening import index_of, vector_store
from core.encode.cache import embed_chunks
from core.encode.encoder import DualEncoder, load_encoder
from core.lab.sparc.evaluation import Ground, SparcRow, SparcVariation, Tally, evaluate_sparc
from core.lab.tasks.pooled import pooled
from core.lab.tasks.qa_sets import read_qa
from core.llm.protocol import Llm
from core.methods.sparc.build import build_agents, build_retrievals
from core.methods.sparc.config import STRATEGIES, check_sparc_config
from core.methods.sparc.events import (
    Answered,
    Judged,
    Merged,
    Retrieved,
    RoundStarted,
    SparcConfig,
    SparcEvent,
    SparcStopped,
    Strategy,
)
from core.methods.sparc.retrievals import Retrievals
from core.methods.sparc.retriever import SPARC, SparcRetriever
from core.methods.sparc.run import run_sparc
from core.methods.sparc.trace import SparcTrace, extended
from core.runs.again.records import log_sparc
from core.runs.log import RunLog
from core.runs.whatif.comparison import Contestant

PAGES = "multi-hop"
"""The agent that was trained on paragraphs of an encyclopedia, which the pooled corpora consist of."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `sparc`."""
    add = parser.add_argument
    add_inputs(parser)
    add_settings(parser, SparcConfig, without=("k", "temperature"))
    about, usual = partial(flag_help, SparcConfig), SparcConfig()
    add("--k", **COUNT, dest="per_search", default=usual.k, help=about("k", str(usual.k)))
    add("--strategies", metavar="NAME,...", help=about("strategies", "all that the checkpoint serves"))
    warmth = about("temperature", str(usual.temperature))
    add("--llm-temperature", type=float, metavar="X", default=usual.temperature, help=warmth)
    who = "who answers where no language model does (default: the reader that ships)"
    add("--reader", **FOLDER, help=who)
    add_llm_flags(parser)
    add("--json", **AS_JSON)
    parser.set_defaults(
        func=run_sparc_command, step_budget=1, temperature=None, beam_width=1, top_k_actions=None
    )


def run_sparc_command(args: argparse.Namespace) -> int:
    """Prints the trace of each question."""
    llm = llm_of(args)
    encoder, read = agent_of(args)
    config = _config(args, encoder)
    plain = load_encoder("base", args.device) if encoder.spec.trained else encoder
    reader = load_reader(args.reader, args.device)
    with named_log(args.log) as log:
        for question in questions(args, encoder, read):
            retrievals = build_retrievals(config, encoder, plain, question.corpus)
            agents, corpus = build_agents(llm, reader, config), question.corpus(encoder)
            trace: SparcTrace | None = None
            for event in run_sparc(question.query, corpus, agents, retrievals, config):
                trace = extended(trace, event)
                if line := _line(event):
                    say(line)
            assert trace is not None
            values = trace.to_json()
            print_json(values if question.id is None else {"id": question.id, **values})
            keep_sparc(log, trace, question, encoder)
    return 0


def keep_sparc(log: RunLog | None, trace: SparcTrace, question: Question, encoder: DualEncoder) -> None:
    """Leaves a run of SPARC in the log, if one is named, and says under which id."""
    if log is not None:
        say(f"logged as {log_sparc(log, trace, question.workspace, encoder, label=question.label)}")


def _config(args: argparse.Namespace, encoder: DualEncoder) -> SparcConfig:
    named = _served(encoder)
    if args.strategies is not None:
        named = tuple(name.strip() for name in args.strategies.split(","))
    if "qrag" in named and not encoder.spec.trained:
        raise BadRequest(
            f"strategy qrag needs a trained agent and {encoder.spec.name} is none; name one with"
            " --checkpoint, or leave qrag out"
        )
    names = ("width", "depth", "first_round", "max_tokens", "max_calls", "seed")
    settings = {name: getattr(args, name) for name in names}
    return check_sparc_config(
        SparcConfig(**settings, k=args.per_search, strategies=named, temperature=args.llm_temperature)
    )


def sparc_contestant(
    question: Question, encoder: DualEncoder, plain: DualEncoder, reader: Reader, llm: Llm | None
) -> Contestant:
    """SPARC in a comparison, with all strategies that the encoder serves; rules decide without a model."""
    config = SparcConfig(strategies=_served(encoder))
    retrievals = build_retrievals(config, encoder, plain, question.corpus)
    agents = partial(build_agents, llm, reader)
    retriever = SparcRetriever(agents, lambda: retrievals, encoder.spec.name, config)
    retriever.prepare()
    return Contestant(SPARC, retriever, encoder, question.config)


def _served(encoder: DualEncoder) -> tuple[Strategy, ...]:
    return tuple(name for name in STRATEGIES if name != "qrag" or encoder.spec.trained)


def _line(event: SparcEvent) -> str:
    """What happened, in a line; empty for what is no news."""
    if isinstance(event, Retrieved | Answered | Judged):
        return f"round {event.round} branch {event.branch}: {_outcome(event)}"
    match event:
        case RoundStarted():
            return "\n".join(
                f"round {event.round} branch {one.branch}: {one.strategy} for {one.query!r}"
                for one in event.queries
            )
        case Merged():
            return f"round {event.round}: branch {event.best_branch} is the best; {event.reason}"
        case SparcStopped():
            return f"stopped ({event.reason}) {event.message}".strip()
        case _:
            return ""


def _outcome(event: Retrieved | Answered | Judged) -> str:
    if isinstance(event, Retrieved):
        return f"found {', '.join(str(one.chunk_id) for one in event.found) or 'nothing'}"
    if isinstance(event, Judged):
        return f"{event.verdict}; {event.reason}"
    sure = "" if event.confidence is None else f" ({event.confidence:.2f})"
    return f"{event.answer or 'no answer'}{sure}"


def sparc_rows(
    variations: Sequence[SparcVariation], args: argparse.Namespace, known: Sequence[SparcRow] = ()
) -> Iterator[SparcRow]:
    """Questions of pooled corpora through the variations, but what is `known`. Raises BadRequest,
    BadCheckpoint.
    """
    model = llm_of(args)
    llm = None if model is None else Tally(model)
    agent, plain = load_encoder(args.checkpoint or PAGES, args.device), load_encoder("base", args.device)
    reader = load_reader(args.reader, args.device)
    for name in args.tasks or ("hotpotqa", "musique"):
        part = "eval" if args.split == "test" else args.split
        questions = pooled(read_qa(name, part, args.data), f"{name}-pooled")
        texts, title = questions[0].chunks, questions[0].task
        workspace = workspace_of_chunks(texts, np.zeros(len(texts), np.int32), title)
        corpus, plain_corpus = (
            Corpus(workspace, index_of(tower, embed_chunks(tower, texts, vector_store(tower))))
            for tower in (agent, plain)
        )
        # so that fewer questions are the first of more
        order = Random(f"{name} {args.seed}").sample(range(len(questions)), len(questions))
        about = {"split": args.split, "seed": args.seed}
        ground = Ground(
            retrievals=Retrievals(corpus, agent=agent, plain=plain, plain_corpus=plain_corpus),
            corpus=corpus,
            agents=lambda config: build_agents(llm, reader, config),
            llm=llm,
            plain=(plain_corpus, plain),
            count=lambda texts: plain.tokenizer.count(texts).tolist(),
            about=about | {"checkpoint": agent.spec.name, "fingerprint": agent.fingerprint},
        )
        examples = [questions[row] for row in sorted(order[: args.n or 100])]
        yield from evaluate_sparc(examples, variations, ground, known, count_printer(title))
