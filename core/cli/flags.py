"""Flags that several commands share. Knows nothing of what the commands do."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """What is asked, of which documents."""
    parser.add_argument("--query", metavar="TEXT")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--document", nargs="+", type=Path, metavar="FILE", help="documents, searched as one list")
    source.add_argument("--chunks", type=Path, metavar="FILE.json", help="a JSON list of strings, taken as they are")
    source.add_argument("--episodes", type=Path, metavar="FILE.jsonl", help='a line {"id", "query", "chunks": [...]} each; one result a line')
    parser.add_argument("--checkpoint", metavar="NAME_OR_DIR")
    parser.add_argument("--device", metavar="D", help="cpu or cuda (default: cuda when there is one)")
    parser.add_argument("--log", nargs="?", const="", metavar="FILE", help="keep the run in the experiment log")


def add_episode_flags(parser: argparse.ArgumentParser) -> None:
    """How the agent goes about it."""
    defaults = "default: the checkpoint's"
    parser.add_argument("--step-budget", type=int, metavar="N", help=f"most chunks ({defaults})")
    parser.add_argument("--temperature", type=float, metavar="X", help=f"0 is greedy ({defaults})")
    parser.add_argument("--stop-threshold", type=_number_or_none, default=argparse.SUPPRESS, metavar="X|none", help=f"stop below this Q ({defaults})")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--beam-width", type=int, default=1, metavar="N", help="plan with this many paths (default 1: no planning)")
    parser.add_argument("--top-k-actions", type=_count_or_none, metavar="N|none", help="sample among the N best only (default none)")


def _number_or_none(text: str) -> float | None:
    return None if text == "none" else float(text)


def _count_or_none(text: str) -> int | None:
    return None if text == "none" else int(text)
