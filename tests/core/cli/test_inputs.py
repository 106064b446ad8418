"""What a command works on: documents told apart, episodes checked before the first one runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadCheckpoint, BadRequest
from core.cli import main
from core.cli.inputs import _folders, _read_episodes, read_queries
from core.encode.checkpoint import find_checkpoint
from tests.core.cli.conftest import Output, argv

MANUAL = "# Lamps\n\nOil lamps are filled at noon, and wicks are trimmed every third day.\n"
TAKEN = "Lamps is opened with general, as in the app; --checkpoint names another agent"
NOTICE = (
    "Lamps is opened with narrative, with which commands begin; the app would take general"
    " (--checkpoint general)"
)


def texts(folder: Path) -> list[Path]:
    """Two files of one name."""
    paths = [folder / part / "one.txt" for part in ("a", "b")]
    for path, who in zip(paths, ("Anna", "Bob"), strict=True):
        path.parent.mkdir()
        path.write_text(f"{who} keeps the key.")
    return paths


def test_files_of_one_name_are_told_apart_by_their_folders(core: Output, tmp_path: Path) -> None:
    paths = texts(tmp_path)
    chunks = [json.loads(line) for line in core("ingest", *paths, json=True).splitlines()]
    assert [chunk["document"] for chunk in chunks] == ["a/one.txt", "b/one.txt"]
    assert _folders([Path("x/a/one.txt"), Path("y/a/one.txt"), Path("two.txt"), Path("y/a/one.txt")]) == [
        *("x/a/", "y/a/"),
        *("", "y/a/"),
    ]


def test_a_run_over_several_documents_says_which_a_chunk_is_from(
    core: Output, tmp_path: Path, tiny_checkpoints: dict[str, Path]
) -> None:
    paths, asked = texts(tmp_path), {"query": "Who?", "checkpoint": tiny_checkpoints["none"], "json": True}
    named = {"0": "a/one.txt", "1": "b/one.txt"}
    assert json.loads(core("trace", "--document", *paths, **asked))["documents"] == named
    assert json.loads(core("compare", "--document", *paths, methods="topk", **asked))["documents"] == named
    assert "documents" not in json.loads(core("trace", document=paths[0], **asked))


def test_a_budget_that_a_later_episode_can_t_have_is_told_before_the_first_runs(
    refused: Output, tmp_path: Path, tiny_checkpoints: dict[str, Path]
) -> None:
    lines = [{"id": i, "query": "Who?", "chunks": ["Ann.", "Bob."][: 3 - i]} for i in (1, 2)]
    (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = refused(
        "trace",
        episodes=tmp_path / "e.jsonl",
        step_budget=2,
        checkpoint=tiny_checkpoints["none"],
        json=True,
    )
    assert said.startswith("episode 2 of e.jsonl: step budget 2 is above 1")


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ((True,), r'line 1 of e\.jsonl needs "id" \(a text or number\)'),
        ((" ",), r'"id" in line 1 of e\.jsonl is empty'),
        ((1, "a", "1"), r'"id" in line 3 of e\.jsonl is \'1\', as that of a line before'),
    ],
)
def test_an_id_that_names_no_episode_alone_is_refused(
    tmp_path: Path, ids: tuple[Any, ...], words: str
) -> None:
    lines = [{"id": one, "query": "Who?", "chunks": ["Ann."]} for one in ids]
    (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(BadRequest, match=words):
        list(_read_episodes(tmp_path / "e.jsonl"))


def test_an_empty_query_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"_id": "a", "text": "Who?"}\n{"_id": "b", "text": " "}')
    with pytest.raises(BadRequest, match=r"line 2 of q\.jsonl: the question is empty"):
        read_queries(tmp_path / "q.jsonl")


def episodes(folder: Path, **known: Any) -> Path:
    path = folder / "e.jsonl"
    path.write_text(json.dumps({"id": 1, "query": "Who?", "chunks": ["Ann.", "Bob."], **known}))
    return path


@pytest.mark.parametrize(
    ("known", "label"),
    [
        ({"support": [1], "answers": ["Bob"]}, {"support": [1], "answers": ["Bob"], "answer": "Bob"}),
        ({"support": [], "answers": None}, {"support": []}),
        ({}, None),
    ],
)
def test_support_and_answers_become_the_label(
    tmp_path: Path, known: dict[str, Any], label: dict[str, Any] | None
) -> None:
    [(_, _, _, told)] = _read_episodes(episodes(tmp_path, **known))
    assert told == label


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"support": [True]}, "must be a list of chunk ids"),
        ({"support": 1}, "must be a list of chunk ids"),
        ({"answers": "Bob"}, "must be a list of texts"),
        ({"support": [1, 2]}, "names chunk 2; its ids must be between 0 and 1"),
    ],
)
def test_what_is_no_label_is_refused(tmp_path: Path, known: dict[str, Any], words: str) -> None:
    where = f'"{next(iter(known))}" in line 1 of e.jsonl'
    with pytest.raises(BadRequest, match=f"{where} {words}; correct the file"):
        list(_read_episodes(episodes(tmp_path, **known)))


def commands(folder: Path) -> dict[str, tuple[Any, ...]]:
    """What cuts or embeds a document."""
    page, asked = folder / "in" / "lamps.md", ("--query", "When?", "--json")
    return {
        "ingest": ("ingest", page, "--json"),
        "trace": ("trace", "--document", page, *asked),
        "compare": ("compare", "--document", page, "--methods", "hybrid,bm25", *asked),
        "embed-corpus": ("embed-corpus", folder / "in", "--out", folder / "out", "--json"),
    }


@pytest.fixture
def manual(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lamps.md").write_text(MANUAL)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "notice"),
    [("ingest", TAKEN), ("trace", TAKEN), ("compare", TAKEN), ("embed-corpus", NOTICE)],
)
def test_the_agent_that_nobody_named_is_said_once(
    manual: Path, capsys: pytest.CaptureFixture[str], command: str, notice: str
) -> None:
    """Whatever is made of a document: chunks alone, other vectors than the agent's, a corpus."""
    assert main(argv(*commands(manual)[command])) == 0
    out, err = capsys.readouterr()
    assert err.splitlines().count(notice) == 1
    assert json.loads(out.splitlines()[0]).get("checkpoint", "general") in notice
    assert "is opened with" not in out


def test_who_names_an_agent_is_told_of_no_other(
    manual: Path, tiny_checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in commands(manual).values():
        assert main(argv(*command, checkpoint=tiny_checkpoints["none"])) == 0
    assert "is opened with" not in capsys.readouterr().err


def test_an_agent_of_one_s_own_is_found_by_its_name(home: Path, tiny_checkpoints: dict[str, Path]) -> None:
    """As the app offers it; by a name alone, which leads nowhere else."""
    own = shutil.copytree(tiny_checkpoints["none"], home / "agents" / "mine")
    assert find_checkpoint("mine") == own
    shutil.copytree(own, home / "elsewhere")
    for name in ("../elsewhere", "mine/../../elsewhere", "..", ".", "", "yours"):
        with pytest.raises(BadCheckpoint, match=r"not found; name one of .*, one in \$QRAG_HOME/agents, or"):
            find_checkpoint(name)


def test_a_corpus_of_one_s_own_agent_is_asked(
    core: Output, manual: Path, home: Path, tiny_checkpoints: dict[str, Path]
) -> None:
    """Its folder may have another name than its qrag.json gives it."""
    shutil.copytree(tiny_checkpoints["none"], home / "agents" / "mine")
    core(*commands(manual)["embed-corpus"], checkpoint="mine")
    found = json.loads(core("trace", corpus=manual / "out", query="When?", step_budget=1, json=True))
    assert found["n_chunks"] == 1
