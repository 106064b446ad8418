"""Runs that commands log, and what `runs` says of those that can't be shown, made again or taken in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli import main
from tests.core.cli.conftest import Output, argv

CHUNKS = ["Anna keeps the key .", "Bob sleeps ."]


@pytest.fixture
def one_run(core: Output, tmp_path: Path, tiny_checkpoints: dict[str, Path]) -> tuple[str, Path]:
    """(its id, its log), of an agent that does not ship."""
    (tmp_path / "chunks.json").write_text(json.dumps(CHUNKS))
    asked = {"query": "who ?", "chunks": tmp_path / "chunks.json", "checkpoint": tiny_checkpoints["none"]}
    core("trace", **asked, log=tmp_path / "log.duckdb", json=True)
    [run] = json.loads(core("runs", "list", log=tmp_path / "log.duckdb", json=True))["runs"]
    return run["run_id"], tmp_path / "log.duckdb"


def test_comparisons_keep_what_is_known_of_an_episode(
    core: Output, tmp_path: Path, tiny_checkpoints: dict[str, Path]
) -> None:
    line = {"id": 1, "query": "who ?", "chunks": CHUNKS, "support": [0], "answers": ["Anna"]}
    (tmp_path / "e.jsonl").write_text(json.dumps(line))
    log, checkpoint = tmp_path / "log.duckdb", tiny_checkpoints["none"]
    flags = {"episodes": tmp_path / "e.jsonl", "checkpoint": checkpoint, "log": log, "json": True}
    core("compare", methods="bm25,sparc", **flags)
    runs = json.loads(core("runs", "list", log=log, json=True))["runs"]
    known = {run["method"]: (run["n_support"], run["known_answer"]) for run in runs}
    assert known == dict.fromkeys(("bm25", "sparc"), (1, "Anna"))


def test_a_run_of_an_agent_that_does_not_ship_asks_for_its_folder(
    refused: Output, one_run: tuple[str, Path]
) -> None:
    run_id, log = one_run
    said = refused("runs", "replay", run_id, log=log)
    assert said == (
        f"run {run_id} was made by 'none', which does not ship; name its folder with --checkpoint\n"
    )


def test_a_run_without_its_texts_says_so(
    core: Output, refused: Output, one_run: tuple[str, Path], tmp_path: Path
) -> None:
    run_id, log = one_run
    core("runs", "export", run_id, "--no-text", log=log, to=tmp_path / "bare.jsonl")
    core("runs", "import", tmp_path / "bare.jsonl", log=tmp_path / "bare.duckdb")
    assert "(text not kept)" in core("runs", "show", run_id, log=tmp_path / "bare.duckdb")
    said = refused("runs", "replay", run_id, log=tmp_path / "bare.duckdb")
    assert said == f"run {run_id} was exported without texts; export it again with --text\n"


def test_a_run_named_twice_is_exported_once_and_to_a_path(
    core: Output, refused: Output, one_run: tuple[str, Path], tmp_path: Path
) -> None:
    run_id, log = one_run
    core("runs", "export", run_id, run_id, log=log, to=tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_text().count('"line": "end"') == 1
    core("runs", "export", run_id, run_id, log=log, to=tmp_path / "a.html", format="html")
    assert "'' must be a path" in refused("runs", "export", run_id, log=log, to="")


def test_what_a_log_consists_of_is_no_place_for_what_is_made_of_it(
    refused: Output, one_run: tuple[str, Path], tmp_path: Path
) -> None:
    _, log = one_run
    kept = log.read_bytes()
    (tmp_path / "link").symlink_to(log)
    for name in ("log.duckdb", "link", "log.duckdb.inbox", ".log.duckdb.1.tmp"):
        for command in (("runs", "export"), ("preferences",)):
            assert "or belongs to it; name another file" in refused(*command, log=log, to=tmp_path / name)
    assert log.read_bytes() == kept


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "is empty; give a file"), ("{}", "a.jsonl, line 1: "), (None, "can't be read")],
)
def test_what_can_t_be_imported_leaves_no_log(
    refused: Output, tmp_path: Path, content: str | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "a.jsonl").write_text(content)
    said = refused("runs", "import", tmp_path / "a.jsonl", log=tmp_path / "new.duckdb")
    assert words in said
    assert "line 0" not in said
    assert not list(tmp_path.glob("new.duckdb*"))


def test_the_list_says_how_imported_runs_are_called(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(argv("runs", "list", "--help"))
    assert "imported:NAME" in " ".join(capsys.readouterr().out.split())


def test_a_run_is_shown_with_its_answer_and_the_name_of_its_score(
    core: Output, refused: Output, tmp_path: Path, one_run: tuple[str, Path]
) -> None:
    (tmp_path / "keys.md").write_text("# Key\n\n{}\n\n# Sleep\n\n{}\n".format(*CHUNKS))
    calls = [
        {"query": "Who keeps the key?", "retrieved": CHUNKS, "scores": [3.2, 1], "answer": "Anna"},
        {"query": "Who?", "retrieved": CHUNKS, "method": "other"},
    ]
    (tmp_path / "calls.jsonl").write_text("\n".join(map(json.dumps, calls)))
    flags = {"document": tmp_path / "keys.md", "log": tmp_path / "brought.duckdb", "json": True}
    printed = core("import-run", tmp_path / "calls.jsonl", checkpoint="base", **flags)
    scored, ranked = (json.loads(line)["run_id"] for line in printed.splitlines())
    shown = core("runs", "show", scored, log=flags["log"])
    assert "score 3.2000" in shown
    assert shown.splitlines()[-2:] == ["That is what calls returned.", "Answer: Anna"]
    assert "1/rank 1.0000" in core("runs", "show", ranked, log=flags["log"])
    assert "is what calls returned, which is not asked again" in refused(
        "runs", "replay", scored, log=flags["log"]
    )
    run_id, log = one_run
    shown = core("runs", "show", run_id, log=log)
    assert "  Q " in shown
    assert shown.splitlines()[-1].startswith(("Answer: ", "Best guess (", "Not "))


def test_a_trec_run_without_its_queries_says_what_file_to_give(refused: Output, tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text(" ".join(CHUNKS))
    (tmp_path / "run.trec").write_text("q1 Q0 d1 1 2.0 mine\n")
    said = refused("import-run", tmp_path / "run.trec", document=tmp_path / "story.txt", json=True)
    assert said == (
        "query 'q1' of run.trec has no words; give its file of queries, too, with quer or topic in its name"
        ' (queries.jsonl, say) and a line {"_id": "q1", "text": "..."} each\n'
    )
