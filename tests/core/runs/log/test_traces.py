"""Runs as traces: what spans say, what a receiver gets over HTTP, and what a run costs where there is none."""

from __future__ import annotations

import gzip
import json
import logging
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from core.base.errors import BadRequest, LogError
from core.methods.sparc.trace import fold_sparc
from core.runs.again.records import log_sparc_end
from core.runs.export.runs import export_runs
from core.runs.log import ExperimentLog, InboxLog, RunLog, RunRecord, open_log, otlp
from core.runs.log.otlp import ENDPOINT_VARIABLE, HEADERS_VARIABLE, Receiver, Sender
from core.runs.log.spans import spans_of
from core.runs.log.transfer import finished_run, send_runs
from tests.app.sparc_story import story
from tests.core.runs.log.recording import DOCUMENT, N_CHUNKS, chunk_table, log_run, make_record, step_taken

ANSWER = {"text": "In the kitchen.", "confidence": 0.9, "by": "words", "citations": [3]}


class Collector(ThreadingHTTPServer):
    """A receiver of OTLP over HTTP that keeps what it gets."""

    daemon_threads, block_on_close = True, False

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], ExportTraceServiceRequest]] = []
        self.status = 200
        self.busy = 0
        """How many requests get status 503 first."""
        self.answers = threading.Event()
        self.answers.set()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def trace_ids(self) -> list[str]:
        return [
            request.resource_spans[0].scope_spans[0].spans[0].trace_id.hex() for _, _, request in self.got
        ]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.answers.wait(30.0)
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        self.server.got.append(
            (self.path, {name.lower(): value for name, value in self.headers.items()}, request)
        )
        self.send_response(503 if self.server.busy else self.server.status)
        self.server.busy = max(0, self.server.busy - 1)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def logged(log: RunLog, **changes: Any) -> RunRecord:
    record = make_record(**changes)
    log.start(record, [DOCUMENT], [chunk_table()])
    for step in (1, 2, 3):
        log.record(record.run_id, step_taken(record.run_id, step, text=f"Text of step {step}."))
    log.attach(record.run_id, "answer", ANSWER, record.owner)
    log.finish(record.run_id, "complete")
    return record


def logged_sparc(log: ExperimentLog) -> RunRecord:
    record = make_record(method="sparc")
    log.start(record, [DOCUMENT], [chunk_table()])
    log_sparc_end(log, record.run_id, fold_sparc(story(n_chunks=N_CHUNKS)), None, "complete")
    log.flush()
    return record


def read_line(line: str) -> dict[str, dict[str, Any]]:
    """The spans of a line by name, their attributes as a dictionary."""
    [resource] = json.loads(line)["resourceSpans"]
    [scope] = resource["scopeSpans"]
    return {
        span["name"]: span
        | {"attributes": {pair["key"]: next(iter(pair["value"].values())) for pair in span["attributes"]}}
        for span in scope["spans"]
    }


def test_a_run_is_a_chain_and_every_step_a_retriever_under_it(log: ExperimentLog, tmp_path: Path) -> None:
    first, second = logged(log, label={"support": [3]}), logged(log)
    file = export_runs(log, None, "openinference", tmp_path / "traces")
    lines = file.read_text().splitlines()
    assert [
        json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] for line in lines
    ] == [
        first.run_id,
        second.run_id,
    ]
    spans = read_line(lines[0])
    whole, trace = spans.pop("qrag run"), log.get(first.run_id).trace
    told = whole["attributes"]
    assert told["openinference.span.kind"] == "CHAIN"
    assert (told["input.value"], told["output.value"]) == ("Where is the milk?", "In the kitchen.")
    assert json.loads(told["metadata"])["label"] == {"support": [3]}
    assert list(spans) == ["step 1", "step 2", "step 3"]
    at = int(whole["startTimeUnixNano"])
    for step, span in zip(trace.steps, spans.values(), strict=True):
        told = span["attributes"]
        assert span["parentSpanId"] == whole["spanId"]
        assert told["openinference.span.kind"] == "RETRIEVER"
        assert told["input.value"] == "Where is the milk?"
        assert told["retrieval.documents.0.document.id"] == str(step.chunk_id)
        assert told["retrieval.documents.0.document.score"] == step.q_value
        assert told["retrieval.documents.0.document.content"] == step.text == told["output.value"]
        place = json.loads(told["retrieval.documents.0.document.metadata"])
        assert (place["title"], place["start"]) == ("Handbook", 25 * step.chunk_id)
        assert place["support"] is (step.chunk_id == 3)
        assert int(span["startTimeUnixNano"]) == at
        at = int(span["endTimeUnixNano"])
        assert at - int(span["startTimeUnixNano"]) == 1_500_000
    assert int(whole["endTimeUnixNano"]) == at
    assert json.loads(spans["step 3"]["attributes"]["metadata"])["chosen_before"] == list(trace.chosen[:2])


def test_without_text_spans_have_ids_and_scores(log: ExperimentLog, tmp_path: Path) -> None:
    record = log_run(log, make_record(), text="SECRET CHUNK")
    file = export_runs(log, [record.run_id], "openinference", tmp_path / "one.jsonl", include_text=False)
    assert "SECRET" not in file.read_text()
    assert "Section" not in file.read_text()
    told = read_line(file.read_text())["step 1"]["attributes"]
    assert set(told) == {
        "openinference.span.kind",
        "input.value",
        "input.mime_type",
        "retrieval.documents.0.document.id",
        "retrieval.documents.0.document.score",
        "metadata",
    }


def test_a_run_that_failed_is_an_error_and_says_why(log: ExperimentLog) -> None:
    record = make_record()
    log.start(record, [DOCUMENT])
    log.finish(record.run_id, "failed", "the disk is full")
    [span] = spans_of(finished_run(log, record.run_id, None))
    assert span.status.description == "failed: the disk is full"
    assert span.start_time == span.end_time


@pytest.mark.parametrize("length", [1, 4_000])
def test_a_list_says_why_sparc_stopped_as_its_page_does(log: ExperimentLog, length: int) -> None:
    """Also where the trace is so long that it lies apart."""
    record = make_record(method="sparc")
    log.start(record, [DOCUMENT], [chunk_table()])
    asked, *events = story(n_chunks=N_CHUNKS)
    words = '"stop_reason": "tokens" ' + random.Random(0).randbytes(length // 2).hex()
    trace = fold_sparc([replace(asked, question=words), *events])
    log_sparc_end(log, record.run_id, trace, None, "complete")
    log_run(log, make_record())
    reasons = {row.method: row.stop_reason for row in log.search(owner=None).rows}
    assert trace.stopped is not None
    assert reasons == {"sparc": trace.stopped.reason, "qrag": "threshold"}


def test_sparc_is_a_chain_a_round_and_a_retriever_a_branch(log: ExperimentLog, tmp_path: Path) -> None:
    record = logged_sparc(log)
    spans = read_line(export_runs(log, [record.run_id], "openinference", tmp_path / "s.jsonl").read_text())
    assert list(spans) == [
        "sparc run",
        "round 1",
        "branch 1.1, BM25",
        "branch 1.2, Q-RAG",
        "round 2",
        "branch 2.1, dense",
        "branch 2.2, BM25",
    ]
    dense = spans["branch 2.1, dense"]
    assert dense["parentSpanId"] == spans["round 2"]["spanId"]
    assert spans["round 2"]["parentSpanId"] == spans["sparc run"]["spanId"]
    told = dense["attributes"]
    assert told["input.value"] == "mill hiding place"
    assert [told[f"retrieval.documents.{i}.document.id"] for i in (0, 1)] == ["17", "30"]
    assert json.loads(told["metadata"])["verdict"] == "stop"
    assert spans["sparc run"]["attributes"]["output.value"] == "under the mill stone"
    assert spans["round 2"]["attributes"]["input.value"] == "Anna had a letter. She feared Peter."


def test_what_is_sent_is_what_is_written(log: ExperimentLog, collector: Collector, tmp_path: Path) -> None:
    odd = "half a pair \ud800, and 語"
    record = logged(log, query=odd)
    receiver = Receiver.at(collector.address, "authorization=Bearer%20key,x=1")
    assert send_runs(log, None, receiver) == 1
    [(path, headers, request)] = collector.got
    assert path == "/v1/traces"
    assert headers["content-type"] == "application/x-protobuf"
    assert headers["authorization"] == "Bearer key"
    line = read_line(export_runs(log, None, "openinference", tmp_path / "a.jsonl").read_text())
    [resource] = request.resource_spans
    assert {pair.key: pair.value.string_value for pair in resource.resource.attributes} == {
        "service.name": "qrag-explorer",
        "openinference.project.name": "qrag-explorer",
    }
    sent = resource.scope_spans[0].spans
    assert [span.name for span in sent] == list(line)
    for span in sent:
        written = line[span.name]
        assert span.trace_id.hex() == record.run_id
        assert (span.span_id.hex(), span.parent_span_id.hex()) == (
            written["spanId"],
            written.get("parentSpanId", ""),
        )
        assert (str(span.start_time_unix_nano), str(span.end_time_unix_nano)) == (
            written["startTimeUnixNano"],
            written["endTimeUnixNano"],
        )
        values = {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}
        assert values == written["attributes"]
        assert span.status.code == written["status"]["code"]
    assert line["qrag run"]["attributes"]["input.value"] == odd.replace("\ud800", "?")


def test_finished_runs_are_sent_where_the_environment_names_a_receiver(
    collector: Collector, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT_VARIABLE, collector.address)
    monkeypatch.setenv(HEADERS_VARIABLE, "api_key=k")
    with closing(open_log(path)) as log:
        own = logged(log)
        logged(log, owner="a" * 64)
        log.attach(own.run_id, "answer", {**ANSWER, "text": "In the cellar."}, None)
        assert not collector.got, "the answer is waited for"
    assert collector.trace_ids == [own.run_id], "a visitor's is not sent"
    [(_, headers, request)] = collector.got
    assert headers["api_key"] == "k"
    whole = request.resource_spans[0].scope_spans[0].spans[0]
    assert "In the cellar." in {pair.value.string_value for pair in whole.attributes}


@pytest.mark.usefixtures("owner")
def test_runs_that_wait_in_the_inbox_are_sent_too(
    collector: Collector, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT_VARIABLE, collector.address)
    with closing(open_log(path)) as log:
        assert isinstance(log, InboxLog)
        own = logged(log)
        logged(log, owner="a" * 64)
    assert collector.trace_ids == [own.run_id]


def test_a_receiver_that_is_gone_or_slow_costs_a_run_nothing(
    collector: Collector,
    log: ExperimentLog,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(otlp, "CLOSING_WAIT", 60.0)
    monkeypatch.setattr(otlp, "TIMEOUT", 0.5)
    collector.status = 503
    collector.answers.clear()
    log.sender = Sender(Receiver.at(collector.address), wait=0.0)
    for _ in range(3):
        logged(log)
    log.flush()
    assert not collector.got, "runs are logged before any is answered"
    collector.answers.set()
    log.sender.close()
    assert len(collector.got) == 3
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len(warnings) == 1, "a failure is told once, in spite of tries, until the receiver is back"
    assert warnings[0].startswith(f"the receiver of traces at {collector.address}/v1/traces did not take run")
    assert "status 503" in warnings[0]


def test_a_run_that_can_not_be_read_does_not_keep_the_next_from_being_sent(
    collector: Collector, log: ExperimentLog
) -> None:
    broken, whole = logged(log), logged(log)
    log.write(lambda con: con.execute("UPDATE events SET event = '{}' WHERE run_id = ?", [broken.run_id]))
    with closing(Sender(Receiver.at(collector.address), wait=0.0)) as sender:
        for run_id in (broken.run_id, whole.run_id):
            sender.offer(lambda run_id=run_id: finished_run(log, run_id, None))  # type: ignore[misc]
    assert collector.trace_ids == [whole.run_id]


def test_a_receiver_that_hangs_does_not_hold_up_the_end(
    collector: Collector, log: ExperimentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp, "CLOSING_WAIT", 0.3)
    collector.answers.clear()
    log.sender = Sender(Receiver.at(collector.address), wait=0.0)
    logged(log)
    started = time.perf_counter()
    log.sender.close()
    assert 0.2 < time.perf_counter() - started < 20.0
    collector.answers.set()


def test_without_the_variable_nothing_is_sent(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENDPOINT_VARIABLE, raising=False)
    with closing(open_log(path)) as log:
        assert log.sender is None


@pytest.mark.parametrize(
    "address",
    ["localhost:6006", "ftp://host", "http://", "file:///etc/passwd", "http://me:key@host", "http://[x"],
)
def test_an_address_that_is_none_is_said_at_once(
    address: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT_VARIABLE, address)
    with pytest.raises(BadRequest, match="must begin with http://"):
        open_log(path)
    for headers in ("novalue", "authorization=Bearer%20key%0A"):
        with pytest.raises(BadRequest, match="name=value pairs"):
            Receiver.at("http://host", headers)
    assert Receiver.at("https://host/custom/path?a=1").address == "https://host/custom/path?a=1"


def test_a_run_that_is_not_taken_is_one_sentence(
    log: ExperimentLog,
    collector: Collector,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged(log)
    for status in (302, 400):
        collector.status = status
        with pytest.raises(LogError, match=rf"/v1/traces did not take run .*status {status}") as caught:
            send_runs(log, None, Receiver.at(f"{collector.address}?key=canary", "x=canary"))
        assert "canary" not in str(caught.value)
    monkeypatch.setattr(otlp, "TIMEOUT", 0.5)
    with pytest.raises(LogError, match=r"did not take run .*no answer"):
        send_runs(log, None, Receiver.at("http://127.0.0.1:9"))
    assert not caplog.records


def test_a_receiver_that_is_busy_is_asked_again(log: ExperimentLog, collector: Collector) -> None:
    collector.busy = 1
    logged(log)
    assert send_runs(log, None, Receiver.at(collector.address)) == 1
    assert len(collector.got) == 2
