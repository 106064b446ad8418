"""Finished runs from other machines, over HTTP: both ends.

A request is signed with a token that both ends know and that never travels: who doesn't know it is refused
before a byte of the body is read. Decides that a request is good once and for some minutes; who sends it
again signs it anew. The sender asks which runs are wanted, and sends one a request. A pushed run is an
import: nothing in it is trusted, it belongs to no visitor, and an id that is there stays as it is.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import threading
import time
import urllib.error
import urllib.request
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, TypeAdapter, ValidationError

from core.base.batches import batches
from core.base.errors import BadRequest, LogError, quoted
from core.runs.log.mirror import ended_runs
from core.runs.log.queries import RunReader
from core.runs.log.store import ExperimentLog
from core.runs.log.transfer import finished_run, import_runs
from core.runs.log.wire import FinishedRun, MalformedRuns, run_lines

TOKEN_VARIABLE = "QRAG_PUSH_TOKEN"
SHORTEST_TOKEN = 16
"""Characters."""
WINDOW = 300.0
"""Seconds that the clocks of both ends may be apart, and that a request may be on its way."""
MAX_PUSH_BYTES = 64 << 20
"""Of one run."""
MAX_IDS = 1_000
"""That are asked after at once."""
PUSH, WANTED = "/runs/push", "/runs/wanted"
"""Paths: of a run, and of the question which ids are not there."""
TIME_HEADER, DIGEST_HEADER, SIGNATURE_HEADER = "x-qrag-time", "x-qrag-digest", "x-qrag-signature"
TIMEOUT = 120.0
"""Seconds without a byte of the answer."""
_MAX_REPLY_BYTES = 1 << 20

_Id = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
_IDS: TypeAdapter[list[str]] = TypeAdapter(Annotated[list[_Id], Field(max_length=MAX_IDS)])


class PushRefused(LogError):
    """A push that is not taken; `status` is HTTP's."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def token_of(environ: Mapping[str, str] = os.environ) -> SecretStr | None:
    """What QRAG_PUSH_TOKEN holds; None without it. Raises BadRequest for one that could be guessed."""
    token = environ.get(TOKEN_VARIABLE, "")
    if token and len(token) < SHORTEST_TOKEN:
        raise BadRequest(
            f"{TOKEN_VARIABLE} has {len(token)} characters; take {SHORTEST_TOKEN} or more, for example from"
            " `openssl rand -hex 32`"
        )
    return SecretStr(token) if token else None


def signed_headers(token: SecretStr, operation: str, body: bytes, now: float) -> dict[str, str]:
    """What goes along with a body. `now`: seconds since 1970."""
    digest, stamp = hashlib.sha256(body).hexdigest(), f"{now:.6f}"
    return {
        TIME_HEADER: stamp,
        DIGEST_HEADER: digest,
        SIGNATURE_HEADER: _signature(token, operation, stamp, digest),
    }


def _signature(token: SecretStr, operation: str, stamp: str, digest: str) -> str:
    words = "\n".join((operation, stamp, digest)).encode()
    return hmac.new(token.get_secret_value().encode(), words, hashlib.sha256).hexdigest()


class PushGate:
    """Who may push. One per process, for any thread."""

    def __init__(self, token: SecretStr, clock: Callable[[], float] = time.time) -> None:
        self._token, self._clock, self._began = token, clock, clock()
        self._seen: OrderedDict[str, float] = OrderedDict()
        """Signatures that were taken, and when."""
        self._lock = threading.Lock()

    def digest(self, operation: str, headers: Mapping[str, str]) -> str:
        """The body's SHA-256. Raises PushRefused unless the headers are signed, in time and new."""
        stamp, digest, signature = (
            headers.get(name, "") for name in (TIME_HEADER, DIGEST_HEADER, SIGNATURE_HEADER)
        )
        right = _signature(self._token, operation, stamp, digest)
        if not hmac.compare_digest(right.encode(), signature.encode()):
            raise PushRefused(
                401, f"the push is not signed with this app's token; give both ends the same {TOKEN_VARIABLE}"
            )
        now, signed = self._clock(), float(stamp)
        if not max(now - WINDOW, self._began) <= signed <= now + WINDOW:
            raise PushRefused(
                401,
                f"the push was signed {abs(now - signed):.0f} s {'before' if signed < now else 'after'} it came,"
                f" or before this app started; set the clocks, which may be {WINDOW:.0f} s apart, and push again",
            )
        with self._lock:
            while self._seen and next(iter(self._seen.values())) < now - 2 * WINDOW:
                self._seen.popitem(last=False)
            if signature in self._seen:
                raise PushRefused(409, "the same push came before; sign it anew to send it again")
            self._seen[signature] = now
        return digest


def missing_ids(log: RunReader, body: bytes) -> list[str]:
    """Those of a JSON list of run ids that the log doesn't have. Raises PushRefused."""
    try:
        ids = _IDS.validate_json(body, strict=True)
    except ValidationError as error:
        raise PushRefused(422, f"what is asked after is no list of up to {MAX_IDS:,} run ids") from error
    query = "SELECT run_id FROM runs WHERE list_contains($ids::VARCHAR[], run_id)"
    there = {run_id for (run_id,) in log.read(lambda con: con.execute(query, {"ids": ids}).fetchall())}
    return [run_id for run_id in ids if run_id not in there]


def take_pushed(log: ExperimentLog, path: Path) -> bool:
    """Takes in the one run of a file; False where its id is taken. Raises PushRefused for what is
    no run, and LogError when the log can't be written.
    """
    n_runs = 0

    def admit(_: FinishedRun) -> None:
        nonlocal n_runs
        n_runs += 1
        if n_runs > 1:
            raise MalformedRuns("the push has more than one run; send one a request")

    try:
        return bool(import_runs(log, path, admit=admit))
    except MalformedRuns as error:
        raise PushRefused(422, str(error).replace(str(path), "the pushed run")) from error


@dataclass(frozen=True)
class PushOutcome:
    """What came of a push."""

    n_new: int
    n_there: int
    """Runs that the other end had already."""
    refused: tuple[str, ...]
    """Why, for each run that it didn't take."""


@dataclass(frozen=True)
class PushTarget:
    """An app that takes runs."""

    address: str
    token: SecretStr

    @classmethod
    def at(cls, url: str, environ: Mapping[str, str] = os.environ) -> PushTarget:
        """Raises BadRequest."""
        token, parts = token_of(environ), urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadRequest(
                f"address {url[:80]!r} must begin with http:// or https:// and name a host, for example"
                " https://explorer.example.org"
            )
        if token is None:
            raise BadRequest(f"{TOKEN_VARIABLE} is not set; give it the token that the app at {url} has")
        return cls(url.rstrip("/"), token)

    def wanted(self, run_ids: Sequence[str]) -> set[str]:
        """Those that are not there. Raises LogError."""
        wanted = self._ask(WANTED, json.dumps(run_ids).encode()).get("wanted")
        if not isinstance(wanted, list):
            raise LogError(f"{self.address} did not say which runs it wants; check that it is this app")
        return {run_id for run_id in wanted if isinstance(run_id, str)} & {*run_ids}

    def push(self, run: FinishedRun) -> bool:
        """False where it was there. Raises PushRefused for a run not taken, LogError for a failed push."""
        body = "".join(run_lines(run, set())).encode()
        if len(body) > MAX_PUSH_BYTES:
            raise PushRefused(
                413, f"it has {len(body):,} bytes, more than {MAX_PUSH_BYTES:,}; move it in a file"
            )
        return bool(self._ask(PUSH, body).get("new"))

    def _ask(self, operation: str, body: bytes) -> dict[str, Any]:
        headers = signed_headers(self.token, operation, body, time.time())
        request = urllib.request.Request(self.address + operation, body, headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as reply:
                answer = json.loads(reply.read(_MAX_REPLY_BYTES))
        except urllib.error.HTTPError as error:
            detail = _detail(error)
            if error.code == 422 and operation == PUSH:
                raise PushRefused(error.code, detail) from error
            raise LogError(
                f"{self.address} does not take runs: status {error.code}{quoted(detail)}; check that it was"
                f" started with {TOKEN_VARIABLE}"
            ) from error
        except (OSError, ValueError) as error:
            raise LogError(
                f"{self.address} can't be reached{quoted(str(error))}; check the address, then push again:"
                " what was taken is not sent twice"
            ) from error
        if not isinstance(answer, dict):
            raise LogError(f"{self.address} does not answer as this app does; check the address")
        return answer


def push_runs(log: RunReader, target: PushTarget) -> PushOutcome:
    """Every run without an owner that has ended, oldest first, so that parents come before their
    children. Raises LogError; what was taken by then stays.
    """
    ids = [run.run_id for run in ended_runs(log) if run.owner is None]
    n_new, refused = 0, []
    for batch in batches(ids, MAX_IDS):
        wanted = target.wanted(batch)
        for run_id in (run_id for run_id in batch if run_id in wanted):
            try:
                n_new += target.push(finished_run(log, run_id, None))
            except PushRefused as error:
                refused.append(f"run {run_id} was not taken{quoted(str(error))}")
    return PushOutcome(n_new, len(ids) - n_new - len(refused), tuple(refused))


def _detail(error: urllib.error.HTTPError) -> str:
    """The sentence of a refusal, which another machine wrote."""
    try:
        detail = json.loads(error.read(_MAX_REPLY_BYTES))["detail"]
    except (OSError, ValueError, TypeError, KeyError):
        return ""
    return re.sub(r"\s+", " ", detail) if isinstance(detail, str) else ""
