"""`evaluate-documents` as others call it."""

from __future__ import annotations

import gzip
import json
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.base.metrics import is_covered
from core.cli import main
from core.lab.evaluate.documents import read_document_rows
from core.lab.tasks.narrative import generate_narrative
from tests.core.cli.conftest import Output
from tests.llm_server import Request, serve_llm

PAGE = """# Lamps

The keeper's manual says that oil lamps are filled at noon. Wicks are trimmed every third day, before the lamps are lit.

# Ferry

The ferry leaves from the eastern pier. Tickets cost four crowns, and children travel free of charge.

# Weather

Fog lasts longest in October. The bell is rung every two minutes while it lasts.
"""
QUOTES = ["oil lamps are filled at noon", "Tickets cost FOUR crowns -"]


def question(name: str, document: str, kind: str, text: str, answer: str, *quotes: str) -> dict[str, Any]:
    about = {"id": name, "document": document, "kind": kind}
    return about | {"question": text, "answer": answer, "support": quotes}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A manual, and a story packed."""
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "manual.md").write_text(PAGE, encoding="utf-8")
    (folder / "story.txt.gz").write_bytes(gzip.compress(generate_narrative(1_000, 4, 3).text.encode()))
    return folder


def asked(path: Path, *questions: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in questions), encoding="utf-8")
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    known = generate_narrative(1_000, 4, 3)
    hop = known.questions[0]
    quotes = [known.text[start:end] for start, end in hop.support]
    both = "When are the oil lamps filled, and what does a ticket of the ferry cost?"
    return asked(
        tmp_path / "questions.jsonl",
        question("m 1", "manual.md", "bridge", both, "noon, four crowns", *QUOTES),
        question("s1", "story", "single", hop.question, hop.answer, *quotes),
        question("m2", "manual.md", "unanswerable", "Who founded the university?", ""),
    )


def lines(printed: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    *rows, last = [json.loads(line) for line in printed.splitlines()]
    assert list(last) == ["summary"]
    return rows, last["summary"]


def test_the_bound_on_reading_is_each_documents_own(
    core: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Embedding what was read before may take hours. Here 500 s go by whenever somebody looks."""
    names = ["a.html", "b.html", "c.html"]
    for name in names:
        (tmp_path / name).write_text(f"<h1>{name}</h1><p>Oil lamps are filled at noon.</p>", encoding="utf-8")
    questions = [
        question(name, name, "single", "When are lamps filled?", "noon", QUOTES[0]) for name in names
    ]
    monkeypatch.setattr("core.ingest.converter.time", SimpleNamespace(monotonic=count(0, 500).__next__))
    path = asked(tmp_path / "asked.jsonl", *questions)
    rows, _ = lines(core("evaluate-documents", path, tmp_path, methods="bm25", json=True))
    assert [row["covered"] for row in rows] == [[True]] * 3


def test_a_line_a_question_and_method(core: Output, questions: Path, folder: Path, tmp_path: Path) -> None:
    methods = ["auto", "topk", "bm25", "hybrid"]
    files = {name: tmp_path / f"{name}.txt" for name in ("rows", "run", "qrels")}
    command = ("evaluate-documents", questions, folder)
    rows, summary = lines(core(*command, methods=",".join(methods), k=2, json=True, **files))
    assert [(row["id"], row["method"]) for row in rows] == [
        (name, method) for name in ("m 1", "m2", "s1") for method in methods
    ]
    for row in rows:
        assert len(row["evidence"]) <= 2
        assert len(row["covered"]) == {"m 1": 2, "m2": 0, "s1": 1}[row["id"]]
        assert row["answer"] is None or row["answer"]
        assert 0 <= row["answer_confidence"] <= 1
    by = {(row["id"], row["method"]): row for row in rows}
    assert {row["n_chunks"] for row in rows if row["document"] == "manual.md"} == {3}
    assert {(row["document"], row["checkpoint"]) for row in rows if row["method"] == "auto"} == {
        ("manual.md", "general"),
        ("story", "narrative"),
    }
    assert by["m 1", "auto"]["evidence"] == by["m 1", "hybrid"]["evidence"]
    found = [tuple(span) for span in by["m 1", "auto"]["evidence"]]
    for quote in ("oil lamps are filled at noon", "Tickets cost four crowns"):
        assert is_covered((PAGE.index(quote), PAGE.index(quote) + len(quote)), found)
    assert by["m 1", "auto"]["covered"] == [True, True]
    assert list(summary) == methods
    assert list(summary["auto"]) == ["bridge", "unanswerable", "single", "all"]
    assert (summary["auto"]["all"]["n"], summary["auto"]["bridge"]["passage_recall"]) == (3, 1.0)
    assert summary["auto"]["unanswerable"]["complete"] is None

    kept = read_document_rows(files["rows"])
    assert [json.loads(json.dumps(row.to_json())) for row in kept] == rows
    relevant = [line.split() for line in files["qrels"].read_text().splitlines()]
    assert {(words[0], words[2]) for words in relevant} >= {("m_1", "manual.md#0"), ("m_1", "manual.md#1")}
    assert not any(words[0] == "m2" for words in relevant)
    for method in methods:
        told = [line.split() for line in (tmp_path / f"run-{method}.txt").read_text().splitlines()]
        assert {columns[5] for columns in told} == {method}
        for row in (row for row in kept if row.method == method):
            own = [columns for columns in told if columns[0] == row.id.replace(" ", "_")]
            assert [columns[2] for columns in own] == [f"{row.document}#{i}" for i in row.chunk_ids]
            scores = [float(columns[4]) for columns in own]
            assert scores == sorted(scores, reverse=True)


def test_only_agents_stop_and_none_switches_it_off(core: Output, questions: Path, folder: Path) -> None:
    of_story = next(line for line in questions.read_text("utf-8").splitlines(True) if '"story"' in line)
    questions.write_text(of_story, "utf-8")
    own, _ = lines(
        core("evaluate-documents", questions, folder, "--methods", "auto,qrag,topk", "--k", 5, "--json")
    )
    free, _ = lines(
        core("evaluate-documents", questions, folder, methods="auto,topk", k=5, stop="none", json=True)
    )
    story = {row["method"]: row for row in own}
    assert story["auto"]["evidence"] == story["qrag"]["evidence"]
    assert story["auto"]["stopped"]
    assert len(story["auto"]["evidence"]) < 5
    assert not story["topk"]["stopped"]
    assert [len(row["evidence"]) for row in free] == [5, 5]
    assert not any(row["stopped"] for row in free)


def test_one_checkpoint_for_every_document(
    core: Output, questions: Path, folder: Path, tiny_checkpoints: dict[str, Path]
) -> None:
    named = ("--checkpoint", tiny_checkpoints["none"])
    rows, _ = lines(
        core("evaluate-documents", questions, folder, "--methods", "auto,topk", *named, "--k", 1, "--json")
    )
    assert {row["checkpoint"] for row in rows if row["method"] == "auto"} == {"none"}
    assert {row["checkpoint"] for row in rows if row["method"] == "topk"} == {"base"}


def test_a_question_whose_quote_is_not_there_is_named_and_left_out(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Output
) -> None:
    wrong = question(
        "w", "manual.md", "single", "What do children pay?", "nothing", "children pay nothing at all"
    )
    assert "question w: the quote 'children pay nothing at all' does not stand in manual.md" in refused(
        "evaluate-documents", asked(tmp_path / "wrong.jsonl", wrong), folder, methods="bm25", json=True
    )
    broken = folder / "manual.md"
    broken.write_bytes(broken.read_bytes() + b"\n\nCaf\xc3\xa9, caf\xe9\n")
    right = question("r", "manual.md", "single", "What does a ticket cost?", "four crowns", QUOTES[1])
    path = asked(tmp_path / "both.jsonl", wrong, right)
    status = main(["evaluate-documents", str(path), str(folder), "--methods", "bm25", "--json"])
    out, err = capsys.readouterr()
    assert status == 2
    quote, read = err.splitlines()
    assert "does not stand in manual.md" in quote
    assert read.endswith("1 broken UTF-8 characters were replaced by \ufffd."), "what reading lost is told"
    assert [row["id"] for row in lines(out)[0]] == ["r"]


def test_what_can_not_be_used_is_one_sentence(
    refused: Output, questions: Path, folder: Path, tmp_path: Path
) -> None:
    for options, sentence in (
        (("--methods", "auto,dense"), "method 'dense' does not exist; choose among auto, qrag, hybrid"),
        (("--methods", "resrag-llm"), "resrag-llm asks a language model and none is connected; connect one"),
        (("--k", "0"), "k=0 must be at least 1"),
    ):
        assert sentence in refused("evaluate-documents", questions, folder, *options, "--json")
    assert "is no folder" in refused("evaluate-documents", questions, tmp_path / "none", "--json")
    assert "can't be read" in refused("evaluate-documents", tmp_path / "none.jsonl", folder, "--json")
    (folder / "manual.md").unlink()
    assert "document 'manual.md' is not in" in refused(
        "evaluate-documents", questions, folder, methods="bm25", json=True
    )


def test_gold_is_what_holds_the_quotes(core: Output, questions: Path, folder: Path) -> None:
    rows, summary = lines(core("evaluate-documents", questions, folder, "--methods", "gold", "--json"))
    assert [(row["id"], row["covered"]) for row in rows] == [
        ("m 1", [True, True]),
        ("m2", []),
        ("s1", [True]),
    ]
    assert {row["id"]: len(row["evidence"]) for row in rows} == {"m 1": 2, "m2": 0, "s1": 1}
    assert (summary["gold"]["all"]["passage_recall"], summary["gold"]["all"]["complete"]) == (1.0, 1.0)
    assert rows[1]["answer"] is None


def test_a_language_model_writes_sets_and_its_nonsense_costs_one_row(
    questions: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It takes the first chunk of the manual for the first question, and talks about the others."""

    def script(request: Request) -> str:
        return '{"Document_1": [1]}' if "oil lamps filled" in request.messages[-1]["content"] else "I can't."

    with serve_llm(script) as server:
        command = ("evaluate-documents", questions, folder, "--methods", "bm25,resrag-llm", "--k", 2)
        model = ("--llm-url", server.url, "--llm-model", "tiny", "--json")
        assert main([str(part) for part in (*command, *model)]) == 0
    out, err = capsys.readouterr()
    rows, summary = lines(out)
    assert [(row["id"], row["method"]) for row in rows] == [
        ("m 1", "bm25"),
        ("m 1", "resrag-llm"),
        ("m2", "bm25"),
        ("s1", "bm25"),
    ]
    written = rows[1]
    assert (len(written["evidence"]), written["covered"]) == (1, [True, False])
    assert summary["resrag-llm"]["all"]["n"] == 1
    assert "m2: resrag-llm has no row: " in err
    assert "s1: resrag-llm has no row: " in err
