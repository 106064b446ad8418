"""A logged run as shell commands that make it again over HTTP."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from typing import Any

from app.services.language_models import NO_MODEL
from core.methods.registry import facts_of
from core.methods.sparc.retriever import SPARC
from core.runs.again.replay import config_again
from core.runs.log import LoggedRun
from core.runs.log.records import sparc_trace_of


def http_of(run: LoggedRun, url: str, *, public: bool = False) -> str:
    """Shell commands that make a logged run again over HTTP, with curl, on the app at `url`; in public mode they
    take the visitor's key from $VISITOR.
    """
    key = {"visitor": "$VISITOR"} if public else {}
    config, query = config_again(run), run.record.query
    if run.record.method == SPARC:
        branches = sparc_trace_of(run)
        config_then = {} if branches is None else asdict(branches.started.config)
        name = "run_sparc"
        again = {
            "query": query,
            "llm": NO_MODEL,
            **{key: value for key, value in config_then.items() if value is not None},
        }
    elif facts_of(run.record.method).looks_again:
        unset = ("stop_threshold", "review_threshold", "top_k_actions")
        settings = config.to_json() | {name: _or_none(getattr(config, name)) for name in unset}
        del settings["searched"]  # the call asks all chunks
        name, again = "run_agent", {"query": query, **settings}
    else:
        name, again = "compare", {"query": query, "methods": [run.record.method], "k": config.step_budget}
    return "\n".join(
        [
            f"api={shlex.quote(url.rstrip('/') + '/gradio_api/call/v2')}",
            """ask() { curl -sN "$api/$1/$(curl -s "$api/$1" -H 'Content-Type: application/json' -d "$2" | cut -d '"' -f 4)"; }""",
            f"""document=$(ask open_document {_body({"run_id": run.record.run_id, **key})} | grep -o '"document_id": "[0-9a-f]*"' | cut -d '"' -f 4)""",
            f"ask {name} {_body({'document_id': '$document', **again, **key})}",
        ]
    )


def _or_none(value: float | None) -> float | str:
    return "none" if value is None else value


def _body(values: dict[str, Any]) -> str:
    """JSON as one word of a shell, with the values that are variables of it filled in by it."""
    word = shlex.quote(json.dumps(values))
    for variable in ("$document", "$VISITOR"):
        word = (
            word.replace(f'"{variable}"', f"""\"'"{variable}"'\"""", 1)
            if variable in values.values()
            else word
        )
    return word
