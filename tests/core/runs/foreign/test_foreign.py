"""Runs of other retrievers: read out of files, found again in a document, kept in the log as they were."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pytest

from core.base.config import ChunkConfig
from core.base.errors import BadRequest
from core.base.events import fold
from core.base.progress import finish
from core.base.types import Document, Workspace
from core.cli import main
from core.corpus.index import Corpus
from core.corpus.opening import chunk_documents, index_of
from core.methods.qrag.agent import Agent
from core.methods.registry import facts_of
from core.runs.again.replay import workspace_of_run
from core.runs.export.page import run_page
from core.runs.foreign.files import ForeignPassage, read_foreign
from core.runs.foreign.places import Places
from core.runs.foreign.traces import Brought, Replayed, bring, found_sentence, log_brought
from core.runs.log import ExperimentLog, open_reader
from core.runs.log.records import support_of
from core.runs.log.spans import spans_of
from core.runs.log.transfer import finished_run
from core.runs.log.wire import read_runs, run_lines
from core.runs.whatif.diagnosis import diagnose
from core.views.draw.trail import fate
from core.views.findings import first_look_rank
from core.views.trail import gold_trails

pytestmark = pytest.mark.usefixtures("home")
QUERY = "Who kept the lamp of the mill?"
SENTENCES = [
    f"{name} carried a lamp to the {place} on day {day}."
    for day, (name, place) in enumerate(
        (name, place)
        for name in ("Anna", "Bela", "Cyrus", "Dora")
        for place in ("mill", "barn", "ferry", "inn")
    )
]
TEXT = " ".join([*SENTENCES, "The “ﬁne” lamp of the mill — so they say — was kept by Emil."])


@pytest.fixture(scope="module")
def workspace(agents: dict[str, Agent]) -> Workspace:
    config = ChunkConfig(max_tokens=64, one_sentence=True)
    document = Document("Lamps of the mill", TEXT, "text")
    return finish(chunk_documents([document], agents["relative10"].encoder, [config]))


def brought(workspace: Workspace, *lines: dict[str, Any], name: str = "mine.jsonl") -> list[Brought]:
    data = "\n".join(map(json.dumps, lines)).encode()
    return bring(read_foreign({name: data}), workspace, "relative10")


@pytest.mark.parametrize(
    ("passage", "how", "chunk_ids"),
    [
        ({"text": SENTENCES[3]}, "exact", (3,)),
        ({"text": f"{SENTENCES[3]} {SENTENCES[4]}"}, "exact", (3, 4)),
        ({"text": "carried a lamp to the inn on day 3."}, "exact", (3,)),
        ({"text": 'the "fine"  LAMP of the\nmill - so they say - was kept'}, "folded", (16,)),
        ({"text": "day 5: Bela carried his lamp to the barn"}, "overlap", (5,)),
        ({"text": "nothing of the kind stands in here"}, None, ()),
        ({"text": "lamp mill"}, None, ()),
        ({"chunk_id": 7}, "given", (7,)),
        ({"chunk_id": 700}, None, ()),
        ({"start": 1, "end": 20}, "given", (0,)),
        ({"start": 1, "end": 20, "document": 4}, None, ()),
        ({"name": "Lamps_of_the_mill#2"}, "given", (2,)),
        ({"name": "Lamps of the mill"}, "given", tuple(range(17))),
        ({"name": "doc-77"}, None, ()),
    ],
)
def test_what_was_returned_is_found_again(
    workspace: Workspace, passage: dict[str, Any], how: str | None, chunk_ids: Sequence[int]
) -> None:
    assert len(workspace) == 17
    found = Places(workspace).find(ForeignPassage.model_validate(passage))
    assert (None if found is None else found.how, () if found is None else found.chunk_ids) == (
        how,
        chunk_ids,
    )


def test_a_run_of_bm25s_itself_is_a_logged_run(
    workspace: Workspace, agents: dict[str, Agent], log: ExperimentLog, tmp_path: Path
) -> None:
    """Its own cut, two sentences a passage; scores of the others stay unknown, also out of the log."""
    agent, corpus = agents["relative10"], [" ".join(SENTENCES[i : i + 2]) for i in range(0, 16, 2)]
    retriever = bm25s.BM25(corpus=corpus)
    retriever.index(bm25s.tokenize(corpus, show_progress=False), show_progress=False)
    found, scores = retriever.retrieve(
        bm25s.tokenize("Dora mill inn", show_progress=False), k=3, show_progress=False
    )
    line = {
        "query": QUERY,
        "retrieved": [*found[0].tolist(), "It stands in no document of ours, this one."],
        "scores": [*scores[0].tolist(), 0.0],
        "gold": [SENTENCES[12], TEXT[-30:], "gold that is nowhere"],
        "answer": "Emil",
        "known_answer": "Emil",
    }
    [one] = brought(workspace, line, name="bm25s.jsonl")
    kept = log_brought(log, one, workspace, agent.encoder, None)
    log.flush()
    run = log.get(kept.run_id)
    facts, trace = facts_of(run.record.method), run.trace
    assert (run.status, facts.label, facts.score_name, run.record.vectors) == (
        "complete",
        "bm25s",
        "score",
        "",
    )
    assert (support_of(run), run.details["answer"]["text"]) == ((12, 16), "Emil")
    assert (one.n_missing, run.details["imported"]["n_missing_gold"]) == (1, 1)
    assert run.details["imported"]["passages"][3]["text"].startswith("It stands in no document")
    looked = trace.scores_at(1)
    assert trace.chosen == tuple(
        i for text in found[0] for i in (2 * corpus.index(text), 2 * corpus.index(text) + 1)
    )
    assert {*np.flatnonzero(np.isfinite(looked.q_values)).tolist()} == {*trace.chosen}
    assert trace.steps[0].q_value == pytest.approx(float(scores[0][0]))

    trails = gold_trails(trace, (12, 16))
    assert [fate(trail, trace) for trail in trails] == ["found at step 3", "not among what it returned"]
    assert first_look_rank(trace, 16) is None
    vectors = agent.encoder.encode_chunks(workspace.texts())
    searched = Corpus(workspace, index_of(agent.encoder, vectors))
    why = diagnose(agent, searched, trace, (12, 16))
    assert (why.chunk_id, why.n_found, why.ranks) == (16, 1, ())
    assert {remedy.way for remedy in why.remedies} <= {"agent", "bm25"}, "nobody goes on with it"
    assert "1 of 4 passages that were returned are not in these documents" in found_sentence([one])
    page = run_page(run, log.documents(kept.run_id), with_text=True)
    assert "That is what bm25s returned" in page
    replayed = fold(Replayed("x", trace).retrieve(QUERY, searched, trace.started.config))
    assert replayed.chosen == trace.chosen

    whole = finished_run(log, kept.run_id, None)
    (tmp_path / "run.jsonl").write_text("".join(run_lines(whole, set())), encoding="utf-8")
    [again] = read_runs(tmp_path / "run.jsonl")
    assert (again.trace, again.details) == (whole.trace, whole.details)
    assert workspace_of_run(whole, whole.documents).sha256 == workspace.sha256


def test_scores_that_say_no_order_are_not_shown_as_worth(workspace: Workspace) -> None:
    """Distances rise, and ranks have no scores: such a run has its ranks."""
    distances = {"query": QUERY, "retrieved": [{"chunk_id": 4, "score": 0.1}, {"chunk_id": 2, "score": 0.7}]}
    for line in (distances, {"query": QUERY, "retrieved": [4, 2]}):
        [one] = brought(workspace, line)
        assert facts_of(one.trace.started.method).score_name == "1/rank"
        assert [step.q_value for step in one.trace.steps] == [1.0, 0.5]
    assert brought(workspace, distances)[0].detail["passages"][1]["score"] == 0.7, "kept as it was given"


def test_a_trec_run_with_its_queries_passages_and_qrels(workspace: Workspace) -> None:
    run = [f"q{i} Q0 d{rank} {rank} {9.0 - rank} colbert" for i in range(50) for rank in (2, 1, 3)]
    files = {
        "run.trec": "\n".join(run),
        "queries.jsonl": "\n".join(json.dumps({"_id": f"q{i}", "text": f"Question {i}?"}) for i in range(50)),
        "corpus.jsonl": "\n".join(json.dumps({"_id": f"d{i}", "text": SENTENCES[i]}) for i in (1, 2)),
        "qrels.tsv": "query-id\tcorpus-id\tscore\nq7\td2\t1\nq8\td9\t1",
    }
    runs = bring(read_foreign({name: text.encode() for name, text in files.items()}), workspace, "relative10")
    assert [one.run.query for one in runs] == [f"Question {i}?" for i in range(50)]
    assert {(one.trace.started.method, one.trace.chosen, one.n_missing) for one in runs} == {
        ("imported:colbert", (1, 2), 1)
    }
    assert [runs[7].gold, runs[8].gold] == [(2,), ()]
    assert runs[8].detail["n_missing_gold"] == 1
    with pytest.raises(BadRequest, match="query 'q0' of run has no words"):
        read_foreign({"run.trec": files["run.trec"].encode()})


def otlp(spans: Sequence[Any]) -> bytes:
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    return json.dumps(MessageToDict(encode_spans(spans))).encode()


def test_spans_of_openinference_are_a_call_each(
    workspace: Workspace, agents: dict[str, Agent], log: ExperimentLog
) -> None:
    """Our own export comes back as it was; Phoenix has the same attributes otherwise nested."""
    [one] = brought(workspace, {"query": QUERY, "retrieved": [5, 3, 9]})
    run_id = log_brought(log, one, workspace, agents["relative10"].encoder, None).run_id
    log.flush()
    data = otlp(spans_of(finished_run(log, run_id, None)))
    [again] = bring(read_foreign({"spans.json": data}), workspace, "relative10")
    assert (again.run.query, again.trace.chosen, len(again.run.calls)) == (QUERY, (5, 3, 9), 3)
    documents = [{"document": {"content": SENTENCES[i], "score": 1.0 - i / 10}} for i in (1, 4)]
    spans = [
        {
            "span_kind": "CHAIN",
            "context": {"trace_id": "t"},
            "parent_id": None,
            "start_time": "2026-01-01T00:00:00",
        }
        | {"attributes": {"input": {"value": json.dumps({"question": QUERY})}, "output": {"value": "Emil"}}},
        {
            "context.trace_id": "t",
            "parent_id": "p",
            "start_time": "2026-01-01T00:00:01",
            "span_kind": "RETRIEVER",
        }
        | {"attributes.input.value": "lamp", "attributes.retrieval.documents": documents},
        {"context.trace_id": "t", "parent_id": "p", "start_time": "2026-01-01T00:00:02", "span_kind": "LLM"}
        | {"attributes.input.value": "..."},
    ]
    [phoenix] = bring(read_foreign({"phoenix.json": json.dumps({"data": spans}).encode()}), workspace, "x")
    assert (phoenix.run.query, phoenix.run.answer, phoenix.trace.chosen) == (QUERY, "Emil", (1, 4))
    assert phoenix.detail["calls"] == ["lamp"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", b"\xff", "no UTF-8 text"),
        ("a.jsonl", b" ", "is empty"),
        ("a.jsonl", b'{"query": "x"', "no valid JSON"),
        ("a.jsonl", b"[" * 100_000, "no valid JSON"),
        ("a.jsonl", b"[1]", "no JSON object"),
        ("a.jsonl", b'{"query": "who?"}', "retrieved: Field required"),
        ("a.jsonl", b'{"query": " ", "retrieved": []}', "question is empty"),
        ("a.jsonl", b'{"query": "who?", "retrieved": ["a"], "scores": [1, 2]}', "2 scores for 1 passages"),
        (
            "a.jsonl",
            b'{"query": "who?", "retrieved": [{"text": "a", "score": NaN}]}',
            "less than or equal",
        ),
        ("a.jsonl", json.dumps({"query": "who?", "retrieved": ["a"] * 1_001}).encode(), "at most 1000"),
        ("a.json", b'{"resourceSpans": [{"scopeSpans": 3}]}', "no OTLP"),
        (
            "a.json",
            b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"startTimeUnixNano": 1e999}]}]}]}',
            "no OTLP",
        ),
        ("a.trec", b"q Q0 d 1 1e300 x", "needs query, Q0"),
        ("a.trec", b"q Q0 d one 1.0 x", "needs query, Q0"),
        ("a.txt", b"what is this?", "no TREC run"),
        ("qrels.txt", b"q 0 d 1", "no run is in what was given"),
    ],
)
def test_what_is_no_run_is_told_in_a_sentence(name: str, content: bytes, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        read_foreign({name: content})


def test_the_command_logs_what_it_prints(
    tiny_checkpoints: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lamps.txt").write_text(TEXT, encoding="utf-8")
    line = {"query": QUERY, "retrieved": [SENTENCES[2], "nowhere in it, not one word"]}
    (tmp_path / "mine.jsonl").write_text(json.dumps(line), encoding="utf-8")
    checkpoint = str(tiny_checkpoints["relative10"])
    command = ["import-run", tmp_path / "mine.jsonl", "--document", tmp_path / "lamps.txt"]
    options = ["--checkpoint", checkpoint, "--log", tmp_path / "own.duckdb", "--json"]
    assert main(list(map(str, [*command, *options]))) == 0
    out, err = capsys.readouterr()
    printed = json.loads(out)
    assert "1 of 2 passages that were returned are not in these documents" in err
    run = open_reader(tmp_path / "own.duckdb").get(printed["run_id"])
    assert list(run.trace.evidence) == printed["evidence"] != []
    assert (run.record.method, printed["n_missing"]) == ("imported-ranks:mine", 1)
