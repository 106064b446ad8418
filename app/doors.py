"""Paths, sign-in, files and bodies, looked at before Gradio does.

Gradio's server does more than this app needs: it fetches addresses, forwards requests, records, profiles, and
parses any body before it looks at the sign-in. Middleware behind the front door lets only the paths through
that the app uses; a caller who has to sign in does so first, a body is counted while it streams, and an event
names no file but an uploaded one.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from app.gradio_internals import of_known_page, upload_to
from core.ingest.limits import MAX_FILE_BYTES

API = "/gradio_api"
FILE = f"{API}/file="
UPLOAD = f"{API}/upload"
LOGIN_CHECK = f"{API}/login_check"

MAX_BODY_BYTES = 1024 * 1024
"""Of a request that brings no document."""
MAX_FORM_BYTES = 16 * 1024
"""Of a name and a password."""
MAX_DOCUMENT_BYTES = MAX_FILE_BYTES * 4 // 3 + MAX_BODY_BYTES
"""Of a request that may bring one: the largest file in base64, and room for the rest."""
MAX_UPLOAD_BYTES = 4 * MAX_FILE_BYTES
"""Of one upload, all its files together; they are written to disk as they come."""
MAX_ARRIVING_BYTES = 2 * MAX_DOCUMENT_BYTES
"""Of all such bodies that are held in memory at a time, not counting what any request may bring."""
STALLED_SECONDS = 30.0
"""A body that counts among those and sends nothing for so long is cut off."""
LEAST_BYTES_A_SECOND = 100_000
"""So is one that sends less, once those seconds are over."""
MAX_KEPT_BYTES = 4 * 1024**3
"""Of all uploads together; they go after a day."""
MAX_KEPT = 20_000
"""Uploads and their folders."""
EMPTY_SECONDS = 3600.0
"""After which a folder goes that nothing is in."""
LEAST_FREE_SHARE = 0.05
"""Of the disk, for an upload to be taken."""
MAX_STRUCTURE = 100_000
"""Brackets and commas of a JSON body outside its strings; a million take a second of everybody's time."""
MAX_NESTING = 100
"""Levels of a JSON body. Where a parser here gave up before Gradio's does, nobody would have looked at it."""
MAX_MCP_CALLS = 16
"""At a time: each is a client inside the app, with a thread of its own."""

NOT_UPLOADED = (
    "a value names a file that was not uploaded here, or is none that its field takes; load the page again"
)

_PAGE = r"/|/config/?|/theme\.css|/assets/.+|/static/.+|/favicon\.ico|/robots\.txt|/manifest\.json"
_SIGN_IN = rf"/login/?|/login/(?:huggingface|callback)|/logout|{API}/(?:user|login_check)/?"
_API = (
    rf"{API}/(?:(?:info|openapi\.json|theme\.css|queue/(?:join|data|status)|call/.+|cancel|reset|component_server"
    r"|upload|upload_progress|heartbeat/[^/]+|app_id)/?|mcp(?:/.*)?|file=.*)"
)
_OPEN = re.compile(f"{_PAGE}|{_SIGN_IN}")
"""Paths that somebody needs to sign in at all; `/config` tells strangers only that they have to."""
_KNOWN = re.compile(f"{_PAGE}|{_SIGN_IN}|{_API}")
_EVENTS = re.compile(rf"{API}/(?:queue/join|call/.+|component_server|mcp(?:/.*)?)/?")
"""Paths that bring values for handlers."""
_COMPONENT_SERVER = f"{API}/component_server"
_MCP = f"{API}/mcp"
_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_DOCUMENTS = re.compile(rf"{API}/(?:queue/join|call/(?:v2/)?(?:open_document|import_run)|mcp(?:/.*)?)/?")
"""Paths that may bring a document or another retriever's runs."""


class Doors:
    """Refuses what no page and no caller of the app has to ask, in a sentence, before Gradio reads it."""

    def __init__(self, app: Any, folder: Path, *, asks_who: bool = False) -> None:
        """folder: of what is handed out, but for its `uploads`. asks_who: whether one has to sign in."""
        self._app, self._asks_who = app, asks_who
        self._folder = Path(os.path.realpath(folder))
        self._uploads = self._folder / "uploads"
        self._arriving = self._mcp_calls = self._n_uploads = 0
        self._arriving_in: list[Path] = []
        """Folders of all uploads since the last moment without any."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]
        if not _KNOWN.fullmatch(path):
            await _refuse(404, "there is nothing at this address; begin at /", scope, receive, send)
        elif self._asks_who and not _OPEN.fullmatch(path) and not await self._signed_in(scope):
            await _refuse(401, "sign in first, at /", scope, receive, send)
        elif path.startswith(FILE) and not self._hands_out(path.removeprefix(FILE)):
            await _refuse(403, "no file is handed out at this address", scope, receive, send)
        elif path == "/logout" and Headers(scope=scope).get("sec-fetch-site") == "cross-site":
            await _refuse(403, "another website can't sign you out; do so here", scope, receive, send)
        elif path.rstrip("/") == UPLOAD and scope["method"] == "POST":
            await self._uploaded(scope, receive, send)
        elif path.startswith(_MCP) and scope["method"] != "GET":
            await self._called(scope, receive, send)
        else:
            await self._bounded(scope, receive, send)

    async def _uploaded(self, scope: Any, receive: Any, send: Any) -> None:
        """An upload into a folder of its own, where there is room."""
        if not await run_in_threadpool(self._has_room):
            await _refuse(503, "there is no room for more files today; paste a text", scope, receive, send)
            return
        folder = self._uploads / secrets.token_hex(16)  # uploads that overlap may share one: it tells nothing
        folder.mkdir(mode=0o700, parents=True)
        upload_to(scope["app"], folder)
        self._arriving_in.append(folder)
        self._n_uploads += 1
        try:
            await self._bounded(scope, receive, send)
        finally:
            self._n_uploads -= 1
            if self._n_uploads == 0:
                self._tidy()

    def _tidy(self) -> None:
        """Deletes what of broken uploads lies there: whole ones have folders of their own in these."""
        for folder in self._arriving_in:
            with suppress(OSError):  # it went meanwhile, or holds what came
                for file in filter(Path.is_file, folder.iterdir()):
                    file.unlink()
                folder.rmdir()
        self._arriving_in.clear()

    async def _called(self, scope: Any, receive: Any, send: Any) -> None:
        """A call over MCP, unless too many are at work."""
        if self._mcp_calls >= MAX_MCP_CALLS:
            words = f"{MAX_MCP_CALLS} calls are at work; call again when some are done"
            await _refuse(503, words, scope, receive, send)
            return
        self._mcp_calls += 1
        try:
            await self._bounded(scope, receive, send)
        finally:
            self._mcp_calls -= 1

    def _has_room(self) -> bool:
        """Whether one more may be kept. Of old uploads Gradio deletes the files and leaves the folders."""
        n_kept = n_bytes = 0
        for folder, _, names in os.walk(self._uploads, topdown=False):
            with suppress(OSError):  # it went meanwhile, or something is in it
                if os.stat(folder).st_mtime < time.time() - EMPTY_SECONDS:
                    os.rmdir(folder)
                    continue
            n_kept += 1 + len(names)
            for name in names:
                with suppress(FileNotFoundError):
                    n_bytes += os.path.getsize(os.path.join(folder, name))
            if n_kept > MAX_KEPT or n_bytes > MAX_KEPT_BYTES:
                return False
        disk = shutil.disk_usage(self._folder)
        return disk.free >= LEAST_FREE_SHARE * disk.total

    def _hands_out(self, rest: str) -> bool:
        """Whether `rest` is a file that the app itself has made to be fetched.

        An address (`http://...`, `//host`, however often quoted) is no absolute path inside the folder.
        """
        is_ours = not rest.startswith("//") and self._is_inside(rest)
        return is_ours and not Path(os.path.realpath(rest)).is_relative_to(self._uploads)

    def _is_inside(self, path: Any) -> bool:
        """Whether it is an absolute path in the folder."""
        if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
            return False
        try:
            return Path(os.path.realpath(path)).is_relative_to(self._folder)
        except ValueError:  # half a surrogate pair
            return False

    async def _signed_in(self, scope: Any) -> bool:
        """Whether Gradio knows the cookie that the request carries."""
        statuses = []

        async def nothing() -> Any:
            return {"type": "http.request", "body": b""}

        async def hear(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        place = {"method": "GET", "path": LOGIN_CHECK, "raw_path": LOGIN_CHECK.encode(), "query_string": b""}
        await self._app({**scope, **place}, nothing, hear)
        return statuses == [200]

    def _names_only_uploads(self, body: bytes) -> bool:
        """Whether all files in an event's values lie in the folder: from an address, Gradio would fetch one.
        What has a path is a file to it. A body that is no JSON it refuses by itself.
        """
        try:
            values = [json.loads(body)] if b"path" in body or b"\\u" in body else []
        except RecursionError:  # it may yet be read by who has more room; MAX_NESTING lets none through
            return False
        except ValueError:
            return True
        while values:
            value = values.pop()
            if isinstance(value, dict):
                if "path" in value and not (self._is_inside(value["path"]) and os.path.isfile(value["path"])):
                    return False
                values += value.values()
            elif isinstance(value, list):
                values += value
        return True

    async def _bounded(self, scope: Any, receive: Any, send: Any) -> None:
        path, app = scope["path"], scope["app"]  # further in, the scope gets Gradio's part as its app
        is_json = not path.startswith((UPLOAD, "/login"))
        most, counts = MAX_BODY_BYTES, False
        if path.startswith(UPLOAD):
            most = MAX_UPLOAD_BYTES
        elif path.startswith("/login"):
            most = MAX_FORM_BYTES
        elif _DOCUMENTS.fullmatch(path):
            most, counts = MAX_DOCUMENT_BYTES, True
        too_large = f"the request has more than {most:,} bytes; send less at once"
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdigit() and int(announced) > most:
            await _refuse(413, too_large, scope, receive, send)
            return
        structure, began = Structure(), time.monotonic()
        n_read, n_counted, is_whole, refusal = 0, 0, False, (0, "")

        def fault() -> tuple[int, str]:
            if n_read > most:
                return 413, too_large
            if counts and n_read > MAX_BODY_BYTES and self._arriving > MAX_ARRIVING_BYTES:
                return 503, "other large texts are just arriving; send yours again in a minute"
            if structure.is_foreign:
                return 400, "the request holds a NUL byte; send JSON in UTF-8"
            if structure.depth > MAX_NESTING:
                return 413, f"the request is nested over {MAX_NESTING} levels deep; send it flatter"
            if structure.n > MAX_STRUCTURE:
                return 413, f"the request has over {MAX_STRUCTURE:,} brackets and commas; send less at once"
            return 0, ""

        async def counted() -> Any:
            nonlocal n_read, n_counted, is_whole, refusal
            try:
                left = began + STALLED_SECONDS + n_read / LEAST_BYTES_A_SECOND - time.monotonic()
                patience = max(0.0, min(STALLED_SECONDS, left)) if n_counted and not is_whole else None
                message = await asyncio.wait_for(receive(), patience)
            except TimeoutError:
                refusal = 408, "the request came too slowly; send it again"
                return {"type": "http.disconnect"}
            part = message.get("body", b"")
            n_read += len(part)
            is_whole = not message.get("more_body", False)
            if counts and n_read > MAX_BODY_BYTES:
                self._arriving += n_read - MAX_BODY_BYTES - n_counted
                n_counted = n_read - MAX_BODY_BYTES
            if is_json:
                structure.feed(part)
            refusal = refusal if refusal[0] else fault()
            return {"type": "http.disconnect"} if refusal[0] else message

        async def checked() -> Any:
            """The whole body of an event in one piece."""
            nonlocal refusal
            message = await counted()
            parts = [message.get("body", b"")]
            while message.get("more_body"):
                message = await counted()
                parts.append(message.get("body", b""))
            if message["type"] != "http.request":
                return message
            body = b"".join(parts)
            try:
                body.decode()
                if not self._names_only_uploads(body):
                    refusal = 400, NOT_UPLOADED
                elif path.startswith(_COMPONENT_SERVER):
                    body = of_known_page(app, body)
            except UnicodeDecodeError:
                refusal = 400, "the request is no UTF-8; send JSON in UTF-8"
            except ValueError:
                refusal = 400, "no component was asked, or in no JSON; load the page again"
            if refusal[0]:
                return {"type": "http.disconnect"}
            return {**message, "body": body}

        async def unless_refused(message: Any) -> None:
            if not refusal[0]:
                await send(message)

        try:
            await self._app(scope, checked if _EVENTS.fullmatch(path) else counted, unless_refused)
        except Exception as error:
            if isinstance(error.__cause__, HTTPException):  # a stream that there is not: it has said so
                await unless_refused({"type": "http.response.body"})
            elif not refusal[0]:  # otherwise Gradio stumbled over the body that was cut off
                raise
        finally:
            self._arriving -= n_counted
        if refusal[0]:
            await _refuse(*refusal, scope, receive, send)


class Structure:
    """Counts what makes JSON deep or long, as its bytes come in: brackets and commas outside of strings.

    >>> structure = Structure()
    >>> for part in (b'{"a,[": ["\\\\', b'"[,", 1', b", 2]}"):
    ...     structure.feed(part)
    >>> structure.n, structure.depth
    (4, 2)
    """

    def __init__(self) -> None:
        self.n = 0
        self.depth = 0
        """Most brackets that were open at a time."""
        self._open = 0
        self.is_foreign = False
        """Whether a NUL byte came. JSON in UTF-16 has them, where quotes can't be told from other letters."""
        self._in_string = False
        self._held = b""

    def feed(self, part: bytes) -> None:
        """Takes in the next bytes."""
        self.is_foreign |= b"\0" in part
        part = self._held + part
        # an odd backslash at the end belongs to what comes next
        self._held = b"\\" * ((len(part) - len(part.rstrip(b"\\"))) % 2)
        part = part.removesuffix(self._held)
        pieces = part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self._in_string :: 2])
        self._in_string ^= len(pieces) % 2 == 0
        self.n += sum(map(outside.count, (b"[", b"{", b",")))
        brackets = outside.translate(None, _BRACKETS)[: 2 * MAX_STRUCTURE]
        levels = list(accumulate((1 if one in b"[{" else -1 for one in brackets), initial=self._open))
        self.depth, self._open = max(self.depth, max(levels)), levels[-1]


async def _refuse(status: int, detail: str, scope: Any, receive: Any, send: Any) -> None:
    await JSONResponse({"detail": detail}, status_code=status)(scope, receive, send)
