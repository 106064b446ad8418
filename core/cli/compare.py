"""`python -m core compare`: several methods at equal size of evidence."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace

from core.answer.protocol import Reader
from core.answer.reader import load_reader
from core.base.config import RESRAG_LLM
from core.base.errors import BadRequest
from core.cli.common import named_log, print_json, say
from core.cli.flags import AS_JSON, COUNT, add_episode_flags, add_inputs, add_llm_flags, llm_of
from core.cli.inputs import Question, agent_of, keep_run, questions
from core.cli.sparc import keep_sparc, sparc_contestant
from core.corpus.index import Corpus
from core.encode.encoder import DualEncoder, load_encoder
from core.methods.registry import METHODS, PLAIN, check_names, notice_of, vectors_of
from core.methods.resrag.llm.policy import CONTEXT_TOKENS, LlmEvidenceSet
from core.methods.sparc.retriever import SPARC, SparcRetriever
from core.runs.again.records import answers_to
from core.runs.whatif.comparison import Contestant, columns_json, compare, contestant
from core.views.findings import Column


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `compare`."""
    add = parser.add_argument
    add_inputs(parser)
    add_episode_flags(parser)
    add("--methods", required=True, metavar="NAME,...", help=f"of {', '.join(METHODS)}")
    add("--k", **COUNT, help="most chunks of every method but threshold (default: the step budget)")
    add_llm_flags(parser)
    add(
        "--llm-context",
        **COUNT,
        default=CONTEXT_TOKENS,
        help=f"tokens that the language model of {RESRAG_LLM} may read and write (default: %(default)s)",
    )
    add("--json", **AS_JSON)
    parser.set_defaults(func=run_compare)


def run_compare(args: argparse.Namespace) -> int:
    """Prints an object a question. Exit status 2 when a method refused; the rest is printed all the same.
    Raises what the first refused with where nothing is left.
    """
    names = list(dict.fromkeys(name.strip() for name in args.methods.split(",")))
    check_names(names)
    llm = llm_of(args)
    if RESRAG_LLM in names and llm is None:
        raise BadRequest(
            f"method {RESRAG_LLM} asks a language model; name one with --llm-url and --llm-model, or"
            " --llm-local"
        )
    encoder, read = agent_of(args)
    plain = _beside(encoder, PLAIN, args)
    searched = {name: _beside(encoder, vectors_of(name, encoder.spec.name), args) for name in names}
    reader, has_refused = load_reader(device=args.device), False
    with named_log(args.log) as log:
        for question in questions(args, encoder, read):

            def one_of(name: str, question: Question = question) -> Contestant:
                if name == SPARC:
                    return sparc_contestant(question, encoder, plain, load_reader(device=args.device), llm)
                if name == RESRAG_LLM:
                    chooser = LlmEvidenceSet(llm, plain, context_tokens=args.llm_context)
                    return Contestant(name, chooser, plain, question.config.with_(stop_threshold=None))
                return contestant(name, encoder, searched[name], question.config)

            contestants = [one_of(name) for name in names]
            found = compare(question.query, contestants, _corpora(question))
            columns = _answered(reader, question, list(found))
            methods = columns_json(columns, question.workspace)
            for one, column in zip(contestants, columns, strict=True):
                if column.trace is None:
                    if not methods and not args.episodes:
                        raise BadRequest(column.refused)
                    say(f"{one.name}: {column.refused}")
                    has_refused = True
                    continue
                if notice := notice_of(column.trace):
                    say(notice)
                if isinstance(one.retriever, SparcRetriever) and one.retriever.trace is not None:
                    methods[one.name]["answer"] = one.retriever.trace.answer or None
                    keep_sparc(log, one.retriever.trace, question, one.encoder)
                else:
                    keep_run(log, column.trace, question, one.encoder, column.answer)
            chosen = {i for column in columns if column.trace is not None for i in column.trace.chosen}
            result = {"query": question.query, "methods": methods, **question.sources(chosen)}
            print_json({"id": question.id, **result} if args.episodes else result)
    return 2 if has_refused else 0


def _beside(encoder: DualEncoder, name: str, args: argparse.Namespace) -> DualEncoder:
    """The checkpoint `name`; an agent that isn't trained is its own plain one."""
    return encoder if name == PLAIN and not encoder.spec.trained else load_encoder(name, args.device)


def _answered(reader: Reader, question: Question, columns: Sequence[Column]) -> list[Column]:
    """Columns that found something, or refused, with the reader's answers."""
    traces = [column.trace for column in columns if column.trace is not None]
    answers = iter(answers_to(reader, traces, [question.workspace] * len(traces)))
    return [column if column.trace is None else replace(column, answer=next(answers)) for column in columns]


def _corpora(question: Question) -> Callable[[Contestant], Corpus]:
    return lambda one: question.corpus(one.encoder)
