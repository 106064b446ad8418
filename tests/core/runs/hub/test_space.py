"""Deployment against a hub on this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from huggingface_hub import constants
from packaging.requirements import Requirement

from core.base.errors import BadRequest
from core.cli import main
from core.runs.hub.client import HubError, connect
from core.runs.hub.space import (
    FILES,
    FOLDERS,
    KINDS,
    MAX_FILE_BYTES,
    ROOT,
    Deployment,
    check_hardware,
    deploy_space,
    space_files,
    space_readme,
)
from tests.hub_stand_in import TOKEN, HubStandIn, Refused

NAME = "someone/explorer"
PROGRAM = {
    "LICENSE": "Apache",
    "app.py": "print()",
    "requirements.txt": "gradio",
    "app/build.py": "pass",
    "assets/app.css": "body {}",
    "assets/checkpoints/a/weights.safetensors": "weights",
    "core/deep/er/file.py": "pass",
    "sample_docs/story.txt": "Once.",
}


LITTER = (
    *(".env", ".git/config", "README.md", "app/__pycache__/notes.txt", "app/components/.cache.json"),
    *("assets/key.pem", "core/runs/log.duckdb", "core/part.pyi", "results/rows.jsonl.gz"),
    *("sample_docs/private.log", "tests/test_app.py"),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small program among things that are no part of it."""
    for name, text in {**PROGRAM, **dict.fromkeys(LITTER, "CANARY")}.items():
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "root"


def deploy(root: Path, **wanted: object) -> str:
    deployment = Deployment(repository=NAME, **wanted)
    return deploy_space(connect(), deployment, lambda _: None, root)


def test_a_new_space_gets_the_program_and_nothing_else(hub_stand_in: HubStandIn, root: Path) -> None:
    assert deploy(root) == f"{hub_stand_in.url}/spaces/{NAME}"
    space = hub_stand_in.space(NAME)
    assert space.files.keys() == {*PROGRAM, "README.md", ".gitattributes"}
    assert {name: space.files[name].decode() for name in PROGRAM} == PROGRAM
    assert (space.private, space.hardware, space.secrets, space.variables) == (None, None, {}, {})
    assert len(space.payloads) == 1


def test_a_second_deployment_updates(hub_stand_in: HubStandIn, root: Path) -> None:
    deploy(root)
    space = hub_stand_in.space(NAME)
    space.files["notes/of the owner.md"] = b"mine"
    (root / "app" / "build.py").write_text("import sys")
    (root / "core" / "deep" / "er" / "file.py").unlink()
    (root / "core" / "new.py").write_text("new")
    deploy(root)
    changed = {(line["key"], line["value"]["path"]) for line in space.payloads[1][1:]}
    written = {("file", "app/build.py"), ("file", "core/new.py")}
    assert changed == written | {("deletedFile", "core/deep/er/file.py")}
    assert space.files["notes/of the owner.md"] == b"mine"
    deploy(root)
    assert len(space.payloads) == 2


def test_what_is_named_is_set(hub_stand_in: HubStandIn, root: Path) -> None:
    secrets, variables = {"HF_TOKEN": "a"}, {"QRAG_EXPORT_REPO": "someone/runs"}
    deploy(root, private=True, hardware="l4x1", secrets=secrets, variables=variables)
    space = hub_stand_in.space(NAME)
    assert (space.private, space.hardware) == (True, "l4x1")
    assert (space.secrets, space.variables) == (secrets, variables)
    assert yaml.safe_load(space.files["README.md"].decode().split("---")[1])["suggested_hardware"] == "l4x1"
    deploy(root, hardware="t4-small")
    assert space.hardware == "t4-small"
    asked = [path for method, path in hub_stand_in.requests if (method, path[-9:]) == ("POST", "/hardware")]
    assert len(asked) == 1, "what a Space was made with is not requested again, since that restarts it"


def test_the_programs_own_files_are_all_of_known_kinds_and_small() -> None:
    files = space_files()
    assert {"app.py", "core/cli/__init__.py", "assets/checkpoints/narrative/qrag.json"} <= files.keys()
    assert {name.split("/")[0] for name in files} == {*FILES, *FOLDERS}
    assert all(path.stat().st_size <= MAX_FILE_BYTES for path in files.values())
    not_run = {".pyc", ".pyi", ".ts"}  # compiled, or read by a type checker alone
    suffixes = {path.suffix for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()}
    assert suffixes - not_run <= {*KINDS}, (
        "add it to KINDS in core/runs/hub/space.py, or a Space will lack it"
    )


def test_a_large_file_is_refused_before_anything_is_asked(hub_stand_in: HubStandIn, root: Path) -> None:
    with (root / "assets" / "model.safetensors").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(BadRequest, match=r"assets/model\.safetensors has 10,000,001 bytes"):
        deploy(root)
    assert hub_stand_in.requests == []


def test_the_front_matter_fits_the_hub_and_the_requirements() -> None:
    front = yaml.safe_load(space_readme().split("---")[1])
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    gradio = next(Requirement(line) for line in lines if line.startswith("gradio"))
    assert gradio.specifier.contains(front["sdk_version"])
    assert (front["sdk"], front["python_version"], front["app_file"]) == ("gradio", "3.12", "app.py")
    assert check_hardware(front["suggested_hardware"])
    assert len(front["short_description"]) <= 60
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert {front["colorFrom"], front["colorTo"]} <= colours


def one_sentence(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command says when it fails, having checked that it says nothing else and no secret."""
    assert main(["deploy-space", "--repo", NAME, *arguments]) == 2
    captured = capsys.readouterr()
    [line] = [line for line in captured.err.splitlines() if not line.startswith("sending ")]
    assert captured.out == ""
    assert TOKEN not in captured.err
    return line


def test_a_wrong_token_and_none(
    hub_stand_in: HubStandIn,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrongTokenCanary")
    said = one_sentence(capsys)
    assert "hub answered 401" in said
    assert "hf auth login" in said
    assert "hf_wrongTokenCanary" not in said
    assert hub_stand_in.repositories == {}
    hub_stand_in.requests.clear()
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    assert "set HF_TOKEN" in one_sentence(capsys)
    assert hub_stand_in.requests == []


def test_no_network(
    hub_stand_in: HubStandIn, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    said = one_sentence(capsys)
    assert said.startswith(
        f"could not make the Space {NAME}: 127.0.0.1 can't be reached (ConnectError); check"
    )
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in one_sentence(capsys)
    assert hub_stand_in.requests == []


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(402, "--hardware"), (403, "write access"), (429, "wait some minutes"), (503, "try again later")],
)
def test_a_refusal_is_quoted_in_one_line_without_the_token(
    hub_stand_in: HubStandIn, capsys: pytest.CaptureFixture[str], root: Path, status: int, remedy: str
) -> None:
    refusal = Refused(status, f"No, {TOKEN}, because {'of reasons ' * 100}")
    hub_stand_in.refuse_next = refusal
    said = one_sentence(capsys)
    assert f"the hub answered {status} (No, ***, because of reasons" in said
    assert remedy in said.partition("; ")[2]
    assert len(said) < 500
    hub_stand_in.refuse_next = refusal
    with pytest.raises(HubError) as caught:
        deploy(root)
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True), (
        "no chain to its words"
    )


def test_an_answer_that_is_none_is_one_sentence(
    hub_stand_in: HubStandIn, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ({"Content-Type": "text/html"}, b"<html>welcome to the hotel</html>")
    monkeypatch.setattr(hub_stand_in, "answer", lambda *_: page)
    assert f"could not make the Space {NAME}: " in one_sentence(capsys)


def test_arguments_that_can_not_work(
    capsys: pytest.CaptureFixture[str], hub_stand_in: HubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_NAME", TOKEN)
    for arguments, reason in (
        (["--repo", "no-owner"], "must be OWNER/NAME"),
        (["--repo", "a/../b"], "must be OWNER/NAME"),
        (["--secret", f"HF_TOKEN={TOKEN}"], "in capitals"),
        (["--secret", "NOT_SET_ANYWHERE"], "empty or not set"),
        (["--variable", "CANARY_NAME"], "anybody could read it"),
        (["--hardware", "zero-a10g"], "ZeroGPU"),
        (["--hardware", "t5-huge"], "choose among cpu-basic"),
    ):
        assert reason in one_sentence(capsys, *arguments)
    assert hub_stand_in.requests == []


def test_a_dry_run_says_what_is_made_public_and_paid_and_asks_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, hub_stand_in: HubStandIn
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    assert main(["deploy-space", "--repo", NAME, "--dry-run", "--hardware", "t4-small"]) == 0
    printed = capsys.readouterr().out
    for words in (NAME, "everybody", "t4-small, billed by the hour", f"{len(space_files()) + 1:,} files"):
        assert words in printed
    foreign = re.compile(r"^(tests|results|benchmarks|docs|\.)|\.(log|duckdb|pyc)$")
    assert not [name for name in space_files() if foreign.search(name)]
    assert hub_stand_in.requests == []


def test_the_command_as_a_person_runs_it(hub_stand_in: HubStandIn, tmp_path: Path) -> None:
    canaries = {"HF_TOKEN": TOKEN, "LLM_API_KEY": "sk-canary-of-the-endpoint"}
    environment = {
        **os.environ,
        **canaries,
        "HF_ENDPOINT": hub_stand_in.url,
        "HF_HOME": str(tmp_path),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_DEBUG": "1",
        "QRAG_EXPORT_REPO": "someone/runs",
    }
    named = ["--secret", "HF_TOKEN", "--secret", "LLM_API_KEY", "--variable", "QRAG_EXPORT_REPO"]
    command = [sys.executable, "-m", "core", "deploy-space", "--repo", NAME, "--hardware", "t4-small", *named]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, f"{hub_stand_in.url}/spaces/{NAME}\n"), done.stderr
    space = hub_stand_in.space(NAME)
    assert space.files.keys() == {*space_files(), "README.md", ".gitattributes"}
    assert (space.secrets, space.variables) == (canaries, {"QRAG_EXPORT_REPO": "someone/runs"})
    sent = b"".join(space.files.values())
    for canary in canaries.values():
        assert canary not in done.stdout + done.stderr
        assert canary.encode() not in sent
