"""Every example of docs/interfaces.md does what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from haystack.tools import create_tool_from_function
from langchain_core.tools import tool
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.app.conftest import ROOT, RunningApp
from tests.coroutines import run as run_coroutine
from tests.llm_server import Says, serve_llm

PAGE = (ROOT / "docs" / "interfaces.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:7860"
EVIDENCE = 3
"""Chunks that the page's question takes: it asks for a place three facts away."""


def example(heading: str, language: str, url: str) -> str:
    """The one example under a heading, for the app at `url`."""
    [section] = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    [code] = re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)
    return code.replace(ADDRESS, url)


def output(app: RunningApp, *command: str) -> str:
    """What a command prints, `python` being this one."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "QRAG_HOME": str(app.home), "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def events(printed: str) -> Iterator[object]:
    return (json.loads(data)[0] for data in re.findall(r"event: complete\ndata: (.*)\n", printed))


def test_the_page_has_no_example_that_is_not_run() -> None:
    assert PAGE.count("```") == 2 * (5 + 5)


@pytest.mark.campaign
def test_command_line(running_app: RunningApp) -> None:
    trace, compared = map(
        json.loads,
        output(running_app, "bash", "-euc", example("Command line", "sh", running_app.url)).splitlines(),
    )
    assert len(trace["evidence"]) == EVIDENCE
    assert list(compared["methods"]) == ["qrag", "topk", "bm25"]


@pytest.mark.campaign
def test_python_library(running_app: RunningApp) -> None:
    assert (
        len(
            json.loads(
                output(running_app, sys.executable, "-c", example("Python", "python", running_app.url))
            )
        )
        == EVIDENCE
    )


@pytest.mark.campaign
def test_python_over_http(running_app: RunningApp) -> None:
    *steps, child = output(
        running_app, sys.executable, "-c", example("Python, over HTTP", "python", running_app.url)
    ).splitlines()[-EVIDENCE - 1 :]
    assert [line.split()[0] for line in steps] == [str(step) for step in range(1, EVIDENCE + 1)]
    assert [line.split()[-1] for line in steps] == ["True"] * EVIDENCE
    assert child == f"True {EVIDENCE + 1}"


@pytest.mark.campaign
def test_curl(running_app: RunningApp) -> None:
    run, found, branches = events(output(running_app, "bash", "-euc", example("curl", "sh", running_app.url)))
    assert len(run["evidence"]) == EVIDENCE
    assert found["runs"][0]["run_id"] == run["run_id"]
    assert (branches["by"], branches["status"]) == ("rules and reader", "complete")


@pytest.mark.campaign
def test_mcp_configuration(running_app: RunningApp) -> None:
    servers = json.loads(example("MCP", "json", running_app.url))["mcpServers"]

    async def tools(url: str) -> set[str]:
        async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
            await session.initialize()
            opened = await session.call_tool("open_document", {"sample": "river-chronicle.txt"})
            [text] = [part.text for part in opened.content if part.type == "text"]
            assert json.loads(text)["agent"] == "narrative"
            return {tool.name for tool in (await session.list_tools()).tools}

    assert "run_agent" in run_coroutine(tools(servers["qrag-explorer"]["url"]))


@pytest.mark.campaign
def test_behind_a_language_model(running_app: RunningApp) -> None:
    """The function is a tool of LangChain and Haystack as it is; of LlamaIndex, see in_llama_index.py."""
    with serve_llm(lambda _: Says("In the stable.", streamed=False)) as server:
        code = example("Behind a language model", "python", running_app.url)
        names: dict[str, Any] = {}
        exec(code.replace("http://127.0.0.1:8000/v1", server.url), names)
    asked = server.requests[0].body["messages"][-1]["content"]
    expected = names["look_up"](names["question"])
    assert asked.startswith(expected)
    assert "stable" in expected
    assert tool(names["look_up"]).invoke({"question": names["question"]}) == expected
    assert create_tool_from_function(names["look_up"]).invoke(question=names["question"]) == expected
