"""Runs on their way to a receiver of OpenTelemetry traces.

A receiver that is slow, gone or wrong costs a run nothing, and is told of in one sentence of the process's
log. Off unless QRAG_OTLP_ENDPOINT names one. Runs of visitors are never sent by themselves. The exporter also
reads its own variables (OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE).
"""

from __future__ import annotations

import base64
import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from core.base.errors import BadRequest, LogError
from core.runs.log.records import LoggedRun
from core.runs.log.spans import spans_of

ENDPOINT_VARIABLE, HEADERS_VARIABLE = "QRAG_OTLP_ENDPOINT", "QRAG_OTLP_HEADERS"
PATH = "/v1/traces"
"""Where receivers listen, unless the address says otherwise."""
TIMEOUT = 10.0
"""Seconds for one run, with all tries."""
ANSWER_WAIT = 10.0
"""Seconds after a run's end at which it is sent: its answer is read after the end."""
CLOSING_WAIT = 5.0
"""Seconds for what is still to be sent when a process ends."""
MAX_WAITING = 1_000
"""Runs that wait to be sent; further ones are dropped."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Receiver:
    """Where spans are sent."""

    address: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def at(cls, address: str, headers: str = "") -> Receiver:
        """headers: `name=value,name=value`, percent-encoded. Raises BadRequest."""
        try:
            parts = urlsplit(address.strip())
        except ValueError:  # half of a pair of brackets
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise BadRequest(
                f"address {address.rpartition('@')[2][:80]!r} of the receiver of traces must begin with http://"
                " or https:// and name a host, for example http://127.0.0.1:6006; what it knows you by belongs"
                f" into {HEADERS_VARIABLE}"
            )
        pairs = [pair.partition("=") for pair in headers.split(",") if pair.strip()]
        named = {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs}
        if any(not value or not f"{name}{value}".isprintable() for name, value in named.items()):
            raise BadRequest(
                f"{HEADERS_VARIABLE} must be name=value pairs with commas between them; check its value"
            )
        path = parts.path if parts.path.strip("/") else PATH
        return cls(parts._replace(path=path, fragment="").geturl(), named)

    @classmethod
    def of_environment(cls, environ: Mapping[str, str] = os.environ) -> Receiver | None:
        """The one that QRAG_OTLP_ENDPOINT names; None without it. Raises BadRequest."""
        address = environ.get(ENDPOINT_VARIABLE, "").strip()
        return cls.at(address, environ.get(HEADERS_VARIABLE, "")) if address else None

    def send(self, run: LoggedRun) -> None:
        """Tries for TIMEOUT seconds. Raises LogError when the receiver doesn't take the run."""
        import requests  # with the next half a second: most processes never send
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        # it logs every try, and of a header that can't be sent the value
        logging.getLogger(OTLPSpanExporter.__module__).disabled = True
        answers: list[int] = []
        with requests.Session() as session:
            session.hooks["response"].append(lambda answer, **_: answers.append(answer.status_code))
            exporter = OTLPSpanExporter(
                self.address, headers=self.headers, timeout=TIMEOUT, session=session, max_request_size=0
            )
            exporter.export(spans_of(run))
        # the exporter counts a redirection, which it does not follow, as taken
        if not answers or answers[-1] >= 300:
            why = f"status {answers[-1]}" if answers else "no answer"
            raise LogError(
                f"the receiver of traces at {self.address.partition('?')[0]} did not take run"
                f" {run.record.run_id} ({why}); check that it runs and takes OTLP over HTTP"
            )


class Sender:
    """Sends runs in the background, in the order of their ends."""

    def __init__(self, receiver: Receiver, wait: float = ANSWER_WAIT) -> None:
        self._receiver, self._wait = receiver, wait
        self._waiting: queue.Queue[tuple[float, Callable[[], LoggedRun]] | None] = queue.Queue(MAX_WAITING)
        self._closing = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
        self._thread.start()

    def offer(self, run: Callable[[], LoggedRun]) -> None:
        """A run that has ended, read when sent; returns at once. `run` raises LogError to stay out."""
        try:
            self._waiting.put_nowait((time.monotonic() + self._wait, run))
        except queue.Full:
            self._failed(f"more than {MAX_WAITING:,} runs wait to be sent as traces; this one is not sent")

    def close(self) -> None:
        """Sends what waits, for CLOSING_WAIT seconds at most. Further calls do nothing."""
        if self._closing.is_set():
            return
        self._closing.set()
        with_room = time.monotonic() + CLOSING_WAIT
        try:
            self._waiting.put(None, timeout=CLOSING_WAIT)
        except queue.Full:
            return
        self._thread.join(max(0.0, with_room - time.monotonic()))

    def _work(self) -> None:
        while (item := self._waiting.get()) is not None:
            due, run = item
            self._closing.wait(max(0.0, due - time.monotonic()))
            try:
                try:
                    logged = run()
                except LogError:  # deleted meanwhile, or a visitor's
                    continue
                self._receiver.send(logged)
                self._failing = False
            except Exception as error:  # whatever it is, the next run is sent all the same
                self._failed(str(error))

    def _failed(self, sentence: str) -> None:
        """Tells the first of several failures in a row."""
        if not self._failing:
            _logger.warning("%s", sentence)
        self._failing = True


def json_line(run: LoggedRun) -> str:
    """What is sent, in OTLP's JSON, in which ids are hex digits, as collectors read it from files."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    request = MessageToDict(encode_spans(spans_of(run)), use_integers_for_enums=True)
    for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
            span[name] = base64.b64decode(span[name]).hex()
    return json.dumps(request, allow_nan=False) + "\n"
