"""`evaluate` as others call it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadRequest
from core.base.rows import read_rows
from core.cli import main
from core.cli.common import check_targets
from core.cli.trec import line_file
from core.lab.evaluate.summary import METRICS, summarise
from core.runs.log import list_evaluations, open_reader, read_evaluation
from tests.core.cli.conftest import Output, argv
from tests.core.lab.tasks.test_beir import beir


@pytest.fixture
def agent(tiny_checkpoints: dict[str, Path]) -> Path:
    return tiny_checkpoints["relative10"]


def objects(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines()]


def test_an_object_a_task(core: Output, agent: Path, data: Path, tmp_path: Path, home: Path) -> None:
    path = tmp_path / "kept" / "rows.jsonl"
    named = {"data": data, "checkpoint": agent, "rows": path, "log": home / "log.duckdb", "json": True}
    short, paragraphs = objects(
        core("evaluate", "qa1", "hotpotqa", n=2, seed=3, stop_threshold=0.02, **named)
    )
    for result in (short, paragraphs):
        assert list(result) == ["task", "checkpoint", "n", "config", "metrics", "intervals", "seconds"]
        assert (result["checkpoint"], result["n"]) == ("relative10", 2)
        assert list(result["metrics"]) == list(result["intervals"]) == list(METRICS)
        assert 0 <= result["metrics"]["answer_em"] <= result["metrics"]["answer_f1"] <= 1
        assert result["seconds"] > 0
        assert (
            result["config"]["seed"],
            result["config"]["stop_threshold"],
            result["config"]["trained_on"],
        ) == (3, 0.02, "not stated")
    assert (short["task"], short["config"]["length"], short["config"]["step_budget"]) == ("qa1", 1000, 4)
    assert (paragraphs["task"], paragraphs["config"]["length"], paragraphs["config"]["step_budget"]) == (
        "hotpotqa",
        None,
        2,
    )
    rows = read_rows(path)
    assert [row.task for row in rows] == ["qa1"] * 2 + ["hotpotqa"] * 2
    assert summarise(rows[:2]).metrics["fact_f1"] == pytest.approx(short["metrics"]["fact_f1"], abs=1e-6)
    with open_reader(home / "log.duckdb") as reader:
        entries = list_evaluations(reader)
        assert [entry.task for entry in entries] == ["hotpotqa", "qa1"]
        logged = read_evaluation(reader, entries[1].evaluation_id)
    assert list(logged.rows) == rows[:2]
    assert logged.config == short["config"]


def test_answers_are_the_reader_s_from_the_evidence(core: Output, tmp_path: Path) -> None:
    """One that is found, one whose evidence is not, and one without a known answer, which leaves the mean
    alone.
    """
    path, rows = tmp_path / "mine.jsonl", tmp_path / "rows.jsonl"
    chunks = ["Mary travelled to the garden.", "night fell .", "the milk was cold ."]
    asked = [
        ("Where is Mary?", ["garden"], 0),
        ("Is the milk cold or warm?", ["a blue bicycle"], 2),
        ("Where is Mary?", None, 0),
    ]
    lines = [
        {"question": question, "chunks": chunks, "support": [at]} | ({"answer": answers} if answers else {})
        for question, answers, at in asked
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (result,) = objects(
        core("evaluate", path, "--method", "bm25", "--step-budget", 1, "--rows", rows, "--json")
    )
    assert [(row.answer_em, row.answer_f1) for row in read_rows(rows)] == [
        (1.0, 1.0),
        (0.0, 0.0),
        (None, None),
    ]
    assert result["metrics"]["answer_em"] == 0.5


@pytest.mark.parametrize(("method", "n_told"), [("qrag", 1), ("bm25", 0)])
def test_questions_that_the_default_agent_does_not_suit_are_said_to_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str, n_told: int
) -> None:
    path = tmp_path / "mine.jsonl"
    line = {"question": "When are lamps filled?", "chunks": ["Lamps are filled at noon."], "support": [0]}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert main(argv("evaluate", path, method=method, step_budget=1, json=True)) == 0
    said = "mine.jsonl is opened with narrative, with which commands begin; the app would take general"
    assert capsys.readouterr().err.count(said) == n_told


def test_evidence_and_support_go_to_trec_files(core: Output, tmp_path: Path) -> None:
    path, run, qrels = tmp_path / "mine.jsonl", tmp_path / "found.run", tmp_path / "support.qrels"
    line = {
        "id": "first one",
        "question": "where is the milk ?",
        "chunks": ["the milk is here .", "night fell .", "milk ."],
        "support": [0, 2],
    }
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    core("evaluate", path, "--method", "bm25", "--step-budget", 2, "--run", run, "--qrels", qrels, "--json")
    assert qrels.read_text().splitlines() == ["first_one 0 first_one#0 1", "first_one 0 first_one#2 1"]
    ranked = [line.split() for line in run.read_text().splitlines()]
    assert [(words[0], words[1], words[3], words[4], words[5]) for words in ranked] == [
        ("first_one", "Q0", "1", "1.000000", "bm25"),
        ("first_one", "Q0", "2", "0.500000", "bm25"),
    ]
    assert {words[2] for words in ranked} == {"first_one#0", "first_one#2"}


def test_trec_files_of_a_corpus_have_its_ids(core: Output, tmp_path: Path) -> None:
    run, qrels = tmp_path / "found.run", tmp_path / "support.qrels"
    judged = "q1 0 d2 1\nq2 0 d3 1\n"
    folder = beir(tmp_path, judged, "test.txt")
    written = {"run": run, "qrels": qrels, "json": True}
    [told] = objects(core("evaluate", folder, method="topk", step_budget=4, **written))
    assert "all over one corpus" in told["config"]["description"]
    assert qrels.read_text() == judged
    found = {(words[0], words[2]) for words in map(str.split, run.read_text().splitlines())}
    assert found == {(query, f"d{row}") for query in ("q1", "q2") for row in range(4)}
    core("evaluate", folder, method="topk", step_budget=1, chunk_tokens=64, **written)
    assert qrels.read_text() == "q1 0 q1#0 1\nq2 0 q2#0 1\n", "joined passages have no id of the set"


def test_the_same_seed_gives_the_same_numbers(core: Output, agent: Path, data: Path) -> None:
    named = {"data": data, "n": 2, "length": 512, "checkpoint": agent, "temperature": 0.3, "json": True}
    first, again, other = (
        [result["metrics"] for result in objects(core("evaluate", "qa2", seed=seed, **named))]
        for seed in (1, 1, 2)
    )
    for metrics in (*first, *again, *other):
        del metrics["milliseconds"]
    assert first == again != other


def test_neighbouring_chunks_are_joined_and_questions_run_one_by_one(
    core: Output, agent: Path, data: Path, tmp_path: Path
) -> None:
    n_chunks = []
    for size in ((), ("--chunk-tokens", 64, "--one-by-one")):
        named = {"data": data, "n": 1, "length": 512, "checkpoint": agent, "json": True}
        core("evaluate", "qa2", *size, rows=tmp_path / "rows.jsonl", **named)
        (row,) = read_rows(tmp_path / "rows.jsonl")
        n_chunks.append(row.n_chunks)
    assert row.chunk_tokens == 64
    assert n_chunks[0] > n_chunks[1]


def test_no_file_of_a_command_is_written_over_another(
    refused: Output, agent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text("kept")
    Path("b.jsonl").symlink_to("a.jsonl")
    for command in (
        argv("evaluate", "a.jsonl", rows="b.jsonl", json=True),
        argv("evaluate", "qa1", run="c", qrels="./c", json=True),
        argv("evaluate", "qa1", "qa2", run="c", rows="c-qa2", json=True),
        argv("evaluate-documents", "a.jsonl", ".", rows="a.jsonl", json=True),
        argv("evaluate-documents", "a.jsonl", ".", methods="bm25,topk", run="c", qrels="c-topk", json=True),
        argv("calibrate", agent, "a.jsonl@1K", rows="a.jsonl"),
        argv("calibrate", agent, questions="a.jsonl", rows="a.jsonl"),
        argv("trace", corpus=".", queries="a.jsonl", run="a.jsonl", json=True),
    ):
        assert "would overwrite what else this command reads or writes; name another" in refused(*command)
    assert "log.duckdb is the log" in refused(
        "evaluate", "qa1", rows="log.duckdb", log="log.duckdb", json=True
    )
    assert Path("a.jsonl").read_text() == "kept"
    check_targets([Path("/dev/null"), Path("/dev/null"), None])


def test_a_file_of_lines_is_emptied_by_the_first_or_a_good_end(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("rows\n")
    for path in (old, new):
        with pytest.raises(BadRequest), line_file(path):
            raise BadRequest("no such task")
    assert (old.read_text(), new.exists()) == ("rows\n", False)
    for path in (old, new, Path("/dev/null")):
        with line_file(path) as keep:
            keep("a\n")
            keep("b\n")
    assert old.read_text() == new.read_text() == "a\nb\n"
    with line_file(old):
        pass
    assert old.read_text() == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("qa77",), "task 'qa77' does not exist; choose among qa1"),
        (("qa1", "--n", "0"), "n=0"),
        (("qa1", "--method", "magic"), "invalid choice: 'magic'"),
        (("qa1", "--step-budget", "0"), "step budget 0"),
        (("qa1", "--checkpoint", "nobody"), "'nobody' not found"),
        (("qa1", "--rows", "/proc/none/rows.jsonl"), "rows.jsonl can't be written"),
        (("qa1", "--rows", "rows.jsonl.gz"), "rows.jsonl.gz would be no gzip file"),
    ],
)
def test_refusals_are_one_sentence(
    refused: Output, data: Path, arguments: tuple[str, ...], words: str
) -> None:
    assert words in refused("evaluate", *arguments, "--data", data, "--json")
