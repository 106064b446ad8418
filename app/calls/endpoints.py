"""How the operations are offered to callers without a page.

A mistake of the caller comes back as its one sentence; anything else says nothing of the inside, which the
log keeps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

import gradio as gr
from pydantic import ConfigDict, ValidationError, validate_call
from starlette.responses import JSONResponse

from app.calls.operations import Operations
from app.services.explorer import RUNS_AT_ONCE
from core.base.errors import Cancelled, UserError

_logger = logging.getLogger(__name__)


def register(operations: Operations) -> None:
    """Offers the operations over HTTP and, where it is on, MCP, in the same lines as the page's buttons."""
    offered: tuple[tuple[Callable[..., Any], str, int], ...] = (
        (operations.open_document, "open", 2),
        (operations.run_agent, "agent", RUNS_AT_ONCE),
        (operations.retrieve, "agent", RUNS_AT_ONCE),
        (operations.step_run, "agent", RUNS_AT_ONCE),
        (operations.run_sparc, "sparc", 2),
        (operations.compare, "compare", 1),
        (operations.import_run, "log", 4),
        (operations.search_runs, "log", 4),
        (operations.get_run, "log", 4),
        (operations.export_run, "log", 4),
    )
    for operation, line, most in offered:
        answer, name = answering(operation), operation.__name__
        gr.api(answer, api_name=name, concurrency_id=line, concurrency_limit=most)


def answering(operation: Callable[..., Any]) -> Callable[..., Any]:
    """The operation with its arguments checked, its errors in a sentence each."""
    checked = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(operation)

    @wraps(operation)
    def answer(*arguments: Any, **named: Any) -> Any:
        try:
            return _without_files(checked(*arguments, **named))
        except Cancelled:
            sentence = "stopped, since nobody waits for it any more"
        except UserError as error:
            sentence = " ".join(str(error).split())
        except ValidationError as error:
            sentence = _first(error, operation)
        except Exception:
            _logger.exception("%s failed", operation.__name__)
            sentence = "something failed on the server; its log says why"
        raise gr.Error(sentence, print_exception=False)

    return answer


def _without_files(reply: Any) -> Any:
    """A reply without what Gradio takes for files: it would offer one of the server's to anybody who puts its
    path into a run and has that imported.
    """
    if isinstance(reply, dict):
        hidden = {"meta"} if "path" in reply else set()
        return {name: _without_files(value) for name, value in reply.items() if name not in hidden}
    return [_without_files(value) for value in reply] if isinstance(reply, list | tuple) else reply


def _first(error: ValidationError, operation: Callable[..., Any]) -> str:
    """What is wrong with the first argument that is."""
    problem = error.errors(include_url=False)[0]
    place, *_ = problem["loc"]
    names = list(operation.__annotations__)
    name = names[place] if isinstance(place, int) and place < len(names) else str(place)[:80]
    return f"{name}={str(problem['input'])[:80]!r} can't be used: {problem['msg'][:200]}"


async def refuse_call(request: Any, error: Exception) -> JSONResponse:
    """Answers what fits no function, and files that are none: Gradio raises KeyError or TypeError for it."""
    path, wrong = request.url.path.rstrip("/"), str(error).partition(". ")[0][:200]
    if isinstance(error, KeyError):
        wrong = f"there is no function {error.args[0]!s:.80}"
    if "/call/v2/" in path:
        remedy = "/gradio_api/info lists the functions and what each takes"
    elif path.endswith("/queue/join") and isinstance(error, KeyError):
        remedy = "load the page again"
    elif path.endswith("/upload"):
        wrong, remedy = "a file came without a name", "give it one"
    else:
        raise error
    return JSONResponse({"detail": f"{wrong}; {remedy}"}, status_code=422)
