"""The operations as callers use them."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import numpy as np
import pytest
from gradio.utils import get_function_description
from gradio_client import Client
from gradio_client.exceptions import AppError
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from app.calls.operations import Operations
from app.pages.experiments import view as experiments_view
from app.pages.explore import diagnosis as diagnosis_view
from app.pages.explore.strip_source import RunStrip
from app.pages.train.layout import NOT_SHOWN
from app.services.comparisons import ComparisonOrder, Comparisons
from app.services.explorer import Explorer
from app.services.http_call import http_of
from app.services.session import Session
from app.services.settings import Settings
from app.services.shared import Services
from app.services.sparc_runs import SparcRuns
from app.services.visitors import owner_of_user
from core.base.config import EpisodeConfig, help_of
from core.base.errors import BadDocument, BadRequest, LogError, RunNotFound, UserError
from core.base.progress import finish
from core.cli import main
from core.lab.train.config import TrainConfig
from core.methods.sparc.events import SparcConfig
from core.runs.again.replay import replay_run
from core.runs.log import ExperimentLog, LoggedRun, import_runs
from core.runs.log.records import now
from tests.app.conftest import ROOT, RunningApp
from tests.app.opened import FORTY_DAYS as TEXT
from tests.core.runs.log.recording import make_record
from tests.coroutines import run as run_coroutine

FUNCTIONS = {
    "open_document",
    "run_agent",
    "retrieve",
    "import_run",
    "step_run",
    "run_sparc",
    "compare",
    "search_runs",
    "get_run",
    "export_run",
}
QUERY = "where was the apple before the hallway ?"
ANN, BOB = "a" * 32, "b" * 32


@pytest.fixture
def operations(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operations]:
    # caches of its own: other tests have the same sentences
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    services = Services(Settings(checkpoint=str(tiny), log=tmp_path / "log.duckdb"))
    yield Operations(services, Comparisons(services), SparcRuns(services))
    services.close()


@pytest.fixture
def document(operations: Operations) -> str:
    return operations.open_document(text=TEXT, chunker="sentences", max_tokens=12)["document_id"]


def chosen(reply: Any) -> list[int]:
    return [step["chunk_id"] for step in reply["steps"]]


def logged_choices(reply: Any) -> list[int]:
    return [event["chunk_id"] for event in reply["run"]["events"] if event["event"] == "step_taken"]


def test_a_document_opens_as_text_as_file_as_sample_and_out_of_a_run(operations: Operations) -> None:
    pasted = operations.open_document(text=TEXT, chunker="sentences", max_tokens=12)
    assert (pasted["n_chunks"], pasted["n_embedded"], pasted["agent"]) == (40, 40, "tiny")
    assert list(pasted["timings"]) == ["reading", "chunking", "embedding", "indexing"]
    markdown = base64.encodebytes(b"# Roads\n\nMary went home .\n\n## Days\n\nJohn left .\n").decode()
    file = operations.open_document(content=markdown, name="../roads.md")
    assert (file["titles"], file["notices"]) == (["Roads"], [])
    broken = base64.b64encode("Mary went h\u00f6me and ".encode() + b"\xff left .").decode()
    told = operations.open_document(content=broken, name="roads.txt")["notices"]
    sentence = "1 broken UTF-8 characters were replaced by \ufffd."
    assert told[0] == {"document": 0, "sentence": sentence, "at": 19}
    polish = base64.b64encode("Zażółć gęślą jaźń .".encode("cp1250")).decode()
    chosen_by_hand = operations.open_document(content=polish, name="a.txt", encoding="cp1250")
    assert chosen_by_hand["notices"] == []
    sample = operations.open_document(sample="river-chronicle.txt")
    assert {question["question"] for question in sample["questions"]} >= {
        "Where was the blanket before the chapel?"
    }
    assert all(question["support"] for question in sample["questions"])
    run = operations.run_agent(pasted["document_id"], QUERY)
    again = operations.open_document(run_id=run["run_id"])
    assert (again["n_chunks"], again["agent"]) == (40, "tiny")
    assert chosen(operations.run_agent(again["document_id"], QUERY)) == chosen(run)


def test_what_can_not_be_opened_is_one_sentence(operations: Operations) -> None:
    broken = base64.b64encode(b"%PDF-1.7 broken").decode()
    refused: list[tuple[dict[str, Any], type[UserError], str]] = [
        ({}, BadRequest, "nothing is given to open"),
        ({"text": TEXT, "sample": "river-chronicle.txt"}, BadRequest, "text and sample are given to open"),
        ({"content": "Zm9v"}, BadRequest, "without a name"),
        ({"content": "no base64!", "name": "a.txt"}, BadRequest, "no base64"),
        ({"content": broken, "name": "a.pdf"}, BadDocument, ";"),
        ({"text": "   "}, BadDocument, ";"),
        ({"sample": "/etc/passwd"}, BadRequest, "choose one of river-chronicle.txt"),
        ({"text": TEXT, "agent": "/etc"}, BadRequest, "not on offer"),
        ({"run_id": "0" * 32}, RunNotFound, "check the id"),
        ({"run_id": "0" * 32, "max_tokens": 9}, BadRequest, "as the run had them"),
        ({"text": TEXT, "encoding": "utf-7"}, BadRequest, "choose one such as cp1252"),
        ({"text": TEXT, "max_tokens": 0}, BadRequest, "max tokens 0 is below 8"),
    ]
    for arguments, kind, sentence in refused:
        with pytest.raises(kind, match=sentence):
            operations.open_document(**arguments)


def test_a_run_is_the_explorers_and_is_logged(operations: Operations, document: str) -> None:
    reply = operations.run_agent(
        document,
        QUERY,
        step_budget=3,
        temperature=1.0,
        seed=5,
        stop_threshold="none",
        forbidden=[7],
        forced=[[2, 9]],
    )
    explorer, config = Explorer(operations.services), reply["config"]
    assert (config["step_budget"], config["stop_threshold"], config["forbidden"], chosen(reply)[1]) == (
        3,
        None,
        [7],
        9,
    )
    asked = explorer.usual_config(explorer.documents(Session(document))).with_(
        step_budget=3, temperature=1.0, seed=5, stop_threshold=None, forced=((2, 9),)
    )
    *_, last = explorer.advance(Session(document, forbidden=(7,)), QUERY, asked, None)
    same = explorer.run_of(last)
    assert chosen(reply) == list(same.trace.chosen)
    assert (reply["stop_reason"], reply["status"], reply["parent_run_id"], reply["document_id"]) == (
        "budget",
        "complete",
        None,
        document,
    )
    assert set(reply["timings"]) == {"reading", "chunking", "embedding", "indexing", "steps"}
    assert operations.get_run(reply["run_id"])["run"]["record"]["config"] == config


def test_steps_are_one_run_and_go_on_as_children(operations: Operations, document: str) -> None:
    whole = operations.run_agent(document, QUERY, step_budget=3)
    first = operations.step_run(document_id=document, query=QUERY, step_budget=3)
    assert (first["status"], first["stop_reason"], len(first["steps"])) == ("running", None, 1)
    with pytest.raises(LogError, match="still going on"):
        operations.export_run(first["run_id"])
    second = operations.step_run(first["run_id"])
    third = operations.step_run(first["run_id"])
    assert first["run_id"] == second["run_id"] == third["run_id"]
    assert (third["status"], third["stop_reason"], chosen(third)) == ("complete", "budget", chosen(whole))
    with pytest.raises(BadRequest, match="has stopped; change a setting, such as step_budget=4"):
        operations.step_run(first["run_id"])
    with pytest.raises(BadRequest, match="asks another question; leave query out"):
        operations.step_run(first["run_id"], query="who ?", step_budget=4)
    child = operations.step_run(first["run_id"], step_budget=4)
    assert (child["parent_run_id"], child["fork_step"], chosen(child)[:3], len(child["steps"])) == (
        first["run_id"],
        3,
        chosen(whole),
        4,
    )
    other = operations.step_run(
        operations.step_run(document_id=document, query=QUERY)["run_id"], forbidden=[chosen(whole)[1]]
    )
    assert (other["fork_step"], chosen(other)[0]) == (1, chosen(whole)[0])
    assert chosen(other)[1] != chosen(whole)[1]
    for wrong in ({}, {"run_id": first["run_id"], "document_id": document}):
        with pytest.raises(BadRequest, match="run_id and document_id"):
            operations.step_run(**wrong)


def test_a_comparison_gives_the_columns_and_their_runs(operations: Operations, document: str) -> None:
    reply = operations.compare(document, QUERY, ["qrag", "topk", "bm25"], 3)
    assert list(reply["methods"]) == ["qrag", "bm25", "topk"] == list(reply["run_ids"]), "what is ready leads"
    assert [column["label"] for column in reply["methods"].values()] == ["Q-RAG tiny", "BM25", "top-k"]
    assert {len(column["evidence"]) for column in reply["methods"].values()} == {3}
    assert {"reading", "chunking", "embedding", "steps"} <= set(reply["timings"])
    for name, run_id in reply["run_ids"].items():
        logged = operations.get_run(run_id)["run"]
        assert [event["chunk_id"] for event in logged["events"] if event["event"] == "step_taken"] == [
            row["chunk_id"] for row in reply["methods"][name]["ranked"]
        ]
    assert set(operations.compare(document, QUERY)["run_ids"]) == {"qrag", "hybrid", "topk", "bm25"}
    with pytest.raises(BadRequest, match="'dense' does not exist; choose among qrag:tiny"):
        operations.compare(document, QUERY, ["dense"])
    with pytest.raises(BadRequest, match="qrag and qrag:tiny are one method here"):
        operations.compare(document, QUERY, ["qrag", "qrag:tiny"])


def test_a_child_of_another_method_s_run_is_scored_anew(operations: Operations, document: str) -> None:
    found = operations.compare(document, QUERY, ["bm25"], 3)
    child = operations.step_run(found["run_ids"]["bm25"], step_budget=4)
    kept = [row["chunk_id"] for row in found["methods"]["bm25"]["ranked"]]
    assert (chosen(child)[:3], len(child["steps"]), child["fork_step"]) == (kept, 4, 0)
    assert child["parent_run_id"] == found["run_ids"]["bm25"]
    log = operations.services.own_log
    logged, encoder = log.get(child["run_id"]), operations.services.agents.load("tiny").encoder
    assert replay_run(logged, log.documents(child["run_id"]), encoder).report.holds


def test_what_a_model_is_given_is_bounded_by_the_document(operations: Operations, document: str) -> None:
    with pytest.raises(BadRequest, match="k=0 must be 1 or more"):
        operations.retrieve(document, QUERY, k=0)
    told = [operations.retrieve(document, "where " * n, k=1)["notice"] for n in (3, 200)]
    assert (told[0], "of 200 tokens. Ask in fewer words." in told[1]) == ("", True)
    few = operations.open_document(text="Mary went home .")["document_id"]
    assert [passage["chunk_id"] for passage in operations.retrieve(few, QUERY, k=100)["passages"]] == [0]


def test_half_a_character_in_a_file_is_one_sentence(operations: Operations, document: str) -> None:
    for where in ("content", "qrels", "method"):
        with pytest.raises(BadRequest, match="half a character at position 2; send it again"):
            operations.import_run(document, **{"content": "{}", where: "a\ud800"})


def test_what_is_said_of_an_argument_is_said_whole() -> None:
    """Gradio reads one line an argument, and puts commas between the lines of what is returned."""
    loose = re.compile(r"(,|\b(and|or|of|in|at|by|for|with|where|to|the|a))$")
    for name in FUNCTIONS:
        about, arguments, returned = get_function_description(getattr(Operations, name))
        assert len(returned) == 1
        for text in (about, *arguments.values(), *returned):
            assert not loose.search(text), (name, text)
            assert text.count("(") == text.count(")"), (name, text)


def test_a_run_made_elsewhere_is_explored_explained_and_compared(
    operations: Operations, document: str
) -> None:
    """What our app makes of it: opened as any run, with why it failed, and a column beside the agent."""
    line = {"query": QUERY, "retrieved": [TEXT.split("\n\n")[3], "not in here, not one word"], "gold": [3, 8]}
    reply = operations.import_run(document, f"{json.dumps(line)}\n7", "ours.jsonl")
    [made], [notice] = reply["runs"], reply["notices"]
    assert "left out: 1; the first: entry 2 of ours.jsonl is no JSON object" in notice
    assert (made["method"], made["evidence"], made["support"]) == ("imported-ranks:ours", [3], [3, 8])
    services, explorer = operations.services, operations.explorer
    session = finish(explorer.attach(made["run_id"]))
    run = explorer.run_of(session)
    assert run.imported == "1 of 2 passages that were returned were not found in these documents."
    assert (run.ruler(1), run.scale, run.scores(1).q_values[4]) == (
        [],
        (0.0, 1.0),
        pytest.approx(np.nan, nan_ok=True),
    )
    run = services.diagnose(services.answer(run))
    words = json.dumps(diagnosis_view.diagnosis(run, session))
    assert "not found in these documents" in words
    assert "chunk 8 belongs to the answer and is not among what ours returned" in words
    steps = json.dumps(experiments_view.run_steps(services.own_log.get(made["run_id"])))
    assert "not in here, not one word" in steps
    strip = RunStrip(run)
    facts = [strip.describe(chunk_id, 1) for chunk_id in (3, 4)]
    assert [(fact["q"], fact["rank"]) for fact in facts] == [(1.0, 1), (None, None)]

    compared = operations.compare(document, QUERY, ["qrag", "imported-ranks:ours"], k=2)
    assert compared["methods"]["imported-ranks:ours"]["evidence"] == [3]
    other = operations.compare(document, "who ?", ["bm25", "imported-ranks:ours"], k=2)
    assert "no run of ours asks this question" in next(iter(other["refused"].values()))


def test_runs_are_found_read_and_exported(operations: Operations, document: str, tmp_path: Path) -> None:
    runs = [operations.run_agent(document, question)["run_id"] for question in (QUERY, "where is mary ?")]
    page = operations.search_runs(
        text="MARY",
        method="qrag",
        checkpoint="tiny",
        status="complete",
        since="2020-01-01",
        until="2999-12-31",
    )
    assert (page["total"], [row["run_id"] for row in page["runs"]]) == (1, runs[1:])
    assert [row["run_id"] for row in operations.search_runs(limit=1, offset=1)["runs"]] == runs[:1]
    assert operations.search_runs(hit=True)["total"] == 0
    assert operations.search_runs(text="none")["total"] == 0, "a word like others"
    with pytest.raises(LogError, match="limit=0"):
        operations.search_runs(limit=0)
    with pytest.raises(BadRequest, match="date"):
        operations.search_runs(since="yesterday")
    plain = operations.export_run(runs[0])["jsonl"]
    whole = operations.export_run(runs[0], include_text=True)["jsonl"]
    assert "travelled" not in plain
    (tmp_path / "run.jsonl").write_text(whole)
    with ExperimentLog.open(tmp_path / "other.duckdb") as other:
        assert import_runs(other, tmp_path / "run.jsonl") == 1
        copy, own = other.get(runs[0]), operations.services.log.get(runs[0])  # type: ignore[union-attr]
    assert copy.to_json() == own.to_json()
    first, same = copy.trace.steps[0], own.trace.steps[0]
    assert first.scores.q_values.tolist() == same.scores.q_values.tolist()


def test_the_command_line_prints_the_same(
    operations: Operations, document: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = operations.run_agent(document, QUERY)["run_id"]
    found, shown = operations.search_runs(), operations.get_run(run_id)
    operations.services.close()  # the log has one owner at a time
    log = ["--json", "--log", str(operations.services.log_path)]
    assert main(["runs", "list", *log]) == 0
    assert json.loads(capsys.readouterr().out) == {
        key: value for key, value in found.items() if key != "timings"
    }
    assert main(["runs", "show", run_id, *log]) == 0
    assert json.loads(capsys.readouterr().out) == shown["run"]


def test_visitors_of_a_public_app_are_kept_apart(tiny: Path, tmp_path: Path) -> None:
    with closing(
        Services(Settings(checkpoint=str(tiny), log=tmp_path / "log.duckdb", public=True))
    ) as services:
        operations = Operations(services, Comparisons(services), SparcRuns(services))
        document = operations.open_document(text=TEXT, visitor=ANN)["document_id"]
        run_id = operations.run_agent(document, QUERY, visitor=ANN)["run_id"]
        assert operations.search_runs(visitor=ANN)["total"] == 1
        assert operations.search_runs(visitor=BOB)["total"] == 0
        for refused in (operations.get_run, operations.export_run, operations.step_run):
            with pytest.raises(RunNotFound):
                refused(run_id, visitor=BOB)
        with pytest.raises(RunNotFound):
            operations.open_document(run_id=run_id, visitor=BOB)
        for asked in (operations.run_agent, operations.compare):
            with pytest.raises(BadRequest, match="not open"):
                asked(document, QUERY, visitor=BOB)
        with pytest.raises(BadRequest, match="not open"):
            operations.step_run(document_id=document, query=QUERY, visitor=BOB)
        for key in ("", "A" * 32, "../" + "a" * 29):
            with pytest.raises(BadRequest, match="32 hex digits"):
                operations.search_runs(visitor=key)
        services.log.share(run_id, operations.get_run(run_id, visitor=ANN)["run"]["record"]["owner"])  # type: ignore[union-attr]
        assert operations.get_run(run_id, visitor=BOB)["run"]["record"]["owner"] is None
        child = operations.step_run(
            run_id, step_budget=1 + len(operations.get_run(run_id, visitor=BOB)["run"]["events"]), visitor=BOB
        )
        assert child["parent_run_id"] == run_id
        signed_in = gr.Request(username="ann")
        run_id = operations.run_agent(
            operations.open_document(text=TEXT, request=signed_in)["document_id"], QUERY, request=signed_in
        )["run_id"]
        assert operations.get_run(run_id, request=signed_in)["run"]["record"]["owner"] == owner_of_user(
            services.settings, "ann"
        )
        with pytest.raises(RunNotFound):
            operations.get_run(run_id, visitor=ANN)


# Over HTTP and MCP


def call(url: str, name: str, /, **arguments: Any) -> tuple[str, Any]:
    """(event, data) that ends a call."""
    api = f"{url}/gradio_api/call/v2/{name}"
    request = urllib.request.Request(
        api, json.dumps(arguments).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as reply:
        event_id = json.load(reply)["event_id"]
    with urllib.request.urlopen(f"{api}/{event_id}", timeout=120) as reply:
        ended = re.findall(r"event: (complete|error)\ndata: (.*)\n", reply.read().decode())
    assert len(ended) == 1
    return ended[0][0], json.loads(ended[0][1])


def test_the_endpoints_are_these_functions_and_say_what_they_take(tiny_app: RunningApp) -> None:
    with urllib.request.urlopen(f"{tiny_app.url}/gradio_api/info", timeout=60) as reply:
        info = json.load(reply)
    assert set(info["named_endpoints"]) == {f"/{name}" for name in FUNCTIONS}
    assert not info["unnamed_endpoints"]
    for endpoint in info["named_endpoints"].values():
        assert len(endpoint["description"]) > 20
        assert all(parameter["type"] for parameter in endpoint["parameters"])
        assert endpoint["parameters"][-1]["parameter_name"] == "visitor"
        assert "timings" in endpoint["returns"][0]["type"]["properties"]
    run = {
        parameter["parameter_name"]: parameter
        for parameter in info["named_endpoints"]["/run_agent"]["parameters"]
    }
    assert [name for name, parameter in run.items() if not parameter["parameter_has_default"]] == [
        "document_id",
        "query",
    ]
    assert run["stop_threshold"]["type"] == {
        "anyOf": [{"type": "number"}, {"const": "none"}, {"type": "null"}]
    }


def test_hints_of_the_page_say_what_the_settings_say(tiny_app: RunningApp) -> None:
    components = httpx.get(f"{tiny_app.url}/config").json()["components"]
    props = [one["props"] for one in components]
    hints = {own.get("elem_id"): own["info"] for own in props if own.get("info")}
    for elem_id, config, name, none in (
        ("qx-stops", EpisodeConfig, "stop_threshold", ""),
        ("qx-reviews", EpisodeConfig, "review_threshold", ""),
        ("qx-positions", EpisodeConfig, "use_positions", ""),
        ("qx-beam", EpisodeConfig, "beam_width", ""),
        ("qx-seed", EpisodeConfig, "seed", ""),
        ("qx-top-k", EpisodeConfig, "top_k_actions", "empty"),
        ("qx-compare-methods", ComparisonOrder, "methods", ""),
        ("qx-compare-size", ComparisonOrder, "own_stop", ""),
        ("qx-compare-k", ComparisonOrder, "k", ""),
        *(
            (f"qx-sparc-{setting.name.replace('_', '-')}", SparcConfig, setting.name, "0")
            for setting in fields(SparcConfig)
        ),
        *(
            (f"qx-train-{setting.name.replace('_', '-')}", TrainConfig, setting.name, "0")
            for setting in fields(TrainConfig)
            if setting.name not in NOT_SHOWN
        ),
    ):
        assert hints[elem_id] == help_of(config, name, none), elem_id
        assert len(hints[elem_id]) <= 110, elem_id


def test_every_button_of_the_page_starts_something(tiny_app: RunningApp) -> None:
    """One that was made while events were wired would stand on the page and do nothing."""
    config = httpx.get(f"{tiny_app.url}/config").json()
    start = {target for event in config["dependencies"] for target, _ in event["targets"]}
    assert not [one for one in config["components"] if one["type"] == "button" and one["id"] not in start]


def test_a_whole_way_over_http(tiny_app: RunningApp) -> None:
    client = Client(tiny_app.url, verbose=False)
    opened = client.predict(text=TEXT, chunker="sentences", max_tokens=12, api_name="/open_document")
    asked = {"document_id": opened["document_id"], "query": "where was the pear of this client ?"}
    first = client.predict(**asked, step_budget=2, api_name="/step_run")
    ended = client.predict(run_id=first["run_id"], api_name="/step_run")
    run = client.predict(**asked, step_budget=2, api_name="/run_agent")
    assert chosen(ended) == chosen(run)
    compared = client.predict(**asked, methods=["qrag", "topk"], k=2, api_name="/compare")
    assert set(compared["methods"]) == {"qrag", "topk"}
    assert client.predict(text="pear of this client", api_name="/search_runs")["total"] == 4
    lines = client.predict(run_id=run["run_id"], api_name="/export_run")["jsonl"].splitlines()
    assert [json.loads(line)["line"] for line in lines] == ["run", "event", "event", "event", "end"]
    assert logged_choices(client.predict(run_id=run["run_id"], api_name="/get_run")) == chosen(run)


def test_a_mistake_comes_back_as_one_sentence(tiny_app: RunningApp) -> None:
    opened = call(tiny_app.url, "open_document", text=TEXT)[1][0]
    for name, arguments, sentence in (
        ("run_agent", {"document_id": "0" * 32, "query": QUERY}, "not open any more"),
        ("run_agent", {"document_id": opened["document_id"], "query": " "}, "the question is empty"),
        (
            "run_agent",
            {"document_id": opened["document_id"], "query": QUERY, "step_budget": 100_000},
            "step budget 100000 is above",
        ),
        (
            "run_agent",
            {"document_id": opened["document_id"], "query": QUERY, "step_budget": "many"},
            "step_budget='many' can't be used",
        ),
        (
            "run_agent",
            {"document_id": opened["document_id"], "query": QUERY, "forced": [[1]]},
            "must be a pair",
        ),
        (
            "compare",
            {"document_id": opened["document_id"], "query": QUERY, "k": 1000},
            "must be between 1 and",
        ),
        ("search_runs", {"status": "lost"}, "status='lost' can't be used"),
        ("get_run", {"run_id": "' OR 1=1 --"}, "check the id"),
    ):
        event, data = call(tiny_app.url, name, **arguments)
        assert (event, data["error"].count("\n")) == ("error", 0)
        assert sentence in data["error"]
    for name, arguments in (("run_agent", {"document": "x"}), ("run_agent", {}), ("delete_everything", {})):
        with pytest.raises(urllib.error.HTTPError) as refused:
            call(tiny_app.url, name, **arguments)
        assert refused.value.code == 422
        assert "/gradio_api/info" in json.load(refused.value)["detail"]
    with pytest.raises(AppError, match="not open any more"):
        Client(tiny_app.url, verbose=False).predict(document_id="x", query=QUERY, api_name="/run_agent")
    assert "Traceback" not in (tiny_app.home / "app.out").read_text()


@pytest.mark.parametrize(
    ("method", "changes", "words"),
    [
        ("threshold", {"step_budget": 500, "stop_threshold": 0.41}, ""),
        ("threshold", {"step_budget": 500, "stop_threshold": 0.4}, "compare takes no threshold"),
        ("topk", {"forbidden": (3,)}, "compare takes no chunks that are forbidden"),
        ("topk", {"step_budget": 13}, "compare takes 12 chunks at most, and the run 13"),
        ("qrag", {"forbidden": (3,), "step_budget": 13}, ""),
        ("qrag", {"searched": ((0, 4),)}, "a call asks all"),
    ],
)
def test_a_run_that_no_call_makes_again_has_none(method: str, changes: dict[str, Any], words: str) -> None:
    record = make_record(method=method, config=EpisodeConfig(**changes).to_json())
    text = http_of(LoggedRun(record=record, documents=(), created_at=now()), "http://127.0.0.1:7860")
    assert text.startswith("# No call makes this run again: ") is bool(words)
    assert words in text
    assert method != "threshold" or '"k"' not in text


def test_the_http_call_of_a_run_makes_it_again(tiny_app: RunningApp) -> None:
    document = call(tiny_app.url, "open_document", text=TEXT, chunker="sentences", max_tokens=12)[1][0][
        "document_id"
    ]
    query = "where's mary's \"milk\" $HOME ?"
    first = call(
        tiny_app.url, "step_run", document_id=document, query=query, temperature=1.0, seed=3, step_budget=3
    )[1][0]
    child = call(tiny_app.url, "step_run", run_id=first["run_id"], seed=4, forbidden=[5])[1][0]
    child = call(tiny_app.url, "step_run", run_id=child["run_id"])[1][0]
    baseline = call(
        tiny_app.url, "compare", document_id=document, query=query, methods=["topk", "multistep"], k=3
    )[1][0]
    found = {
        baseline["run_ids"][name]: [row["chunk_id"] for row in column["ranked"]]
        for name, column in baseline["methods"].items()
    }
    for run_id, expected in {child["run_id"]: chosen(child), **found}.items():
        exported = tiny_app.home / f"{run_id}.jsonl"
        exported.write_text(call(tiny_app.url, "export_run", run_id=run_id, include_text=True)[1][0]["jsonl"])
        with ExperimentLog.open(tiny_app.home / "copy.duckdb") as log:
            import_runs(log, exported)
            text = http_of(log.get(run_id), tiny_app.url)
        printed = subprocess.run(
            ["bash", "-euc", text], capture_output=True, text=True, timeout=120, check=True
        ).stdout
        [again] = json.loads(re.findall(r"event: complete\ndata: (.*)\n", printed)[-1])
        column = again if "steps" in again else {"steps": again["methods"]["topk"]["ranked"]}
        assert chosen(column) == expected


async def over_mcp(
    url: str, calls: list[tuple[str, dict[str, Any]]]
) -> tuple[dict[str, Any], list[tuple[bool, str]]]:
    """(tools by name, (whether it failed, text) of each call). Arguments named "$document" get the id that
    the first call gave.
    """
    replies: list[tuple[bool, str]] = []
    async with (
        streamable_http_client(f"{url}/gradio_api/mcp/") as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        for name, arguments in calls:
            filled = {
                key: json.loads(replies[0][1])["document_id"] if value == "$document" else value
                for key, value in arguments.items()
            }
            reply = await session.call_tool(name, filled)
            replies.append((bool(reply.isError), "".join(part.text for part in reply.content)))
    return tools, replies


def test_the_mcp_tools_are_the_same_functions_and_answer_in_json(tiny_app: RunningApp) -> None:
    calls = [
        ("open_document", {"text": TEXT, "chunker": "sentences", "max_tokens": 12}),
        ("run_agent", {"document_id": "$document", "query": QUERY, "stop_threshold": "none"}),
        ("get_run", {"run_id": "0" * 32}),
        ("retrieve", {"document_id": "$document", "query": QUERY, "k": 2}),
    ]
    tools, replies = run_coroutine(over_mcp(tiny_app.url, calls))
    assert set(tools) == FUNCTIONS
    for tool in tools.values():
        assert all(parameter.get("description") for parameter in tool.inputSchema["properties"].values()), (
            tool.name
        )
    said = tools["run_agent"].inputSchema["properties"]
    assert {name: said[name]["description"] for name in ("top_k_actions", "use_positions", "query")} == {
        "top_k_actions": 'Sample among this many best chunks; "none": among all.',
        "use_positions": "false: ignore where a chunk stands.",
        "query": "The question.",
    }
    assert (
        tools["run_sparc"].inputSchema["properties"]["max_calls"]["description"].endswith("null: no bound.")
    )
    run = json.loads(replies[1][1])
    assert run["parent_run_id"] is None
    assert chosen(run) == logged_choices(call(tiny_app.url, "get_run", run_id=run["run_id"])[1][0])
    assert replies[2][0]
    assert "check the id" in replies[2][1]
    found = json.loads(replies[3][1])
    assert [passage["chunk_id"] for passage in found["passages"]] == chosen(run)[:2]
    assert all(TEXT[one["start"] : one["end"]] == one["text"] for one in found["passages"])
    assert (found["completeness"], found["note"][:16]) == (None, "Nothing is known"), "tiny has no curve"


@pytest.mark.campaign
def test_strangers_over_http_and_mcp_see_nothing_of_each_other(public_app: RunningApp) -> None:
    url = public_app.url
    document = call(url, "open_document", text=TEXT, visitor=ANN)[1][0]["document_id"]
    run_id = call(url, "run_agent", document_id=document, query=QUERY, visitor=ANN)[1][0]["run_id"]
    assert call(url, "search_runs", visitor=BOB)[1][0]["runs"] == []
    tries = [
        ("get_run", {"run_id": run_id}),
        ("export_run", {"run_id": run_id}),
        ("step_run", {"run_id": run_id}),
    ]
    tries += [("open_document", {"run_id": run_id})]
    tries += [
        (name, {"document_id": document, "query": QUERY}) for name in ("run_agent", "step_run", "compare")
    ]
    for key in (BOB, ""):
        over_http = [call(url, name, **arguments, visitor=key) for name, arguments in tries]
        _, replies = run_coroutine(
            over_mcp(url, [(name, arguments | {"visitor": key}) for name, arguments in tries])
        )
        assert [event for event, _ in over_http] == ["error"] * len(tries)
        assert all(failed for failed, _ in replies)
        assert not any(
            QUERY in text or "travelled" in text
            for text in (*(json.dumps(data) for _, data in over_http), *(text for _, text in replies))
        )


def test_the_page_of_the_repository_names_every_function() -> None:
    page = (ROOT / "docs" / "interfaces.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == FUNCTIONS
