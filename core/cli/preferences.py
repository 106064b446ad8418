"""`python -m core preferences`: preference pairs from logged SPARC runs."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from core.cli.common import check_targets, log_reader, writing
from core.cli.flags import JSON_LINES, LOG_FILE
from core.lab.tune.collect import collect_pairs
from core.lab.tune.pairs import pair_lines
from core.runs.log.atomic import write_whole


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of `preferences`."""
    parser.add_argument("--log", **LOG_FILE)
    parser.add_argument("--to", **JSON_LINES, required=True, help="file for the pairs")
    parser.add_argument("--json", action="store_true", help="print the counts as one JSON object")
    parser.set_defaults(func=run_preferences)


def run_preferences(args: argparse.Namespace) -> int:
    """Prints what the log gave."""
    check_targets([args.to], log=args.log)
    with log_reader(args.log) as reader:
        pairs, report = collect_pairs(reader)
    with writing(args.to):
        write_whole(args.to, pair_lines(pairs))
    counts = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in report.pairs.items())
    result = json.dumps({"path": str(args.to), **asdict(report)})
    print(result if args.json else f"{args.to}: {counts}, from {report.runs:,} runs")
    return 0
