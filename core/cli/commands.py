"""The commands themselves: each takes parsed arguments, calls the library and prints JSON lines. Returns the exit status."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.answer.evidence import EvidenceAnswer, answer_evidence
from core.answer.protocol import Reader
from core.answer.reader import load_reader
from core.cli.common import named_log, progress_printer
from core.cli.flags import add_episode_flags, add_inputs
from core.cli.inputs import Question, questions, read_files
from core.cli.sparc import sparc_contestant
from core.comparison import Column, Contestant, columns_json, compare, contestant
from core.config import CHUNKERS
from core.encode.checkpoint import find_base, find_checkpoint, read_spec
from core.encode.encoder import DualEncoder, load_encoder
from core.encode.reference import import_checkpoint
from core.encode.tokens import FastTokenizer
from core.errors import BadRequest
from core.events import Trace
from core.experiments import RunLog, default_log_path, open_reader
from core.index import Corpus
from core.ingest import chunk_document, default_chunker
from core.qrag.agent import Agent, Episode
from core.report import trace_json
from core.retrievers import METHODS, AgentRetriever, cut_short, retrieve_all
from core.runs import log_sparc, log_trace, replay_run, replay_sparc
from core.sparc.retriever import SPARC, SparcRetriever
from core.train.blend import blend
from core.types import Workspace


def add_ingest_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `ingest`."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--chunker", choices=CHUNKERS, help="default: structure for HTML and Markdown, sentences for plain text")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="most tokens of a chunk (default: the checkpoint's)")
    parser.add_argument("--checkpoint", metavar="NAME_OR_DIR", help="whose tokenizer and chunking to use")
    shape = parser.add_mutually_exclusive_group(required=True)
    shape.add_argument("--json", action="store_true", help="one JSON object a chunk, a line each")
    shape.add_argument("--text", action="store_true", help="the text that offsets refer to; one file only")
    parser.set_defaults(func=run_ingest)


def add_import_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `import-checkpoint`."""
    parser.add_argument("source", help="folder or hub id with config.yaml and model_best.pt")
    parser.add_argument("destination", type=Path)
    parser.add_argument("--base", metavar="DIR_OR_ID", help="the base encoder, where config.yaml doesn't name it rightly")
    parser.set_defaults(func=run_import)


def add_blend_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `blend`."""
    parser.add_argument("agents", nargs="+", metavar="NAME_OR_DIR", help="served as the last of them")
    parser.add_argument("--shares", type=_shares, metavar="X,...", help="one for each agent; what they leave to 1 stays the base encoder's (default: equal)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder for the agent; calibrate it afterwards")
    parser.set_defaults(func=run_blend)


def add_trace_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `trace`."""
    add_inputs(parser)
    add_episode_flags(parser)
    parser.add_argument("--full", action="store_true", help="Q and position of all chunks at every step")
    parser.add_argument("--json", action="store_true", required=True, help="the only output format so far")
    parser.set_defaults(func=run_trace)


def add_compare_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `compare`."""
    add_inputs(parser)
    add_episode_flags(parser)
    parser.add_argument("--methods", required=True, metavar="NAME,...", help=f"of {', '.join(COMPARED)}")
    parser.add_argument("--k", type=int, metavar="N", help="most chunks of every method but threshold (default: the step budget)")
    parser.add_argument("--json", action="store_true", required=True, help="the only output format so far")
    parser.set_defaults(func=run_compare)


def run_ingest(args: argparse.Namespace) -> int:
    """Prints chunks, or the text their offsets refer to."""
    names, documents = zip(*read_files(args.files), strict=True)
    if args.text:
        if len(documents) > 1:
            raise BadRequest(f"--text prints one document and got {len(documents)}; name one file")
        sys.stdout.write(documents[0].text)
        return 0
    folder = find_checkpoint(args.checkpoint)
    spec = read_spec(folder)
    tokenizer = FastTokenizer(find_base(spec.base, folder))
    configs = [spec.chunk_config(args.chunker or default_chunker(document.kind), args.max_tokens) for document in documents]
    tables = [chunk_document(document, config, tokenizer) for document, config in zip(documents, configs, strict=True)]
    for chunk in Workspace(tuple(documents), tuple(tables)):
        _print_json(
            {
                "document": names[chunk.document],
                "chunk_id": chunk.chunk_id,
                "type": chunk.type,
                "heading_path": list(chunk.heading_path),
                "text": chunk.text,
                "start": chunk.start,
                "end": chunk.end,
                "n_tokens": chunk.n_tokens,
            }
        )
    return 0


def run_import(args: argparse.Namespace) -> int:
    """Converts a checkpoint of the authors' format."""
    spec = import_checkpoint(args.source, args.destination, args.base)
    _say(f"imported {spec.name}: positions {spec.position_kind}, {spec.step_budget} steps, {spec.max_chunk_tokens} tokens a chunk")
    return 0


def run_blend(args: argparse.Namespace) -> int:
    """Writes the agent between others."""
    shares = args.shares or [1 / len(args.agents)] * len(args.agents)
    spec = blend([find_checkpoint(agent) for agent in args.agents], shares, args.out)
    parts = " and ".join(f"{share:.3g} of {agent}" for share, agent in zip(shares, args.agents, strict=True))
    _say(f"{args.out} is {parts}, served as {spec.name}; calibrate it")
    return 0


def run_trace(args: argparse.Namespace) -> int:
    """Runs the agent, one query or a batch."""
    began = time.perf_counter()
    encoder = load_encoder(args.checkpoint, args.device)
    loading = 1000 * (time.perf_counter() - began)
    retriever = AgentRetriever(Agent(encoder))
    reader = load_reader(device=args.device)
    with named_log(args.log) as log:
        for batch in _batches(questions(args, encoder)):
            episodes = [Episode(question.query, question.corpus(encoder), question.config) for question in batch]
            ran = list(zip(batch, retrieve_all(retriever, episodes), strict=True))
            began = time.perf_counter()
            answers = answer_evidence(reader, [question.query for question, _ in ran], [_evidence(question, trace) for question, trace in ran])
            answering = 1000 * (time.perf_counter() - began) / len(ran)
            for (question, trace), answer in zip(ran, answers, strict=True):
                timings = {"loading": loading, **question.timings, "steps": trace.milliseconds, "answer": answering}
                result = trace_json(trace, timings=timings, full=args.full, answer=answer)
                _print_json({"id": question.id, **result} if args.episodes else result)
                _keep(log, trace, question.workspace, encoder, answer)
    return 0


def run_compare(args: argparse.Namespace) -> int:
    """The same questions through several methods, at equal size of evidence."""
    names = list(dict.fromkeys(name.strip() for name in args.methods.split(",")))
    unknown = [name for name in names if name not in COMPARED]
    if unknown:
        raise BadRequest(f"method {unknown[0]!r} does not exist (yet); choose among {', '.join(COMPARED)}")
    encoder = load_encoder(args.checkpoint, args.device)
    plain = load_encoder("base", args.device) if encoder.spec.trained else encoder
    reader = load_reader(device=args.device)
    with named_log(args.log) as log:
        for question in questions(args, encoder):
            contestants = [
                sparc_contestant(question, encoder, plain, reader) if name == SPARC else contestant(name, encoder, plain, question.config) for name in names
            ]
            columns = _answered(reader, question, list(compare(question.query, contestants, _corpora(question))))
            methods = columns_json(columns, question.workspace)
            for one, column in zip(contestants, columns, strict=True):
                if column.trace is not None and (notice := cut_short(column.trace)):
                    _say(notice)
                if isinstance(one.retriever, SparcRetriever) and one.retriever.trace is not None:
                    methods[one.name]["answer"] = one.retriever.trace.answer or None
                    if log is not None:
                        _say(f"logged as {log_sparc(log, one.retriever.trace, question.workspace, one.encoder)}")
                elif column.trace is not None:
                    _keep(log, column.trace, question.workspace, one.encoder, column.answer)
            result = {"query": question.query, "methods": methods}
            _print_json({"id": question.id, **result} if args.episodes else result)
    return 0


COMPARED = (*METHODS, SPARC)
"""What `compare` knows."""


def _answered(reader: Reader, question: Question, columns: Sequence[Column]) -> list[Column]:
    """The columns that found something, or refused, with what the reader says of their evidence."""
    evidence = [{} if column.trace is None else _evidence(question, column.trace) for column in columns]
    answers = answer_evidence(reader, [question.query] * len(columns), evidence)
    return [column if column.trace is None else replace(column, answer=answer) for column, answer in zip(columns, answers, strict=True)]


def _evidence(question: Question, trace: Trace) -> dict[int, str]:
    """Texts of what was chosen, by chunk id."""
    return {chunk_id: question.workspace[chunk_id].text for chunk_id in trace.evidence}


def _corpora(question: Question) -> Callable[[Contestant], Corpus]:
    return lambda one: question.corpus(one.encoder)


def run_replay(args: argparse.Namespace) -> int:
    """Makes a logged run again. Exit status 1 when the choices differ or Q moved by more than 1e-4."""
    with open_reader(args.log or default_log_path()) as reader:
        run, documents = reader.get(args.run_id), reader.documents(args.run_id)
        if reader.notice:
            _say(reader.notice)
    encoder = load_encoder(args.checkpoint or run.record.checkpoint, args.device)
    if run.record.method == SPARC:
        plain = load_encoder("base", args.device) if encoder.spec.trained else encoder
        replay = replay_sparc(run, documents, encoder, plain, load_reader(device=args.device), progress_printer())
    else:
        replay = replay_run(run, documents, encoder, progress_printer())
    _print_json(replay.to_json())
    return 0 if replay.report.holds else 1


_BATCH = 16
"""Episodes whose states are embedded together."""


def _batches(items: Iterable[Question]) -> Iterator[list[Question]]:
    batch: list[Question] = []
    for item in items:
        batch.append(item)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _keep(log: RunLog | None, trace: Trace, workspace: Workspace, encoder: DualEncoder, answer: EvidenceAnswer | None) -> None:
    if log is not None:
        _say(f"logged as {log_trace(log, trace, workspace, encoder, answer)}")


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _shares(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _say(text: str) -> None:
    print(text, file=sys.stderr)
