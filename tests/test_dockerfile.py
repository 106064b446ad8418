"""The Dockerfile, as far as it can be judged without Docker."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from core.runs.hub.space import FILES, FOLDERS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) in order, comments dropped and continued lines joined."""
    lines = [
        line for line in (ROOT / "Dockerfile").read_text().splitlines() if not line.lstrip().startswith("#")
    ]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [
        (name, rest.strip())
        for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line.strip())
    ]


def arguments(instructions: list[tuple[str, str]], name: str) -> list[str]:
    return [rest for instruction, rest in instructions if instruction == name]


def variables(instructions: list[tuple[str, str]]) -> dict[str, str]:
    return dict(pair.split("=", 1) for rest in arguments(instructions, "ENV") for pair in shlex.split(rest))


def test_instructions_are_known_and_in_order(instructions: list[tuple[str, str]]) -> None:
    names = [name for name, _ in instructions]
    assert set(names) <= {
        "FROM",
        "ARG",
        "ENV",
        "RUN",
        "WORKDIR",
        "COPY",
        "USER",
        "VOLUME",
        "EXPOSE",
        "HEALTHCHECK",
        "ENTRYPOINT",
    }
    assert names[0] == "FROM"
    assert names.count("ENTRYPOINT") == names.count("HEALTHCHECK") == names.count("USER") == 1
    assert names.index("USER") > max(i for i, name in enumerate(names) if name == "RUN"), (
        "installing needs root, running does not"
    )
    assert names.index("RUN") < max(i for i, name in enumerate(names) if name == "COPY"), (
        "requirements are installed before the program comes"
    )


def test_it_copies_the_program_and_what_it_copies_is_there(instructions: list[tuple[str, str]]) -> None:
    copied = {source for rest in arguments(instructions, "COPY") for source in rest.split()[:-1]}
    assert copied == {*FILES, *FOLDERS}
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == copied
    for source in copied:
        assert (ROOT / source).exists(), source


def test_nothing_else_reaches_the_image() -> None:
    lines = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert lines[0] == "*", "later lines win, so everything is left out first"
    assert {"**/__pycache__", "**/.*", "**/*.duckdb"} <= set(lines[lines.index("!sample_docs") :])


def test_it_listens_everywhere_keeps_data_in_the_volume_and_is_not_root(
    instructions: list[tuple[str, str]],
) -> None:
    environment = variables(instructions)
    assert environment["GRADIO_SERVER_NAME"] == "0.0.0.0"
    assert [environment["QRAG_HOME"]] == arguments(instructions, "VOLUME")
    assert [environment["GRADIO_SERVER_PORT"]] == arguments(instructions, "EXPOSE")
    [user] = arguments(instructions, "USER")
    assert user not in {"root", "0"}
    [made] = [rest for rest in arguments(instructions, "RUN") if "useradd" in rest]
    assert f"install -d -o {user}" in made
    assert environment["QRAG_HOME"] in made


def test_the_processor_is_the_default_and_each_variant_installs_its_list(
    instructions: list[tuple[str, str]],
) -> None:
    assert arguments(instructions, "ARG") == ["VARIANT=cpu"]
    [install] = [rest for rest in arguments(instructions, "RUN") if "pip install" in rest]
    cases = dict(re.findall(r"(gpu|cpu)\) (.*?) ;;", install))
    assert re.findall(r"-r (\S+)", cases["gpu"]) == ["requirements.txt"]
    assert "sed 's/^faiss-gpu/faiss-cpu/' requirements.txt > /tmp/cpu.txt" in cases["cpu"]
    assert re.findall(r"-r (\S+)", cases["cpu"]) == ["/tmp/cpu.txt"]
    assert "exit 2" in install.split("*)")[1]


def test_commands_are_in_the_exec_form_and_compile(instructions: list[tuple[str, str]]) -> None:
    [entry] = arguments(instructions, "ENTRYPOINT")
    assert json.loads(entry) == ["python", "app.py"]
    [health] = arguments(instructions, "HEALTHCHECK")
    program, flag, code = json.loads(health.partition("CMD ")[2])
    assert (program, flag) == ("python", "-c")
    compile(code, "health", "exec")
