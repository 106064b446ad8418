"""A Space that runs the app.

A Space gets the program and nothing else, by an allow-list of folders and kinds of files, so that a log, a
cache or a key that lies about is never sent. The front matter that it needs is written here, not into the
repository's README, whose readers would have to skip it. Secrets and variables are the caller's to read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from core.base.errors import BadRequest
from core.base.home import ROOT
from core.runs.hub.client import Hub

FOLDERS = ("app", "assets", "core", "sample_docs")
FILES = ("LICENSE", "app.py", "requirements.txt")
KINDS = frozenset(
    {".css", ".gif", ".gz", ".html", ".js", ".json", ".md", ".py", ".safetensors", ".svg", ".txt"}
)
"""Suffixes of files in the folders that belong to the program."""

MAX_FILE_BYTES = 10_000_000
"""Largest file: a Space is built from git, which is slow with larger ones."""

PRICES = "https://huggingface.co/pricing#spaces"
SUGGESTED_HARDWARE = "t4-small"
"""Enough: 22M parameters, and a step over ten million tokens is one product of 160,000 by 384 numbers."""

_README = """\
---
title: Q-RAG Explorer
emoji: 🧭
colorFrom: indigo
colorTo: blue
sdk: gradio
sdk_version: {gradio}
python_version: "3.12"
app_file: app.py
suggested_hardware: {hardware}
startup_duration_timeout: 1h
hf_oauth: true
license: apache-2.0
short_description: Watch a retriever choose one chunk after another
models:
  - sentence-transformers/all-MiniLM-L6-v2
---

# Q-RAG Explorer

Open a long document, ask a question, and watch a multi-step retriever choose one chunk after another.

This Space is in public mode: your documents and runs belong to a key that lies in your browser, or to your account if you sign in, and are
deleted after a day. It runs on a dedicated GPU or on a CPU, where opening a long document takes longer; ZeroGPU is not supported.
To keep runs across restarts of a duplicate, set the variable `QRAG_EXPORT_REPO` to the name of a data set and the secret `HF_TOKEN` to a
token that may write to it.
"""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What to make of a repository on the hub."""

    repository: str
    """OWNER/NAME."""
    private: bool = False
    """Whether a Space that has to be made is private; one that exists stays as it is."""
    hardware: str | None = None
    """A name such as "t4-small"; None leaves it as it is, or to the hub."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Anybody can read these on the hub."""
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def check_hardware(name: str) -> str:
    """The name, if a Space of this app can run on it. Raises BadRequest."""
    from huggingface_hub import SpaceHardware

    kinds = [str(kind.value) for kind in SpaceHardware]
    if name.startswith("zero"):
        raise BadRequest(
            f"hardware {name!r} is ZeroGPU, which stops at torch 2.11 and forks a process for each call, so"
            " models and documents would not stay in memory; choose a dedicated GPU such as"
            f" {SUGGESTED_HARDWARE}, or cpu-basic"
        )
    if name not in kinds:
        raise BadRequest(
            f"hardware {name[:60]!r} does not exist; choose among"
            f" {', '.join(kind for kind in kinds if not kind.startswith('zero'))}"
        )
    return name


def space_files(root: Path = ROOT) -> dict[str, Path]:
    """Path in the Space -> file here, without the README. Raises BadRequest above MAX_FILE_BYTES."""
    inside = (path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in KINDS)
    paths = [*(root / name for name in FILES), *filter(Path.is_file, inside)]
    named = {path.relative_to(root).as_posix(): path for path in paths}
    files = {name: path for name, path in sorted(named.items()) if _belongs(name)}
    for name, path in files.items():
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BadRequest(
                f"{name} has {path.stat().st_size:,} bytes, but a Space of this app takes files up to"
                f" {MAX_FILE_BYTES:,}; move it elsewhere"
            )
    return files


def plan(deployment: Deployment, root: Path = ROOT) -> str:
    """What deploying would do and cost, for people; nothing is asked of the hub."""
    files = space_files(root)
    sizes = Counter[str]()
    for name, path in files.items():
        sizes[name.split("/")[0]] += path.stat().st_size
    largest = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.most_common(4))
    hardware = "left as it is; a new Space gets cpu-basic, which is free"
    if deployment.hardware is not None:
        is_free = deployment.hardware.startswith("cpu-basic")
        costs = "free" if is_free else f"billed by the hour until you pause it: {PRICES}"
        hardware = f"{deployment.hardware}, {costs}"
    seen = "everybody; --private makes a new Space private"
    if deployment.private:
        seen = "you alone, if the Space has to be made; one that exists stays as it is"
    names = ", ".join(deployment.variables) or "none"
    lines = {
        "Space": f"{deployment.repository}, made if it is missing",
        "Open to": seen,
        "Hardware": hardware,
        "Size": f"{len(files) + 1:,} files, {sizes.total() / 1e6:.1f} MB: {largest}",
        "Public": f"what is sent, if the Space is, and variables ({names}): program, agents, sample documents",
        "Secret": ", ".join(deployment.secrets) or "none",
        "Not sent": "logs, caches, documents and agents of your own",
    }
    return "\n".join(f"{name:9} {words}" for name, words in lines.items())


def space_readme(hardware: str | None = None) -> str:
    """Front matter and a short text. The version of Gradio is the installed one, which was tried."""
    return _README.format(gradio=version("gradio"), hardware=hardware or SUGGESTED_HARDWARE)


def deploy_space(hub: Hub, deployment: Deployment, say: Callable[[str], None], root: Path = ROOT) -> str:
    """Make the Space if it is missing, set what was named, send the files, ask for the hardware; the Space's
    address. Files that the program no longer has are deleted, others in the Space stay. Raises HubError.
    """
    files, api, repository = space_files(root), hub.api, deployment.repository
    with hub.asked_to(f"make the Space {repository}"):
        api.create_repo(
            repository,
            repo_type="space",
            space_sdk="gradio",
            space_hardware=deployment.hardware,
            private=True if deployment.private else None,  # None: as the owner's account has it
            exist_ok=True,
        )
    for name, value in deployment.secrets.items():
        with hub.asked_to(f"set the secret {name} of {repository}"):
            api.add_space_secret(repository, name, value)
        say(f"set the secret {name}")
    for name, value in deployment.variables.items():
        with hub.asked_to(f"set the variable {name} of {repository}"):
            api.add_space_variable(repository, name, value)
        say(f"set the variable {name}")
    say(f"sending {len(files) + 1} files to {repository}")
    _commit(hub, deployment, files)
    hardware = deployment.hardware
    if hardware is not None:
        with hub.asked_to(f"look at the hardware of {repository}"):
            runtime = api.get_space_runtime(repository)
        if hardware != (runtime.requested_hardware or runtime.hardware):
            with hub.asked_to(f"request {hardware} for {repository}"):
                api.request_space_hardware(repository, hardware)
            say(f"requested {hardware}")
    return f"{api.endpoint}/spaces/{repository}"


def _belongs(name: str) -> bool:
    return not any(part.startswith(".") or part == "__pycache__" for part in name.split("/"))


def _commit(hub: Hub, deployment: Deployment, files: Mapping[str, Path]) -> None:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    repository = deployment.repository
    with hub.asked_to(f"list the files of {repository}"):
        there = hub.api.list_repo_files(repository, repo_type="space")
    old = [name for name in there if name.split("/")[0] in FOLDERS and name not in files]
    with hub.asked_to(f"send the files to {repository}"):
        operations = [CommitOperationAdd(name, path) for name, path in files.items()]
        operations.append(CommitOperationAdd("README.md", space_readme(deployment.hardware).encode()))
        operations += [CommitOperationDelete(name) for name in old]
        hub.api.create_commit(repository, operations, repo_type="space", commit_message="Q-RAG Explorer")
