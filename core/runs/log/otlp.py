"""Spans of runs on their way to a receiver of OpenTelemetry.

As lines of OTLP's JSON, and over HTTP as protobuf, which every receiver takes. `Sender` sends each run of
one's own some seconds after its end, from a thread of its own: a receiver that is slow, gone or wrong costs a
run nothing, and is told about in one sentence of the process's log. Off unless QRAG_OTLP_ENDPOINT names a
receiver. Decides that runs of visitors are never sent by themselves.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from core.base.errors import BadRequest, LogError
from core.runs.log.database import storable
from core.runs.log.spans import PROJECT, RunSpans, TraceSpan, spans_of
from core.runs.log.wire import FinishedRun

if TYPE_CHECKING:  # imported when something is sent: most processes never send
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

ENDPOINT_VARIABLE, HEADERS_VARIABLE = "QRAG_OTLP_ENDPOINT", "QRAG_OTLP_HEADERS"
PATH = "/v1/traces"
"""Where receivers listen, unless the address says otherwise."""
TIMEOUT = 10.0
"""Seconds for one request."""
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
        """headers: `name=value,name=value`, percent-encoded, as OTEL_EXPORTER_OTLP_HEADERS. Raises BadRequest."""
        parts = urlsplit(address.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadRequest(
                f"address {address[:80]!r} of the receiver of traces must begin with http:// or https:// and"
                " name a host, for example http://127.0.0.1:6006"
            )
        pairs = [pair.partition("=") for pair in headers.split(",") if pair.strip()]
        if any(not value for _, _, value in pairs):
            raise BadRequest(
                f"{HEADERS_VARIABLE} must be name=value pairs with commas between them; check its value"
            )
        named = {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs}
        path = parts.path if parts.path.strip("/") else PATH
        return cls(parts._replace(path=path, fragment="").geturl(), named)

    @classmethod
    def of_environment(cls, environ: Mapping[str, str] = os.environ) -> Receiver | None:
        """The one that QRAG_OTLP_ENDPOINT names; None without it. Raises BadRequest."""
        address = environ.get(ENDPOINT_VARIABLE, "").strip()
        return cls.at(address, environ.get(HEADERS_VARIABLE, "")) if address else None

    def send(self, spans: RunSpans) -> None:
        """Raises LogError when the receiver doesn't take them."""
        kind = {"Content-Type": "application/x-protobuf"}
        body = message(spans).SerializeToString()
        request = urllib.request.Request(self.address, body, {**self.headers, **kind}, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as reply:
                reply.read(1)
        except (OSError, ValueError) as error:  # a refused header is a ValueError
            why = f"status {error.code}" if isinstance(error, urllib.error.HTTPError) else str(error)
            raise LogError(
                f"the receiver of traces at {self.address} did not take run {spans.trace_id} ({why[:160]});"
                " check that it runs and takes OTLP over HTTP"
            ) from error


class Sender:
    """Sends runs in the background, in the order of their ends."""

    def __init__(self, receiver: Receiver, wait: float = ANSWER_WAIT) -> None:
        self._receiver, self._wait = receiver, wait
        self._waiting: queue.Queue[tuple[float, Callable[[], FinishedRun]] | None] = queue.Queue(MAX_WAITING)
        self._closing = threading.Event()
        self._failing = False
        self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
        self._thread.start()

    def offer(self, run: Callable[[], FinishedRun]) -> None:
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
                self._receiver.send(spans_of(logged))
                self._failing = False
            except Exception as error:  # whatever it is, the next run is sent all the same
                self._failed(str(error))

    def _failed(self, sentence: str) -> None:
        """Tells the first of several failures in a row."""
        if not self._failing:
            _logger.warning("%s", sentence)
        self._failing = True


def json_line(spans: RunSpans) -> str:
    """One request in OTLP's JSON, in which ids are hex digits, as collectors read them from files."""
    made = [
        {
            "traceId": spans.trace_id,
            "spanId": span.span_id,
            **({"parentSpanId": span.parent_id} if span.parent_id else {}),
            "name": span.name,
            "kind": 1,
            "startTimeUnixNano": str(span.start),
            "endTimeUnixNano": str(span.end),
            "attributes": [_pair(name, value) for name, value in span.attributes.items()],
            "status": {"code": 2, "message": span.failure} if span.failure else {"code": 1},
        }
        for span in spans.spans
    ]
    resource = {"attributes": [_pair(name, value) for name, value in _RESOURCE.items()]}
    request = {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": PROJECT}, "spans": made}]}]
    }
    return json.dumps(request, allow_nan=False) + "\n"


def message(spans: RunSpans) -> ExportTraceServiceRequest:
    """The same request as a message of OTLP's protobuf."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage

    def pairs(values: Mapping[str, str | float]) -> list[KeyValue]:
        return [
            KeyValue(
                key=name,
                value=AnyValue(string_value=storable(value))
                if isinstance(value, str)
                else AnyValue(double_value=value),
            )
            for name, value in values.items()
        ]

    def made(span: TraceSpan) -> SpanMessage:
        return SpanMessage(
            trace_id=bytes.fromhex(spans.trace_id),
            span_id=bytes.fromhex(span.span_id),
            parent_span_id=bytes.fromhex(span.parent_id),
            name=span.name,
            kind=SpanMessage.SPAN_KIND_INTERNAL,
            start_time_unix_nano=span.start,
            end_time_unix_nano=span.end,
            attributes=pairs(span.attributes),
            status=Status(code=Status.STATUS_CODE_ERROR, message=storable(span.failure))
            if span.failure
            else Status(code=Status.STATUS_CODE_OK),
        )

    scope = ScopeSpans(scope=InstrumentationScope(name=PROJECT), spans=[made(span) for span in spans.spans])
    resource = Resource(attributes=pairs(_RESOURCE))
    return ExportTraceServiceRequest(resource_spans=[ResourceSpans(resource=resource, scope_spans=[scope])])


_RESOURCE = {"service.name": PROJECT, "openinference.project.name": PROJECT}


def _pair(name: str, value: str | float) -> dict[str, Any]:
    typed = {"stringValue": storable(value)} if isinstance(value, str) else {"doubleValue": value}
    return {"key": name, "value": typed}
