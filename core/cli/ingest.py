"""`python -m core ingest`.

Documents cut into chunks, as JSON lines, or the text that their offsets refer to. A page with JSON-LD has it
in the line of its first chunk.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from core.base.config import CHUNKERS, ChunkConfig
from core.base.errors import BadRequest
from core.base.types import Workspace
from core.cli.common import print_json
from core.cli.flags import COUNT, FILE, add_reading, flag_help, reading_of
from core.cli.inputs import read_files, say_chosen, suited_to
from core.encode.checkpoint import find_base, find_checkpoint, read_spec
from core.encode.tokens import FastTokenizer
from core.ingest import chunk_document, default_chunker


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `ingest`."""
    add = parser.add_argument
    add("files", **FILE, nargs="+")
    add_reading(parser)
    about = partial(flag_help, ChunkConfig)
    cut = about("chunker", "structure for HTML and Markdown, else sentences")
    add("--chunker", choices=CHUNKERS, help=cut)
    add("--max-tokens", **COUNT, help=about("max_tokens", "the checkpoint's"))
    whose = "whose tokenizer and chunking to use (default: those of the agent that the app would take)"
    add("--checkpoint", metavar="NAME_OR_DIR", help=whose)
    shape = parser.add_mutually_exclusive_group(required=True)
    shape.add_argument("--json", action="store_true", help="one JSON object a chunk, a line each")
    shape.add_argument("--text", action="store_true", help="the text that offsets refer to; one file only")
    parser.set_defaults(func=run_ingest)


def run_ingest(args: argparse.Namespace) -> int:
    """Prints chunks, or the text their offsets refer to."""
    names, documents = zip(*read_files(args.files, reading_of(args)), strict=True)
    if args.text:
        if len(documents) > 1:
            raise BadRequest(f"--text prints one document and got {len(documents)}; name one file")
        sys.stdout.write(documents[0].text)
        return 0
    named = suited_to(documents[0]) if args.checkpoint is None else args.checkpoint
    folder = find_checkpoint(named)
    spec = read_spec(folder)
    tokenizer = FastTokenizer(find_base(spec.base, folder))
    tables = []
    for document in documents:
        config = spec.chunk_config(args.chunker or default_chunker(document.kind), args.max_tokens)
        tables.append(chunk_document(document, config, tokenizer))
    say_chosen(documents[0], args.checkpoint, spec.name)
    workspace = Workspace(tuple(documents), tuple(tables))
    firsts = set(workspace.borders[:-1].tolist())
    for chunk in workspace:
        json_ld = documents[chunk.document].json_ld if chunk.chunk_id in firsts else ()
        print_json(
            {
                "document": names[chunk.document],
                "chunk_id": chunk.chunk_id,
                "type": chunk.type,
                "heading_path": list(chunk.heading_path),
                "text": chunk.text,
                "start": chunk.start,
                "end": chunk.end,
                "n_tokens": chunk.n_tokens,
                **({"json_ld": list(json_ld)} if json_ld else {}),
            }
        )
    return 0
