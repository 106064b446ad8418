"""`python -m core embed-corpus`.

Documents -> a corpus on disk that `trace --corpus` searches. Run again after whatever stopped it, it goes on.
"""

from __future__ import annotations

import argparse
import time

from core.cli.common import print_json, say
from core.cli.flags import CHECKPOINT, DEVICE, FOLDER, add_cluster_flag, path_flag
from core.cli.inputs import say_other_agent
from core.integrations.cluster.embedding import BEIR_CORPUS, TEXT, TITLE, embed_corpus


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `embed-corpus`."""
    add = parser.add_argument
    add(
        "source",
        type=path_flag,
        metavar="FOLDER_OR_PARQUET",
        help=f"documents, or Parquet files with a column {TEXT} and, if known, {TITLE}, or a BEIR folder with"
        f" {BEIR_CORPUS}",
    )
    add("--out", **FOLDER, required=True, help="where the corpus goes")
    add("--checkpoint", **CHECKPOINT)
    add("--device", **DEVICE)
    add_cluster_flag(parser)
    add("--json", action="store_true", help="print JSON, as without it")
    parser.set_defaults(func=run_embed_corpus)


def run_embed_corpus(args: argparse.Namespace) -> int:
    """Embeds what is not embedded yet, then prints one JSON object."""
    began = time.perf_counter()
    made = embed_corpus(
        args.source,
        args.out,
        args.checkpoint,
        args.device,
        args.cluster,
        lambda done, total: say(f"{done:,} of {total:,} parts"),
        on_first=lambda document, agent: say_other_agent(document, args.checkpoint, agent),
    )
    for notice in made.left_out:
        say(f"left out: {notice}")
    for notice in made.told:
        say(notice)
    result = {
        "corpus": str(args.out),
        "parts": made.n_parts,
        "parts_before": made.n_parts_before,
        "documents": made.n_documents,
        "left_out": len(made.left_out),
        "chunks": made.n_chunks,
        "seconds": round(time.perf_counter() - began, 3),
    }
    print_json(result)
    return 0
