"""Runs of other retrievers: read out of files, found again in a document, kept in the log as they were."""

from __future__ import annotations

import json
import re
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
from core.base.types import Document, Workspace, join_workspaces, workspace_of_chunks
from core.cli import main
from core.corpus.index import Corpus
from core.corpus.opening import chunk_documents, index_of
from core.methods.qrag.agent import Agent
from core.methods.registry import facts_of
from core.runs.again.replay import workspace_of_run
from core.runs.export.logged import settings_of
from core.runs.export.page import run_page
from core.runs.foreign.files import ForeignPassage, _milliseconds, files_of, read_foreign
from core.runs.foreign.places import Places
from core.runs.foreign.traces import Brought, Replayed, bring, found_sentence, log_brought
from core.runs.log import ExperimentLog, open_reader
from core.runs.log.bounds import MAX_MILLISECONDS
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


@pytest.mark.parametrize(
    "passage",
    [
        {"id": None, "metadata": {"source": "a"}, "page_content": SENTENCES[1], "type": "Document"},
        {"lc": 1, "id": ["langchain", "Document"], "kwargs": {"page_content": SENTENCES[1]}},
        {"text": None, "content": SENTENCES[1]},
        {"text": "", "page_content": SENTENCES[1]},
        {"node": {"id_": "a", "text": SENTENCES[1], "embedding": [0.1]}, "score": 0.8},
        {"document": {"text": SENTENCES[1]}, "doc_id": 7},
        {"passage_text": SENTENCES[1], "metadata": {"source": 3}},
        {"body": SENTENCES[1], "blob": None},
        {"id": "x", "score": 0.5, "payload": {"page_content": SENTENCES[1], "score": "none", "id": 7}},
        {"id": "x", "metadata": {"text": SENTENCES[1]}},
        {"_id": "x", "_score": 1.5, "_source": {"text": SENTENCES[1]}},
        {"document": SENTENCES[1], "score": 0.4},
        {"document": "Lamps of the mill", "text": SENTENCES[1]},
        [{"page_content": SENTENCES[1], "metadata": {}}, 0.3],
        [SENTENCES[1], 0.3],
        "1",
    ],
)
def test_passages_as_frameworks_write_them(workspace: Workspace, passage: Any) -> None:
    [one] = brought(workspace, {"query": QUERY, "retrieved": [passage], "gold": None, "known_answer": None})
    assert (one.trace.evidence, one.n_missing) == ((1,), 0)


PUMP = [
    "Warranty. It is covered for two whole years.",
    "Press red to stop it.",
    "The pump was built in 1907.",
]
TANK = ["Warranty. It is covered for two whole years.", "Turn left to open it.", "The tank of 1800 holds 10."]


def test_a_sentence_of_stop_words_that_stands_twice_is_found() -> None:
    twice = workspace_of_chunks(["It was not to be.", "A barn.", "It was not to be."], np.full(3, 9), "x")
    found = Places(twice).find(ForeignPassage.model_validate({"text": "It was not to be."}))
    assert found is not None
    assert (found.how, found.chunk_ids) == ("exact", (0,))


@pytest.mark.parametrize(
    ("passage", "chunk_ids"),
    [
        ({"title": "tank.md", "text": TANK[0]}, (3,)),
        ({"page_content": TANK[0], "metadata": {"source": "docs/tank.md"}}, (3,)),
        ({"text": TANK[0].upper(), "metadata": '{"source": "tank.md"}'}, (3,)),
        ({"chunk_id": 3, "text": TANK[0]}, (3,)),
        ({"chunk_id": 3, "text": TANK[0].upper()}, (3,)),
        ({"chunk_id": 0, "text": TANK[1]}, (4,)),
        ({"id": "3", "text": TANK[0]}, (3,)),
        ({"id": "3"}, ()),
        ({"id": "4", "text": f"{TANK[1]}\n\n{TANK[2]}"}, (4, 5)),
        ({"document": 1, "start": 0, "end": 40, "text": TANK[0]}, (3,)),
        ({"title": "tank.md", "start": 0, "end": 30}, (3,)),
        ({"title": "lake.md", "start": 0, "end": 30}, ()),
        ({"name": "tank.md#1"}, (4,)),
        ({"name": "pump.md#1"}, (1,)),
        ({"name": "tank.md#4"}, (4,)),
        ({"name": "tank.md#9"}, ()),
        ({"name": "tank.md#0", "text": TANK[0]}, (3,)),
        ({"text": "180"}, ()),
        ({"text": "tank"}, (5,)),
        ({"text": "whole years"}, ()),
        ({"text": "WHOLE  YEARS"}, ()),
        ({"text": "whole years", "title": "tank.md"}, (3,)),
        ("17", ()),
    ],
)
def test_of_several_documents_the_named_one_is_meant(passage: Any, chunk_ids: Sequence[int]) -> None:
    """Also by TITLE#CHUNK, which our own TREC files count in each document anew."""
    parts = [
        workspace_of_chunks(chunks, np.full(3, 9), title)
        for chunks, title in ((PUMP, "pump.md"), (TANK, "tank.md"))
    ]
    found = Places(join_workspaces(parts)).find(ForeignPassage.model_validate(passage))
    assert (() if found is None else found.chunk_ids) == chunk_ids


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
    assert "1 of 4 passages that were returned were not found in these documents" in found_sentence([one])
    page = run_page(run, log.documents(kept.run_id), with_text=True)
    assert "That is what bm25s returned" in page
    assert (list(settings_of(run)), list(settings_of(run.without_text()))) == (
        ["Returned", "Scores"],
        ["Scores"],
    )
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
    named = [{"chunk_id": 4, "relevance_score": 0.1}, {"chunk_id": 2, "distance": 0.7}]
    passages = brought(workspace, {"query": QUERY, "retrieved": named})[0].detail["passages"]
    assert [passage["score"] for passage in passages] == [0.1, 0.7]


@pytest.mark.parametrize("others", [[], [{"chunk_id": 2, "distance": 0.1}]])
def test_a_distance_is_no_worth_alone_either(workspace: Workspace, others: list[Any]) -> None:
    [one] = brought(workspace, {"query": QUERY, "retrieved": [{"chunk_id": 4, "distance": 0.1}, *others]})
    assert facts_of(one.trace.started.method).score_name == "1/rank"
    assert one.trace.steps[0].q_value == 1.0


def test_a_score_that_is_missing_is_none_of_a_whole_file() -> None:
    line = {"query": QUERY, "retrieved": [1, 2], "scores": [0.4, None], "answer": " "}
    [run] = read_foreign({"a.jsonl": json.dumps(line).encode()})
    assert [passage.score for passage in run.calls[0].passages] == [0.4, None]
    assert run.answer is None, "a blank says that nothing was answered"


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
    with pytest.raises(BadRequest, match=r"query 'q0' of run\.trec has no words"):
        read_foreign({"run.trec": files["run.trec"].encode()})


def test_a_trec_run_is_read_as_it_is_written(workspace: Workspace) -> None:
    """A run a tag, by rank and then score; queries of six words; numbers with a point; other heads."""
    lines = ["q1 Q0 d3 0 1.0 dense", "q1 Q0 d1 1.0 3 bm25", "", "q1 Q0 d2 2 2 bm25", "q1 Q0 d4 0 9 dense"]
    files = {
        "run.trec": "\n".join(lines),
        "topics.tsv": "q1\tWho kept the\u2028old lamp?",
        "corpus.jsonl": "\n".join(json.dumps({"_id": f"d{i}", "text": SENTENCES[i]}) for i in (1, 2, 3, 4)),
        "qrels.tsv": "query_id\tdoc_id\trelevance\nq1\td2\t1.0\nq1\td3\t0.0",
    }
    runs = bring(read_foreign({name: text.encode() for name, text in files.items()}), workspace, "x")
    assert [(one.trace.started.method, one.trace.chosen, one.gold) for one in runs] == [
        ("imported:dense", (4, 3), (2,)),
        ("imported:bm25", (1, 2), (2,)),
    ]
    assert {one.run.query for one in runs} == {"Who kept the\u2028old lamp?"}
    named = {"query_results.trec": files["run.trec"], "queries.tsv": "q1\tWho kept the old lamp?"}
    assert len(read_foreign({name: text.encode() for name, text in named.items()})) == 2
    files["run.trec"] += "\n\nq1 Q0 d2 two 2 bm25"
    with pytest.raises(BadRequest, match=r"line 7 of run\.trec needs"):
        read_foreign({name: text.encode() for name, text in files.items()}, "colbert")


def test_no_file_or_line_is_lost_without_a_word(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.jsonl").write_text("{}", encoding="utf-8")
    with pytest.raises(BadRequest, match=r"2 files are called run\.jsonl"):
        files_of([tmp_path / folder / "run.jsonl" for folder in ("a", "b")])
    line = {"query": QUERY, "retrieved": [1]}
    marked = [line, line | {"attributes": {"user": "me"}}, line | {"_id": "q1", "text": QUERY}]
    marked = [{"line": 1} | line, *marked, line | {"data": [1, 2]}]  # neither an export nor a page of Phoenix
    assert len(read_foreign({"a.jsonl": "\n".join(map(json.dumps, marked)).encode()})) == 5
    deep = "".join(f"q Q0 d{i} {i} 1 x\n" for i in range(1_001)).encode()
    with pytest.raises(BadRequest, match="1,001 passages of x, more than 1,000"):
        read_foreign({"run.trec": deep, "queries.tsv": b"q\tWho?"})


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
            "start_time": "2026-01-01T00:00:01Z",
            "end_time": "2026-01-01T00:00:01.250000Z",
            "span_kind": "RETRIEVER",
        }
        | {"attributes.input.value": "lamp", "attributes.retrieval.documents": documents},
        {"context.trace_id": "t", "parent_id": "p", "start_time": "2026-01-01T00:00:02", "span_kind": "LLM"}
        | {"attributes.input.value": "..."},
    ]
    pages = "".join(json.dumps({"data": part, "next_cursor": None}) for part in (spans[:1], spans[1:]))
    [phoenix] = bring(read_foreign({"phoenix.json": pages.encode()}), workspace, "x")
    assert (phoenix.run.query, phoenix.run.answer, phoenix.trace.chosen) == (QUERY, "Emil", (1, 4))
    assert phoenix.detail["calls"] == ["lamp"]
    assert phoenix.run.calls[0].milliseconds == 250


@pytest.mark.parametrize(
    ("start", "end", "milliseconds"),
    [
        (1767225600000, 1767225600250, 250.0),
        ("2026-01-02", "2026-01-01", 0.0),
        ("1026-01-02", "2026-01-01", MAX_MILLISECONDS),
        ("2026-01-01", "2026-01-01T00:00:01Z", 0.0),
        ("2026-01-01", None, 0.0),
        ("soon", "later", 0.0),
        (1, float("nan"), 0.0),
        (1, 10**400, 0.0),
    ],
)
def test_times_of_phoenix_are_bounded(start: Any, end: Any, milliseconds: float) -> None:
    assert _milliseconds(start, end) == milliseconds


def span(kind: str, parent: Any = "r", documents: Any = None, **values: Any) -> dict[str, Any]:
    """A row of Phoenix's data frame."""
    own = {"span_kind": kind, "context.trace_id": "t", "parent_id": parent, "start_time": kind}
    return (
        own
        | {f"attributes.{name}.value": values.get(name) for name in ("input", "output")}
        | {"attributes.retrieval.documents": documents}
    )


def phoenix(*spans: dict[str, Any]) -> Any:
    [run] = read_foreign({f"{i}.json": json.dumps(one).encode() for i, one in enumerate(spans)})
    return run


@pytest.mark.parametrize(
    ("asked", "query"),
    [
        (json.dumps({"messages": [{"content": "Hello"}, {"role": "user", "content": QUERY}]}), QUERY),
        (json.dumps({"input": {"question": QUERY}}), QUERY),
        (json.dumps({"message": QUERY}), QUERY),
        (json.dumps(QUERY), QUERY),
        ("1907", "1907"),
        (json.dumps({"top_k": 3}), "lamp"),
        ('{"input":' * 900 + "1" + "}" * 900, "lamp"),
        ("x" * 10_001, "lamp"),
        (None, "lamp"),
        (float("nan"), "lamp"),
    ],
)
def test_the_question_of_a_trace_is_in_its_root_or_else_at_the_retriever(asked: Any, query: str) -> None:
    """Each span in a file of its own."""
    answer = json.dumps({"messages": [{"content": QUERY}, {"content": "Emil"}]})
    found, llm = span("RETRIEVER", input="lamp", documents=[{"document.content": "x"}]), span("LLM")
    for no_parent in (None, float("nan"), "0" * 16):
        run = phoenix(span("CHAIN", no_parent, input=asked, output=answer), llm, found)
        assert (run.query, run.answer, len(run.calls)) == (query, "Emil", 1)
    assert phoenix(span("CHAIN", None, input=asked), llm, found).answer is None
    for said, last in ((("Emil", None), "Emil"), (("Emil", "Emil"), "Emil"), (("Emil", "Anna"), None)):
        models = [span("LLM", output=words) for words in said]
        assert phoenix(span("CHAIN", None, input=asked), found, *models).answer == last


@pytest.mark.parametrize(
    ("root", "models", "answer"),
    [
        ("CHAIN", [{"attributes.llm.output_messages": [{"message.content": "Emil"}]}], "Emil"),
        (
            "CHAIN",
            [{"attributes.llm.output_messages": [{"message.contents": [{"message_content.text": "Emil"}]}]}],
            "Emil",
        ),
        ("CHAIN", [], None),
        ("RETRIEVER", [{"attributes.output.value": "Who kept it?"}], None),
    ],
)
def test_what_holds_no_answer_is_none(root: str, models: list[dict[str, Any]], answer: str | None) -> None:
    """The outputs of a pipeline by component, a prompt, and questions that a retriever asks instead."""
    output = json.dumps(
        {"finder": {"documents": ["Document(id=a)"]}, "llm": {"replies": ["ChatMessage(...)"]}}
    )
    prompt = span("LLM", output=QUERY) | {"attributes.llm.prompt_template.template": "{{query}}"}
    asked = span(root, None, PASSAGES if root == "RETRIEVER" else None, input=QUERY, output=output)
    found = span("RETRIEVER", documents=PASSAGES)
    assert phoenix(asked, found, prompt, *(span("LLM") | model for model in models)).answer == answer


PASSAGES = [{"document.content": SENTENCES[1], "document.id": None}, {"document": {"content": SENTENCES[4]}}]


@pytest.mark.parametrize(
    "given",
    [
        {"documents": PASSAGES},
        {"documents": json.dumps(PASSAGES)},
        {"output": json.dumps({"documents": [{"page_content": SENTENCES[i]} for i in (1, 4)]})},
        {"output": json.dumps([SENTENCES[1], SENTENCES[4]])},
        {"output": json.dumps({"finder": {"documents": [{"content": SENTENCES[i]} for i in (1, 4)]}})},
    ],
)
def test_retrieved_documents_are_read_in_every_form(given: dict[str, Any]) -> None:
    run = phoenix(span("RETRIEVER", input=QUERY, **given))
    assert [passage.text for passage in run.calls[0].passages] == [SENTENCES[1], SENTENCES[4]]


def test_of_retrievers_within_others_the_outermost_with_documents_counts() -> None:
    """As LlamaIndex has `_retrieve` below `retrieve`, and ensembles their parts; also below one without any."""
    bundle = json.dumps({"query_bundle": {"query_str": QUERY, "embedding": None}})
    printed = json.dumps(["<NodeWithScore(node=TextNode(id_=a), score=0.9)>"])
    outer = span("RETRIEVER", None, PASSAGES, input=QUERY) | {"context.span_id": "a"}
    within = span("RETRIEVER", "a", input=bundle, output=printed) | {"context.span_id": "b"}
    part = span("RETRIEVER", "b", PASSAGES[:1], input="lamp")
    without = outer | {"attributes.retrieval.documents": None}
    for spans, n in (
        ((within, outer), 2),
        ((part, within, outer), 2),
        ((part, within, without), 1),
        ((without, within), 0),
        ((within,), 0),
    ):
        [call] = phoenix(*spans).calls
        assert len(call.passages) == n
    assert phoenix(within).query == QUERY


@pytest.mark.parametrize(
    "others",
    [
        [span("CHAIN", None, input=json.dumps({"data": {"text_embedder": {"text": QUERY}, "x": {"k": 3}}}))],
        [span("EMBEDDING", input=json.dumps({"text": QUERY}))],
        [span("EMBEDDING") | {"attributes.embedding.embeddings": [{"embedding.text": QUERY}]}],
    ],
)
def test_a_retriever_that_got_a_vector_was_asked_what_was_embedded(others: list[Any]) -> None:
    """As Haystack's."""
    vector = json.dumps({"query_embedding": [0.1] * 384, "top_k": None})
    found = span("RETRIEVER", documents=PASSAGES, input=vector)
    run = phoenix(found, *others)
    assert (run.query, run.calls[0].query) == (QUERY, QUERY)
    with pytest.raises(BadRequest, match="the question is empty; give one in the file, or leave this out"):
        phoenix(found)


def test_spans_as_phoenix_answers_with_underscores(workspace: Workspace) -> None:
    """A score that is no number is none."""
    values = {"openinference.span.kind": "RETRIEVER", "input.value": QUERY}
    values["retrieval.documents.0.document.content"] = SENTENCES[1]
    attributes = [{"key": key, "value": {"string_value": value}} for key, value in values.items()]
    attributes.append({"key": "retrieval.documents.0.document.score", "value": {"double_value": "NaN"}})
    one_span = {"trace_id": "t", "parent_span_id": None, "start_time_unix_nano": 1_000_000}
    answer = {"data": [one_span | {"end_time_unix_nano": 3_000_000, "attributes": attributes}]}
    [one] = bring(read_foreign({"spans.json": json.dumps(answer).encode()}), workspace, "x")
    assert (one.run.query, one.trace.chosen, one.run.calls[0].milliseconds) == (QUERY, (1,), 2)


def test_a_span_of_otlp_alone_on_its_line(workspace: Workspace) -> None:
    listed = [
        {"kvlistValue": {"values": [{"key": "document.content", "value": {"stringValue": SENTENCES[i]}}]}}
        for i in (1, 4)
    ]
    values = {"openinference.span.kind": {"stringValue": "RETRIEVER"}, "input.value": {"stringValue": QUERY}}
    values["retrieval.documents"] = {"arrayValue": {"values": listed}}
    attributes = [{"key": key, "value": value} for key, value in values.items()]
    [one] = brought(workspace, {"traceId": "t", "parentSpanId": None, "attributes": attributes})
    assert (one.run.query, one.trace.chosen) == (QUERY, (1, 4))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", b"\xff", "no UTF-8 text"),
        ("a.jsonl", b" ", "is empty"),
        ("a.jsonl", b'{"query": "x"', "no valid JSON"),
        ("a.jsonl", b"[" * 100_000, "no valid JSON"),
        ("a.jsonl", b"[1]", "no JSON object"),
        ("a.jsonl", b'{"line": "run"}', "take it in with runs import"),
        ("a.jsonl", b'{"query": "who?"}', "retrieved: Field required"),
        ("a.jsonl", b'{"query": "who?", "retrieved": []}\n{"query": "x", }', "line 2 column 16"),
        ("a.jsonl", b'{"query": " ", "retrieved": []}', "entry 1 of a.jsonl: the question is empty"),
        ("a.json", json.dumps(span("RETRIEVER")).encode(), "trace 't': the question is empty"),
        (
            "a.json",
            json.dumps(span("RETRIEVER", documents="[x]")).encode(),
            "documents of trace 't' can't be",
        ),
        (
            "a.json",
            json.dumps(
                span("RETRIEVER", documents=[{"document.content": "a", "document.score": "high"}])
            ).encode(),
            "unable to parse string as a number\\); correct it, or leave the trace out",
        ),
        ("a.jsonl", b'{"query": "who?", "retrieved": [{"quote": "a", "score": 1}]}', "names no text, id or"),
        ("a.jsonl", b'{"query": "who?", "retrieved": [[7, 5]]}', "offsets 7 to 5 hold no text"),
        ("a.jsonl", b'{"query": "who?", "documents": [["a", "b"]]}', "is a list of 2, not a pair of offsets"),
        ("a.json", json.dumps({"attributes.a": {"0": 1}}).encode(), 'with to_json\\(orient="records"\\)'),
        ("a.json", json.dumps({"0": {"attributes.a": 1}}).encode(), 'with to_json\\(orient="records"\\)'),
        ("a.json", b'{"columns": [], "index": [], "data": []}', 'with to_json\\(orient="records"\\)'),
        ("a.jsonl", b'{"query": "who?", "retrieved": ["a"], "scores": [1, 2]}', "2 scores for 1 passages"),
        (
            "a.jsonl",
            b'{"query": "who?", "retrieved": [{"text": "a", "score": NaN}]}',
            "score: must be a finite number",
        ),
        (
            "a.jsonl",
            b'{"query": "who?", "retrieved": [true]}',
            "retrieved.0: True must be a text, a chunk id",
        ),
        ("a.jsonl", b'{"query": "who?", "retrieved": ["a"], "scores": [1e999]}', "must be a finite number;"),
        ("a.jsonl", b'{"query": "who?", "retrieved": "a"}', "retrieved: must be a valid list;"),
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


def spans_of_traces(*traces: dict[str, Any]) -> str:
    """In OTLP, a RETRIEVER span each."""
    values = {"openinference.span.kind": "RETRIEVER", "input.value": QUERY}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
    spans = [{"traceId": str(i), "attributes": attributes} | trace for i, trace in enumerate(traces)]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


LINE = json.dumps({"query": QUERY, "retrieved": [1]})
RUN = "q1 Q0 d1 1 2.0 x\n"


@pytest.mark.parametrize(
    ("files", "n_runs", "told"),
    [
        (
            {"a.jsonl": f'{LINE}\n{{"query": "x"}}\n{LINE}'},
            2,
            "1; the first: entry 2 of a.jsonl: retrieved: F",
        ),
        (
            {"a.jsonl": f"{LINE}\n[1, \n{LINE}\n7"},
            2,
            "2; the first: a.jsonl is no valid JSON (Expecting ',' delimiter: line 4",
        ),
        ({"a.jsonl": f"{LINE}\n3 4"}, 1, "2; the first: entry 2 of a.jsonl is no JSON object"),
        (
            {"a.json": spans_of_traces({}, {"startTimeUnixNano": "soon"}, {"attributes": 3}, {})},
            2,
            "2; the first: span 2 of entry 1 of a.json is no OTLP as JSON (invalid literal",
        ),
        (
            {"a.json": spans_of_traces({}), "b.jsonl": '{"resourceSpans": 3}'},
            1,
            "1; the first: entry 1 of b.jsonl",
        ),
        (
            {"a.json": json.dumps(span("RETRIEVER", input=QUERY))}
            | {"b.json": json.dumps(span("RETRIEVER", input=" ") | {"context.trace_id": "u"})},
            1,
            "1; the first: trace 'u': the question is empty",
        ),
        (
            {"a.trec": f"{RUN}q1 Q0 d2 two 2 x\nq2 Q0 d1 1 2 x", "queries.tsv": "q1\tWho?"},
            1,
            "2; the first: line 2 of a.trec needs query, Q0",
        ),
        (
            {"a.trec": RUN, "queries.tsv": "q1\tWho?", "qrels": "q1 0 d1 1\nq1"},
            1,
            "1; the first: line 2 of qrels is",
        ),
    ],
)
def test_what_can_be_read_is_read_and_the_rest_is_told(files: dict[str, str], n_runs: int, told: str) -> None:
    given, heard = {name: text.encode() for name, text in files.items()}, list[str]()
    assert len(read_foreign(given, on_fault=heard.append)) == n_runs
    [sentence] = heard
    assert sentence.startswith(f"Entries that can't be read, left out: {told}")
    with pytest.raises(BadRequest, match=re.escape(told.partition("first: ")[2])):
        read_foreign(given)


def test_a_file_of_nothing_but_what_cannot_be_read_is_refused_at_once() -> None:
    heard = list[str]()
    for content in (b'{"query": "x"}', b"[" + b"1," * 1_000_000 + b"1]", LINE.encode() + b"\n1" * 2_001):
        with pytest.raises(BadRequest, match=r"entry [12] of a\.jsonl"):
            read_foreign({"a.jsonl": content}, on_fault=heard.append)
    assert heard == []


def test_the_command_logs_what_it_prints(
    tiny_checkpoints: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lamps.txt").write_text(TEXT, encoding="utf-8")
    line = {"query": QUERY, "retrieved": [SENTENCES[2], "nowhere in it, not one word"]}
    (tmp_path / "mine.jsonl").write_text(f"{json.dumps(line)}\n{{}}", encoding="utf-8")
    checkpoint = str(tiny_checkpoints["relative10"])
    command = ["import-run", tmp_path / "mine.jsonl", "--document", tmp_path / "lamps.txt"]
    options = ["--checkpoint", checkpoint, "--log", tmp_path / "own.duckdb", "--json"]
    assert main(list(map(str, [*command, *options]))) == 0
    out, err = capsys.readouterr()
    printed = json.loads(out)
    assert "1 of 2 passages that were returned were not found in these documents" in err
    assert "Entries that can't be read, left out: 1; the first: entry 2 of mine.jsonl: query: " in err
    run = open_reader(tmp_path / "own.duckdb").get(printed["run_id"])
    assert list(run.trace.evidence) == printed["evidence"] != []
    assert (run.record.method, printed["n_missing"]) == ("imported-ranks:mine", 1)
