"""`train-resrag` and `study frontier` from data to result, and what they refuse."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from core.cli import main
from core.lab.studies.frontier import read_frontier
from core.methods.resrag.card import read_card
from tests.core.cli.conftest import Output, argv
from tests.llm_server import KEY, serve_llm


@pytest.mark.campaign
def test_a_policy_is_trained_and_measured(
    set_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    policy, rows = tmp_path / "policy", tmp_path / "rows.jsonl.gz"
    train = argv(
        "train-resrag", out=policy, data_folder=set_data, updates=3, warmup_updates=2, questions=3, json=True
    )
    assert main(train) == 0
    said = json.loads(capsys.readouterr().out)
    card = read_card(policy)
    assert (said["updates"], card.name, card.encoder) == (3, "policy", "general")
    assert card.training["config"]["reward"]["bad_answer"] == -0.5
    study = argv("study", "frontier", "hotpotqa", "natural", data=set_data, n=2, policy=policy, rows=rows)
    assert main(study) == 0
    made = capsys.readouterr().out
    assert "| hotpotqa | RES-RAG policy | 1 |" in made
    assert {(row.task, row.method, row.policy) for row in read_frontier(rows)} >= {
        ("natural", "resrag", "policy"),
        ("hotpotqa", "topk", ""),
        ("hotpotqa", "qrag", "general"),
        ("natural", "sparc", "W2"),
    }
    for row in read_frontier(rows):
        assert all(
            taken <= size for taken, size in zip(row.chunks, row.settings, strict=True)
        ) or row.method in ("threshold", "qrag", "sparc")
    assert main(study) == 0
    assert capsys.readouterr().out == made, "rows that are there are read"
    whole = gzip.decompress(rows.read_bytes()).splitlines()
    rows.write_bytes(gzip.compress(b"\n".join(whole[:7]) + b"\n"))
    assert main(study) == 0
    assert gzip.decompress(rows.read_bytes()).splitlines() == whole, "it goes on from the rows that are there"
    rows.write_bytes(gzip.compress(b"\n".join(whole[1:7]) + b"\n"))
    assert main(study) == 2
    assert "rows of other methods, policies, settings or readers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--group", "1"], "group 1 is below 2"),
        (["--bad-answer", "1"], "must be a finite number, 0 or less"),
        (["--labels", "guesses"], "invalid choice"),
    ],
)
def test_settings_out_of_range(
    flags: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train-resrag", "--out", str(tmp_path / "policy"), *flags]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "policy").exists()


def test_studies_that_could_not_end_are_refused_before_anything_is_read(refused: Output) -> None:
    assert "no policy is named joint-SEED" in refused("study", "set-ablations")
    shipped = Path(__file__).parents[3] / "assets" / "resrag" / "multi-hop"
    assert "'multi-hop' is not named VARIANT-SEED" in refused("study", "set-ablations", policy=shipped)
    assert "n=0 must be at least 1" in refused("study", "frontier", n=0)


def test_a_language_model_writes_the_set(
    tmp_path: Path,
    core: Output,
    refused: Output,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("QRAG_LLM_KEY", KEY)
    page = tmp_path / "inn.html"
    page.write_text(
        '<title>Inn</title><script type="application/ld+json">{"@type": "Inn", "name": "Anchor"}</script>'
        "<h1>Inn</h1><p>The cook of the Blue Anchor is Tadeusz Wolny.</p>",
        encoding="utf-8",
    )
    told, log = core("ingest", page, "--json"), tmp_path / "log.duckdb"
    assert json.loads(told.splitlines()[0])["json_ld"] == [{"@type": "Inn", "name": "Anchor"}]
    asked = ("compare", "--document", page, "--query", "Who is the cook of the Blue Anchor?", "--json")
    asked += ("--checkpoint", "narrative", "--methods")  # named, so that a refusal is the only line
    with serve_llm(lambda _: '{"Document_1": [1]}') as server:
        named = ("--llm-url", server.url, "--llm-model", "tiny")
        out = core(*asked, "resrag-llm,topk", "--k", "1", "--log", log, *named)
        found = json.loads(out)["methods"]["resrag-llm"]
        assert (found["action"], found["evidence"]) == ({"Document_1": [1]}, [0])
        assert found["n_tokens"] > 0
        assert KEY not in out
        server.answer(*["no idea"] * 2)
        assert "twice gave no usable JSON object" in refused(*asked, "resrag-llm", *named)
        server.answer(*["no idea"] * 2)
        assert main(argv(*asked, "resrag-llm,topk", "--k", "1", *named)) == 2
        printed = capsys.readouterr()
        assert list(json.loads(printed.out)["methods"]) == ["topk"]
        assert "resrag-llm: tiny at" in printed.err
    assert "asks a language model; name one" in refused(*asked, "resrag-llm")
    kept = json.loads(core("runs", "list", "--log", log, "--method", "resrag-llm", "--json"))
    run_id = kept["runs"][0]["run_id"]
    assert "which may choose otherwise" in refused("runs", "replay", run_id, "--log", log)
