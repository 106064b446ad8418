"""`python -m core sparc`, SPARC among the methods of `compare`, and the study of its rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from core.methods.sparc.trace import SparcTrace
from tests.core.methods.sparc.conftest import FIRST_HOP, QUESTION, STORY, KnowingReader

Output = Callable[..., str]


@pytest.fixture(autouse=True)
def knowing_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("core.cli.sparc", "core.cli.compare"):
        monkeypatch.setattr(f"{module}.load_reader", lambda *_, **__: KnowingReader({"Quillmarsh": 0.9}))


@pytest.fixture
def chunks(tmp_path: Path) -> Path:
    path = tmp_path / "chunks.json"
    path.write_text(json.dumps(STORY), encoding="utf-8")
    return path


def test_a_question_gives_its_trace(chunks: Path, core: Output) -> None:
    printed = core(
        "sparc", query=QUESTION, chunks=chunks, checkpoint="base", strategies="bm25", k=2, width=1, json=True
    )
    values = json.loads(printed)
    assert (values["answer"], values["stop_reason"], values["agents"]) == (
        "Quillmarsh",
        "accepted",
        "rules and knowing",
    )
    assert FIRST_HOP in values["evidence"]
    assert SparcTrace.from_json(values).to_json() == values


def test_an_untrained_encoder_serves_all_but_the_agent(chunks: Path, core: Output) -> None:
    values = json.loads(
        core("sparc", "--query", QUESTION, "--chunks", chunks, "--checkpoint", "base", "--depth", 1, "--json")
    )
    assert values["events"][0]["config"]["strategies"] == ["bm25", "dense"]
    assert [query["strategy"] for query in values["events"][1]["queries"]] == ["dense", "bm25"]


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--width", 9), "width=9 must be between 1 and 4; choose one of these"),
        (
            ("--strategies", "psychic"),
            "strategies='psychic' can't be searched with; choose among bm25, dense, qrag",
        ),
        (
            ("--strategies", "qrag"),
            (
                "strategy qrag needs a trained agent and base is none; name one with --checkpoint, or leave"
                " qrag out"
            ),
        ),
        (("--max-tokens", 0), "max tokens 0 must be at least 1, or left out for no bound"),
        (
            ("--llm-url", "http://127.0.0.1:1/v1"),
            "--llm-url and --llm-model belong together; give both, or --llm-local",
        ),
    ],
)
def test_what_can_t_be_done_is_refused_in_a_sentence(
    chunks: Path, refused: Output, flags: tuple[object, ...], sentence: str
) -> None:
    assert (
        refused("sparc", *flags, query=QUESTION, chunks=chunks, checkpoint="base", json=True).strip()
        == sentence
    )


def test_a_run_is_kept_with_its_trace_and_made_again(chunks: Path, core: Output, tmp_path: Path) -> None:
    log = tmp_path / "log.duckdb"
    core("sparc", query=QUESTION, chunks=chunks, checkpoint="base", depth=2, log=log, json=True)
    (run,) = json.loads(core("runs", "list", "--log", log, "--json"))["runs"]
    shown = core("runs", "show", run["run_id"], "--log", log).splitlines()
    assert any(line.startswith(("The evaluator accepted", "The depth of 2")) for line in shown)
    replay = json.loads(core("runs", "replay", run["run_id"], "--log", log, "--checkpoint", "base"))
    assert replay["holds"], replay["summary"]
    assert replay["report"]["n_compared"] > 0


def test_sparc_is_a_method_of_compare_with_an_answer(chunks: Path, core: Output) -> None:
    values = json.loads(
        core(
            "compare", query=QUESTION, chunks=chunks, checkpoint="base", methods="bm25,sparc", k=2, json=True
        )
    )
    ours = values["methods"]["sparc"]
    assert len(ours["evidence"]) <= 2
    assert ours["answer"] in ("Quillmarsh", None)
    assert values["methods"]["bm25"]["ranked"][0]["chunk_id"] == FIRST_HOP


def test_sparc_compares_episodes_of_every_id(core: Output, tmp_path: Path) -> None:
    """Of 32 bits, e1 and e2 draw a seed of the lower half, e0 and e3 one of the upper half, which SPARC
    refuses.
    """
    (tmp_path / "episodes.jsonl").write_text(
        "".join(json.dumps({"id": f"e{i}", "query": QUESTION, "chunks": STORY}) + "\n" for i in range(4))
    )
    flags = ("--checkpoint", "base", "--methods", "sparc", "--k", 2, "--json")
    compared = [
        json.loads(line)
        for line in core("compare", "--episodes", tmp_path / "episodes.jsonl", *flags).splitlines()
    ]
    assert [one["id"] for one in compared] == ["e0", "e1", "e2", "e3"]
    assert all(FIRST_HOP in one["methods"]["sparc"]["evidence"] for one in compared)


@pytest.mark.campaign
def test_a_study_makes_its_rows_once_and_its_tables_from_them(
    core: Output, data: Path, tmp_path: Path
) -> None:
    rows = tmp_path / "rows.jsonl.gz"
    first = core("study", "sparc-first-round", "hotpotqa", data=data, n=1, checkpoint="base", rows=rows)
    assert "**Methods at equal evidence**" in first
    assert first.count("| hotpotqa-pooled | SPARC, bm25+dense+qrag, rewritten first round | 2 |") == 1 + 1 + 3
    assert "n = 1 questions of the test part over 48 paragraphs" in first
    assert core("study", "sparc-first-round", "--rows", rows) == first
