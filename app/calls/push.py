"""The door for runs that other machines push.

Open only where the app has a token. Decides that a signature is looked at before the body is read, that the
body waits in a file, and that one run is taken in at a time.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from gradio.route_utils import Headers
from gradio.routes import JSONResponse
from pydantic import SecretStr

from app.services.shared import Services
from core.base.errors import LogError
from core.runs.log.push import MAX_PUSH_BYTES, PUSH, WANTED, PushGate, PushRefused, missing_ids, take_pushed

_logger = logging.getLogger(__name__)


class PushDoor:
    """Middleware that takes runs in, and lets everything else through."""

    def __init__(self, app: Any, services: Services, token: SecretStr) -> None:
        self._app, self._services, self._gate = app, services, PushGate(token)
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] not in (PUSH, WANTED):
            await self._app(scope, receive, send)
            return
        status = 200
        try:
            answer = await self._answer(scope, receive)
        except PushRefused as error:
            status, answer = error.status, {"detail": str(error)}
        except LogError as error:
            status, answer = 503, {"detail": str(error)}
        except Exception:
            _logger.exception("a pushed run failed")
            status, answer = 500, {"detail": "something failed on the server; its log says why"}
        await JSONResponse(answer, status_code=status)(scope, receive, send)

    async def _answer(self, scope: Any, receive: Any) -> dict[str, Any]:
        digest = self._gate.digest(scope["path"], Headers(scope=scope))
        log = self._services.own_log
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            n_bytes, body_hash = 0, hashlib.sha256()
            async for part in _body(receive):
                n_bytes += len(part)
                if n_bytes > MAX_PUSH_BYTES:
                    most = f"{MAX_PUSH_BYTES:,} bytes"
                    raise PushRefused(413, f"a pushed run has more than {most}; move it in a file")
                body_hash.update(part)
                file.write(part)
            if body_hash.hexdigest() != digest:
                raise PushRefused(401, "the body is not the one that was signed; push it again")
            file.flush()
            path = Path(file.name)
            async with self._one_at_a_time:
                if scope["path"] == WANTED:
                    return {"wanted": await asyncio.to_thread(lambda: missing_ids(log, path.read_bytes()))}
                is_new = await asyncio.to_thread(take_pushed, log, path)
        if is_new:
            self._services.tell_readers()
        return {"new": is_new}


async def _body(receive: Any) -> AsyncIterator[bytes]:
    """Raises PushRefused when the sender hangs up."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise PushRefused(400, "the sender hung up")
        yield message.get("body", b"")
        more = message.get("more_body", False)
