"""A logged run as shell commands that make it again over HTTP."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from typing import Any

from app.services.comparisons import MAX_K
from app.services.language_models import NO_MODEL
from core.base.config import EpisodeConfig
from core.encode.checkpoint import find_checkpoint, read_spec, shipped_checkpoints
from core.methods.registry import facts_of
from core.methods.sparc.retriever import SPARC
from core.methods.threshold import THRESHOLD, Threshold
from core.runs.again.replay import config_again
from core.runs.log import LoggedRun
from core.runs.log.records import sparc_trace_of

_ASK = """ask() {
  reply=$(curl -sS "$api/$1" -H 'Content-Type: application/json' -d "$2")
  case $reply in
    *'"event_id"'*) curl -sSN "$api/$1/$(echo "$reply" | cut -d '"' -f 4)" ;;
    *) echo "$1: $reply" >&2; return 1 ;;
  esac
}"""
"""Calls a function; a refusal goes to stderr."""


def http_of(run: LoggedRun, url: str, *, public: bool = False) -> str:
    """Shell commands that make a run again with curl (in public mode with $VISITOR's key), or why none do."""
    key = {"visitor": "$VISITOR"} if public else {}
    config, query = config_again(run), run.record.query
    if why := _not_by_call(run, config):
        return f"# No call makes this run again: {why}."
    if run.record.method == SPARC:
        branches = sparc_trace_of(run)
        settings = {} if branches is None else asdict(branches.started.config)
        given = {key: value for key, value in settings.items() if value is not None}
        name, again = "run_sparc", {"llm": NO_MODEL, **given}
    elif facts_of(run.record.method).looks_again:
        name, again = "run_agent", config.to_json()
        del again["searched"]
        for unset in ("stop_threshold", "review_threshold", "top_k_actions"):
            again[unset] = "none" if again[unset] is None else again[unset]
    else:
        size = {} if run.record.method == THRESHOLD.name else {"k": config.step_budget}
        name, again = "compare", {"methods": [run.record.method], **size}
    return "\n".join(
        [
            f"api={shlex.quote(url.rstrip('/') + '/gradio_api/call/v2')}",
            _ASK,
            f"""document=$(ask open_document {_body({"run_id": run.record.run_id, **key})} | grep -o '"document_id": "[0-9a-f]*"' | cut -d '"' -f 4)""",
            f"ask {name} {_body({'document_id': '$document', 'query': query, **again, **key})}",
        ]
    )


def _not_by_call(run: LoggedRun, config: EpisodeConfig) -> str:
    """What of a run the calls have no argument for; empty where they have all."""
    method = run.record.method
    if method == SPARC:
        return ""
    if config.searched:
        return "it searched the chunks that were embedded then, and a call asks all"
    if facts_of(method).looks_again:
        return ""
    if config.forbidden or config.forced:
        return "compare takes no chunks that are forbidden or forced"
    if method == THRESHOLD.name:
        if config.stop_threshold != _usual_threshold(run.record.checkpoint):
            return f"compare takes no threshold, and that of the run is {config.stop_threshold}"
    elif config.step_budget > MAX_K:
        return f"compare takes {MAX_K} chunks at most, and the run {config.step_budget}"
    return ""


def _usual_threshold(checkpoint: str) -> float | None:
    if checkpoint not in shipped_checkpoints():  # a stranger's run may name any folder
        return None
    usual = read_spec(find_checkpoint(checkpoint)).cosine_threshold
    return Threshold.PAPER_THRESHOLD if usual is None else usual


def _body(values: dict[str, Any]) -> str:
    """JSON as one word of a shell, with the values that are variables of it filled in by it."""
    word = shlex.quote(json.dumps(values))
    for variable in ("$document", "$VISITOR"):
        if variable in values.values():
            word = word.replace(f'"{variable}"', f"""\"'"{variable}"'\"""", 1)
    return word
