"""How the operations are offered to callers without a page.

Gradio's HTTP calls, and MCP on top of them. Decides that they wait in the same lines as the page's buttons,
that work stops whose caller has hung up while waiting for its result, that a mistake of the caller comes back
as its one sentence, and that anything else says nothing of the inside, which the server's log keeps. A caller
who has not yet asked for a result has not hung up.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.context import LocalContext
from gradio.routes import ORJSONResponse
from gradio.utils import get_upload_folder
from pydantic import ConfigDict, ValidationError, validate_call

from app.calls.operations import Operations
from app.calls.push import PushDoor
from app.doors import Doors
from app.front_door import Addresses, OwnPages, without_cors
from app.gradio_internals.scripts import LeanScripts
from app.services.explorer import RUNS_AT_ONCE
from app.services.settings import Settings
from app.services.shared import Services
from core.base.errors import Cancelled, UserError

_logger = logging.getLogger(__name__)


def register(operations: Operations) -> None:
    """Offers the operations over HTTP and, where it is on, MCP, in the same lines as the page's buttons."""
    offered: tuple[tuple[Callable[..., Any], str, int], ...] = (
        (operations.open_document, "open", 2),
        (operations.run_agent, "agent", RUNS_AT_ONCE),
        (operations.step_run, "agent", RUNS_AT_ONCE),
        (operations.run_sparc, "sparc", 2),
        (operations.compare, "compare", 1),
        (operations.search_runs, "log", 4),
        (operations.get_run, "log", 4),
        (operations.export_run, "log", 4),
    )
    for operation, line, most_at_once in offered:
        gr.api(
            _answering(operation),
            api_name=operation.__name__,
            concurrency_id=line,
            concurrency_limit=most_at_once,
        )


def call_at_hand() -> Callable[[], bool]:
    """Whether this thread's caller has hung up, for any thread. Leans on Gradio's private queue (6.31)."""
    blocks, event_id = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    event = None if blocks is None or event_id is None else blocks._queue.event_ids_to_events.get(event_id)
    return lambda: event is not None and not event.alive


def _answering(operation: Callable[..., Any]) -> Callable[..., Any]:
    """The operation with its arguments checked, its errors in a sentence each."""
    checked = validate_call(config=ConfigDict(arbitrary_types_allowed=True))(operation)

    @wraps(operation)
    def answer(*arguments: Any, **named: Any) -> Any:
        try:
            return checked(*arguments, **named)
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


def _first(error: ValidationError, operation: Callable[..., Any]) -> str:
    """What is wrong with the first argument that is."""
    problem = error.errors(include_url=False)[0]
    place, *_ = problem["loc"]
    names = list(operation.__annotations__)
    name = names[place] if isinstance(place, int) and place < len(names) else str(place)[:80]
    return f"{name}={str(problem['input'])[:80]!r} can't be used: {problem['msg'][:200]}"


async def refuse_call(request: Any, error: Exception) -> ORJSONResponse:
    """Answers a call that fits no function: Gradio raises KeyError or TypeError for it."""
    if "/call/v2/" not in request.url.path:
        raise error
    wrong = (
        f"there is no function {error.args[0]!s:.80}"
        if isinstance(error, KeyError)
        else str(error).partition(". ")[0][:200]
    )
    return ORJSONResponse(
        {"detail": f"{wrong}; /gradio_api/info lists the functions and what each takes"}, status_code=422
    )


def server_options(settings: Settings, services: Services | None = None) -> dict[str, Any]:
    """What the server under Gradio is made with; new for each, since Gradio adds to it. `services`: of an app
    that takes pushed runs where it has a token.
    """
    token = settings.push_token
    pushes: list[Any] = [] if services is None or token is None else [(PushDoor, (services, token), {})]
    return {
        "exception_handlers": {KeyError: refuse_call, TypeError: refuse_call},
        "middleware": [
            (OwnPages, (Addresses.of(settings),), {}),
            (LeanScripts, (), {}),
            *pushes,
            (Doors, (Path(get_upload_folder()),), {}),
        ],
        "lifespan": without_cors,
    }


def answer_in_json(blocks: gr.Blocks) -> None:
    """Has the MCP server's tools answer in JSON; Gradio writes dictionaries as only Python reads them."""
    server = blocks.mcp_server_obj
    if server is not None:
        text = server.types.TextContent
        server.postprocess_output_data = lambda data, _: [
            text(type="text", text=json.dumps(output, ensure_ascii=False)) for output in data
        ]
