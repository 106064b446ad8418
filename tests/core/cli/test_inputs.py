"""What a command works on: documents told apart, episodes checked before the first one runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadRequest
from core.cli.inputs import _folders, _read_episodes
from tests.core.cli.conftest import Output


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
