"""The command line as others call it: every field of the contract, and one line on stderr with status 2 for
what can't be done.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.cli import main
from tests.core.cli.conftest import argv, home  # noqa: F401
from tests.core.ingest.made import encrypted_pdf, make_docx, make_pdf, make_zip, paragraph

ROOT = Path(__file__).resolve().parents[2]
PAGE = """<!doctype html><html><head><title>Ships ☃</title><script>var hidden = 1;</script></head><body><h1>Harbour</h1>
<p>The ship “Mary” left at 3.14 o'clock. Über den Wellen 𝒳 lag Nebel. The captain said nothing.</p>
<table><tr><th>day</th><th>rain</th></tr><tr><td>one</td><td>three</td></tr></table><ul><li>rope</li><li>light</li></ul></body></html>"""
MARKDOWN = (
    "# Road\n\nThe road was long.\r\nIt went to the city.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n## Day\n\n-"
    " one\n- two\n"
)
TEXT = "Mary went to the garden. John got the milk there!\r\n\r\nWhere was the apple? 日本語。まだ。 " * 12
CHUNKS = [
    "mary got the milk .",
    "mary went to the garden .",
    "the night was cold .",
    "john left the apple .",
    "mary dropped the milk .",
]
QUERY = "where is the milk ?"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Input files of every kind."""
    contents = {"page.html": PAGE, "road.md": MARKDOWN, "story.txt": TEXT, "chunks.json": json.dumps(CHUNKS)}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content.encode())
    return {name: tmp_path / name for name in contents}


Command = Callable[..., list[Any]]


@pytest.fixture
def core(capsys: pytest.CaptureFixture[str]) -> Command:
    """`core("trace", ...)`: the JSON values a command prints, one a line. Fails on another exit status than
    0.
    """

    def call(*parts: object, **flags: object) -> list[Any]:
        status = main(argv(*parts, **flags))
        out, err = capsys.readouterr()
        assert status == 0, err
        return [json.loads(line) for line in out.splitlines()]

    return call


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`refused("trace", ...)`: the sentence of a command that exits with 2 and prints nothing else."""

    def call(*parts: object, **flags: object) -> str:
        status = main(argv(*parts, **flags))
        out, err = capsys.readouterr()
        assert (status, out) == (2, ""), (status, out, err)
        lines = err.splitlines()
        assert len(lines) == 1, err
        return lines[0]

    return call


def process(*argv: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """`python -m core ...` as a process of its own."""
    command = [sys.executable, "-m", "core", *(str(part) for part in argv)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, env=os.environ | environment, check=False)


def test_ingest_text_byte_for_byte(core: Command, files: dict[str, Path]) -> None:
    """In a process whose locale knows ASCII only: what is printed is UTF-8 all the same, and chunks are
    slices of it.
    """
    text = process("ingest", files["page.html"], "--text", PYTHONIOENCODING="ascii").stdout.decode()
    chunks = core("ingest", files["page.html"], "--json")
    assert "“Mary”" in text
    assert "𝒳" in text
    assert "hidden" not in text
    assert [text[chunk["start"] : chunk["end"]] for chunk in chunks] == [chunk["text"] for chunk in chunks]


@pytest.mark.parametrize("name", ["page.html", "road.md", "story.txt"])
@pytest.mark.parametrize(
    "options",
    [(), ("--chunker", "structure", "--max-tokens", 16), ("--chunker", "sentences", "--max-tokens", 40)],
)
def test_ingest_chunks_are_slices(
    core: Command,
    files: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
    name: str,
    options: Sequence[object],
) -> None:
    chunks = core("ingest", files[name], "--json", *options)
    assert main(["ingest", str(files[name]), "--text"]) == 0
    text = capsys.readouterr().out
    assert chunks
    for chunk_id, chunk in enumerate(chunks):
        assert list(chunk) == [
            "document",
            "chunk_id",
            "type",
            "heading_path",
            "text",
            "start",
            "end",
            "n_tokens",
        ]
        assert (chunk["document"], chunk["chunk_id"]) == (name, chunk_id)
        assert chunk["type"] in ("text", "table", "list")
        assert text[chunk["start"] : chunk["end"]] == chunk["text"]
        assert 0 < chunk["n_tokens"] <= (options[-1] if options else 254)
        assert all(isinstance(heading, str) for heading in chunk["heading_path"])
    assert [chunk["start"] for chunk in chunks] == sorted(chunk["start"] for chunk in chunks)


def test_ingest_says_the_json_ld_of_a_page_once(core: Command, tmp_path: Path) -> None:
    block = '<script type="application/ld+json">{"@type": "Recipe", "name": "</scr\\u0069pt>"}</script>'
    pages = [tmp_path / "soup.html", tmp_path / "plain.html"]
    for page, head in zip(pages, (block, ""), strict=True):
        page.write_text(f"{head}<h1>Soup</h1><p>Boil it.</p><h2>Salt</h2><p>Add it.</p>", encoding="utf-8")
    first, *others = core("ingest", *pages, "--json")
    assert first["json_ld"] == [{"@type": "Recipe", "name": "</script>"}]
    assert {chunk["document"] for chunk in others} == {"soup.html", "plain.html"}
    assert not any("json_ld" in chunk for chunk in others)


def test_ingest_picks_the_chunker_by_kind_and_numbers_on(core: Command, files: dict[str, Path]) -> None:
    chunks = core("ingest", files["page.html"], files["story.txt"], files["road.md"], "--json")
    assert [chunk["chunk_id"] for chunk in chunks] == list(range(len(chunks)))
    kinds = {
        name: {chunk["type"] for chunk in chunks if chunk["document"] == name}
        for name in ("page.html", "road.md", "story.txt")
    }
    assert kinds == {
        "page.html": {"text", "table", "list"},
        "road.md": {"text", "table", "list"},
        "story.txt": {"text"},
    }


def test_ingest_takes_every_kind_of_document(
    core: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    letter = make_docx(paragraph("Harbour", "Heading1") + paragraph("The ship left."), "A letter")
    contents = {
        "letter.docx": letter,
        "all.zip": make_zip({"b/letter.docx": letter, "notes.txt": "The sea is wide."}),
        "p.pdf": make_pdf([["A page."]]),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    chunks = core("ingest", *(tmp_path / name for name in contents), "--json")
    assert [chunk["document"] for chunk in chunks] == [
        "letter.docx",
        "all.zip/b/letter.docx",
        "all.zip/notes.txt",
        "p.pdf",
    ]
    assert [chunk["text"] for chunk in chunks] == ["# Harbour\n\nThe ship left."] * 2 + [
        "The sea is wide.",
        "A page.",
    ]
    assert chunks[0]["heading_path"] == ["Harbour"]
    assert main(["ingest", str(tmp_path / "letter.docx"), "--text"]) == 0
    out, err = capsys.readouterr()
    assert out == "# Harbour\n\nThe ship left."
    assert err == "letter.docx: Converted to Markdown from letter.docx, a DOCX.\n"


def test_documents_of_an_archive_are_searched_as_one_list(core: Command, tmp_path: Path) -> None:
    (tmp_path / "all.zip").write_bytes(
        make_zip(
            {"a.txt": "The milk is in the kitchen.", "b.docx": make_docx(paragraph("John got the milk."))}
        )
    )
    (trace,) = core("trace", query=QUERY, document=tmp_path / "all.zip", checkpoint="base", json=True)
    check_trace(trace, 2)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "secret.pdf",
            encrypted_pdf([["text"]], "password"),
            "secret.pdf is encrypted; save it without a password and open that",
        ),
        (
            "scan.pdf",
            make_pdf([[]]),
            (
                "scan.pdf has one page but no text, as scans have; run text recognition (OCR) on it and open"
                " the result"
            ),
        ),
        (
            "cut.docx",
            make_docx("")[:-30],
            "cut.docx is damaged: its list of contents can't be read; make or download it again",
        ),
    ],
)
def test_documents_that_cannot_be_read_are_one_line(
    refused: Callable[..., str], tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert refused("ingest", tmp_path / name, "--json") == sentence
    assert (
        refused("trace", "--query", QUERY, "--document", tmp_path / name, "--checkpoint", "base", "--json")
        == sentence
    )


STEP_FIELDS = [
    "step",
    "chunk_id",
    "q_value",
    "probability",
    "state_value",
    "position",
    "text",
    "milliseconds",
]


def check_trace(trace: dict[str, Any], n_chunks: int, *, full: bool = False) -> None:
    """The contract's fields and what holds between them."""
    assert list(trace) == [
        "query",
        "checkpoint",
        "config",
        "n_chunks",
        "searched",
        "stop_reason",
        "stop_sentence",
        "steps",
        "stop",
        "evidence",
        "completeness",
        "answer",
        "timings",
    ]
    assert trace["n_chunks"] == n_chunks
    assert trace["stop_reason"] in ("budget", "threshold", "exhausted")
    chosen = sorted(step["chunk_id"] for step in trace["steps"])
    assert [chunk_id for chunk_id in chosen if chunk_id in trace["evidence"]] == trace["evidence"]
    assert trace["config"]["review_threshold"] is not None or trace["evidence"] == chosen
    assert [step["step"] for step in trace["steps"]] == list(range(1, len(trace["steps"]) + 1))
    assert {"step_budget", "temperature", "stop_threshold", "seed", "beam_width", "top_k_actions"} <= set(
        trace["config"]
    )
    assert all(value >= 0 for value in trace["timings"].values())
    for step in trace["steps"]:
        assert list(step) == STEP_FIELDS + (["q_values", "positions"] if full else [])
        if trace["config"]["temperature"] == 0 and trace["config"]["beam_width"] == 1:
            assert step["probability"] == 1
            assert step["q_value"] == pytest.approx(step["state_value"], abs=1e-6)
        if full:
            assert len(step["q_values"]) == n_chunks
            assert step["q_values"][step["chunk_id"]] == step["q_value"]


@pytest.mark.campaign
def test_trace_over_chunks_in_a_process_of_its_own(
    files: dict[str, Path], tiny_checkpoints: dict[str, Path]
) -> None:
    done = process(
        "trace",
        "--query",
        QUERY,
        "--chunks",
        files["chunks.json"],
        "--checkpoint",
        tiny_checkpoints["relative10"],
        "--full",
        "--json",
    )
    assert done.returncode == 0
    assert done.stderr == b""
    (line,) = done.stdout.splitlines()
    trace = json.loads(line)
    check_trace(trace, 5, full=True)
    assert (trace["query"], trace["checkpoint"], trace["stop_reason"], trace["stop"]) == (
        QUERY,
        "relative10",
        "budget",
        None,
    )
    assert [step["text"] for step in trace["steps"]] == [CHUNKS[step["chunk_id"]] for step in trace["steps"]]
    assert trace["steps"][0]["positions"] == [0.0, 2.25, 4.5, 6.75, 9.0]
    assert [step["position"] for step in trace["steps"]] == [
        step["positions"][step["chunk_id"]] for step in trace["steps"]
    ]


def test_trace_over_documents_uses_the_shipped_checkpoint(
    core: Command,
    files: dict[str, Path],
    home: Path,  # noqa: F811
) -> None:
    """The real encoder over three documents: the second call finds its vectors in the cache and gives the
    same numbers.
    """
    n_chunks = len(
        core("ingest", files["page.html"], files["story.txt"], files["road.md"], json=True, checkpoint="base")
    )
    argv = (
        "trace",
        "--query",
        "who left the harbour?",
        "--checkpoint",
        "base",
        "--json",
        "--step-budget",
        2,
        "--document",
    )
    first, again = (
        core(*argv, files["page.html"], files["story.txt"], files["road.md"])[0] for _ in range(2)
    )
    check_trace(first, n_chunks)
    assert "captain" in first["steps"][0]["text"]
    assert [step["position"] for step in first["steps"]] == [None, None]
    assert [step["q_value"] for step in first["steps"]] == [step["q_value"] for step in again["steps"]]
    assert set(first["timings"]) == {
        "loading",
        "reading",
        "chunking",
        "embedding",
        "indexing",
        "steps",
        "answer",
    }
    assert list((home / "vectors").iterdir())


@pytest.mark.campaign
@pytest.mark.usefixtures("home")
def test_documents_that_another_agent_suits_are_told(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("trace", "--query", QUERY, "--json", "--step-budget", 1, "--document")
    told = "would take general (--checkpoint general)"
    assert main(argv(*asked, files["road.md"])) == 0
    assert told in capsys.readouterr().err
    story = files["story.txt"].with_name("facts.txt")
    names, places = ("Mary", "John", "Daniel"), ("garden", "hallway", "kitchen")
    story.write_text(" ".join(f"{name} went to the {place}." for name in names for place in places))
    assert main(argv(*asked, story)) == 0
    assert told not in capsys.readouterr().err
    assert main(argv(*asked, files["road.md"], "--checkpoint", "base")) == 0
    assert told not in capsys.readouterr().err


def test_golden_episodes_through_the_command_line(core: Command, reference: Path, tmp_path: Path) -> None:
    """Two of those that `qrag/test_reference.py` runs, with an agent that the command line imported: same
    choices, positions and Q within 1e-5.
    """
    name, budget = "relative10", 2
    golden = [
        e
        for e in json.loads((reference / "episodes.json").read_text())
        if (e["checkpoint"], e["max_steps"]) == (name, budget)
    ]
    assert (
        core(
            "import-checkpoint",
            reference / "checkpoints" / name,
            tmp_path / name,
            base=reference / "tiny-bert",
        )
        == []
    )
    lines = [
        json.dumps(
            {"id": episode["id"], "query": episode["question"], "chunks": episode["chunks"], "support": [0]}
        )
        for episode in golden
    ]
    (tmp_path / "episodes.jsonl").write_text("\n".join(lines) + "\n")
    traces = core(
        "trace",
        episodes=tmp_path / "episodes.jsonl",
        checkpoint=tmp_path / name,
        step_budget=budget,
        full=True,
        json=True,
    )
    assert len(traces) == 2
    assert [trace.pop("id") for trace in traces] == [episode["id"] for episode in golden]
    for trace, episode in zip(traces, golden, strict=True):
        check_trace(trace, len(episode["chunks"]), full=True)
        assert [step["chunk_id"] for step in trace["steps"]] == [step["action"] for step in episode["steps"]]
        for step, expected in zip(trace["steps"], episode["steps"], strict=True):
            np.testing.assert_allclose(step["q_values"], expected["q_values"], atol=1e-5)
            np.testing.assert_allclose(step["positions"], expected["positions"], atol=1e-5)


@pytest.fixture
def tiny(tiny_checkpoints: dict[str, Path], files: dict[str, Path]) -> tuple[object, ...]:
    """Question, chunks and checkpoint of most traces here."""
    return (
        "--query",
        QUERY,
        "--chunks",
        files["chunks.json"],
        "--checkpoint",
        tiny_checkpoints["relative10"],
        "--json",
    )


def test_flags_lie_over_the_checkpoints_defaults(core: Command, tiny: tuple[object, ...]) -> None:
    (plain,) = core("trace", *tiny)
    assert (
        plain["config"]["step_budget"],
        plain["config"]["temperature"],
        plain["config"]["stop_threshold"],
    ) == (4, 0.0, None)
    (sampled,) = core("trace", *tiny, temperature=0.5, seed=7, top_k_actions=3, step_budget=5)
    check_trace(sampled, 5)
    assert (
        sampled["config"]["temperature"],
        sampled["config"]["seed"],
        sampled["config"]["top_k_actions"],
    ) == (0.5, 7, 3)
    assert len(sampled["steps"]) == 5
    assert min(step["probability"] for step in sampled["steps"][:3]) < 1
    (same,) = core("trace", *tiny, temperature=0.5, seed=7, top_k_actions="none", stop_threshold="none")
    assert (same["config"]["top_k_actions"], same["config"]["stop_threshold"]) == (None, None)


def test_threshold_and_what_it_rejected(core: Command, tiny: tuple[object, ...]) -> None:
    (stopped,) = core("trace", *tiny, "--stop-threshold", 1000)
    assert (stopped["stop_reason"], stopped["steps"], stopped["evidence"]) == ("threshold", [], [])
    assert stopped["stop_sentence"].startswith("Nothing left is worth 1000.00: best Q is ")
    (free,) = core("trace", *tiny, "--stop-threshold", "none")
    assert stopped["stop"] == {
        "chunk_id": free["steps"][0]["chunk_id"],
        "q_value": free["steps"][0]["q_value"],
    }
    assert core("trace", *tiny, "--stop-threshold", "-1000")[0]["evidence"] == free["evidence"]


def test_a_beam_prints_its_best_path(core: Command, tiny: tuple[object, ...]) -> None:
    (planned,) = core("trace", *tiny, "--beam-width", 8, "--step-budget", 3, "--full")
    check_trace(planned, 5, full=True)
    assert len(planned["steps"]) == 3


def test_a_default_budget_shrinks_to_a_short_document(
    core: Command, tiny_checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "short.json").write_text('["mary went home ."]')
    (trace,) = core(
        "trace", query=QUERY, chunks=tmp_path / "short.json", checkpoint=tiny_checkpoints["none"], json=True
    )
    assert (trace["config"]["step_budget"], trace["evidence"], trace["stop_reason"]) == (1, [0], "budget")


def test_episodes_do_not_depend_on_their_batch(
    core: Command, tiny_checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    """Sampled, 40 of them (three batches) and each alone; ids come back as they were given, numbers as
    numbers.
    """
    lines = [
        {"id": i if i % 2 else f"e{i}", "query": f"{QUERY} {i}", "chunks": CHUNKS[: 2 + i % 4]}
        for i in range(40)
    ]
    options = (
        "--checkpoint",
        tiny_checkpoints["absolute"],
        "--temperature",
        2,
        "--seed",
        5,
        "--step-budget",
        2,
        "--json",
    )

    def run(command: str, episodes: list[dict[str, Any]], *more: object) -> list[Any]:
        (tmp_path / "some.jsonl").write_text("\n".join(map(json.dumps, episodes)))
        return core(command, "--episodes", tmp_path / "some.jsonl", *options, *more)

    together = run("trace", lines)
    assert [trace["id"] for trace in together] == [line["id"] for line in lines]
    chosen = {trace["id"]: [step["chunk_id"] for step in trace["steps"]] for trace in together}
    assert len({tuple(ids) for ids in chosen.values()}) > 1
    for line in lines[::13]:
        assert [step["chunk_id"] for step in run("trace", [line])[0]["steps"]] == chosen[line["id"]]
        compared = run("compare", [line], "--methods", "qrag")[0]
        assert compared["id"] == line["id"]
        assert [entry["chunk_id"] for entry in compared["methods"]["qrag"]["ranked"]] == chosen[line["id"]]


def test_compare(core: Command, tiny: tuple[object, ...]) -> None:
    methods = ["qrag", "topk", "bm25", "hybrid", "threshold", "multistep"]
    (result,) = core("compare", *tiny, "--methods", ",".join(methods), "--k", 2)
    assert list(result) == ["query", "methods"]
    assert list(result["methods"]) == methods
    for name, entry in result["methods"].items():
        assert list(entry) == ["evidence", "ranked", "answer", "answer_reliable", "n_tokens", "milliseconds"]
        assert entry["evidence"] == sorted(row["chunk_id"] for row in entry["ranked"])
        assert all(list(row) == ["chunk_id", "score"] for row in entry["ranked"])
        assert len(entry["ranked"]) <= 2 or name == "threshold"  # which keeps all that reach it
        assert entry["answer"] is None or entry["answer"]
        assert (entry["n_tokens"] > 0) == bool(entry["evidence"])
    (trace,) = core("trace", *tiny, "--step-budget", 2)
    assert [row["chunk_id"] for row in result["methods"]["qrag"]["ranked"]] == [
        step["chunk_id"] for step in trace["steps"]
    ]
    (by_words,) = core("compare", *tiny, "--methods", "bm25")
    assert set(by_words["methods"]["bm25"]["evidence"]) == {0, 4}  # the chunks that say milk


def test_runs_are_logged_listed_exported_replayed_and_deleted(
    core: Command, tiny: tuple[object, ...], tiny_checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    log, checkpoint = ("--log", tmp_path / "runs.duckdb"), ("--checkpoint", tiny_checkpoints["relative10"])
    (trace,) = core("trace", *tiny, *log, "--temperature", 0.7, "--seed", 3)
    core("compare", *tiny, *log, "--methods", "topk,bm25,qrag", "--k", 2)
    (listed,) = core("runs", "list", *log, "--json")
    assert listed["total"] == 4
    assert {run["method"] for run in listed["runs"]} == {"qrag", "topk", "bm25"}
    run_id = listed["runs"][-1]["run_id"]
    (shown,) = core("runs", "show", run_id, *log, "--json")
    steps = [event for event in shown["events"] if event["event"] == "step_taken"]
    assert [step["chunk_id"] for step in steps] == [step["chunk_id"] for step in trace["steps"]]
    assert [step["q_value"] for step in steps] == [step["q_value"] for step in trace["steps"]]
    for run in listed["runs"]:
        (replay,) = core(
            "runs", "replay", run["run_id"], *log, *(checkpoint if run["checkpoint"] == "relative10" else ())
        )
        assert replay["holds"], replay["summary"]
    core("runs", "export", run_id, "--format", "json", "--to", tmp_path / "run.jsonl", *log, "--json")
    assert core("runs", "delete", run_id, *log, "--json") == [{"deleted": run_id}]
    assert core("runs", "list", *log, "--json")[0]["total"] == 3
    assert core("runs", "import", tmp_path / "run.jsonl", *log, "--json") == [{"imported": 1}]
    (replay,) = core("runs", "replay", run_id, *log, *checkpoint)
    assert replay["holds"]


def test_a_sampled_episode_of_a_batch_replays(
    core: Command, tiny_checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "e.jsonl").write_text(
        "\n".join(json.dumps({"id": f"e{i}", "query": QUERY, "chunks": CHUNKS}) for i in range(3))
    )
    options = (
        "--checkpoint",
        tiny_checkpoints["none"],
        "--temperature",
        3,
        "--seed",
        1,
        "--log",
        tmp_path / "runs.duckdb",
        "--json",
    )
    core("trace", "--episodes", tmp_path / "e.jsonl", *options)
    for run in core("runs", "list", "--log", tmp_path / "runs.duckdb", "--json")[0]["runs"]:
        (replay,) = core(
            "runs", "replay", run["run_id"], log=tmp_path / "runs.duckdb", checkpoint=tiny_checkpoints["none"]
        )
        assert replay["holds"], replay["summary"]


def test_a_run_logged_with_a_seed_above_those_of_episodes_replays(
    core: Command, tiny: tuple[object, ...], tiny_checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    """Seeds of episodes went up to 2^32 once; a run is made again from the seed that stands in its config."""
    log = ("--log", tmp_path / "runs.duckdb")
    (trace,) = core("trace", *tiny, *log, "--temperature", 3, "--seed", 2**32 - 1)
    (run,) = core("runs", "list", *log, "--json")[0]["runs"]
    (replay,) = core("runs", "replay", run["run_id"], *log, "--checkpoint", tiny_checkpoints["relative10"])
    assert (trace["config"]["seed"], replay["holds"]) == (2**32 - 1, True)


def test_log_without_a_name_is_the_default_log(core: Command, tiny: tuple[object, ...], home: Path) -> None:  # noqa: F811
    core("trace", *tiny, "--log")
    assert (home / "log.duckdb").exists()
    assert core("runs", "list", "--json")[0]["total"] == 1


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), "required: COMMAND"),
        (("fly",), "invalid choice: 'fly'"),
        (("trace",), "--json"),
        (("trace", "--json"), "--document --chunks --episodes"),
        (("trace", "--json", "--frobnicate", "--chunks", "x.json"), "--frobnicate"),
        (("trace", "--json", "--chunks", "x.json", "--episodes", "y.jsonl"), "not allowed with"),
        (("trace", "--json", "--chunks", "x.json", "--query", "q", "--temperature", "warm"), "'warm'"),
        (("trace", "--json", "--chunks", "x.json", "--query", "q", "--stop-threshold", "never"), "'never'"),
        (("trace", "--json", "--chunks", "x.json", "--query", "q", "--device", "warp"), "device 'warp'"),
        (
            ("trace", "--json", "--chunks", "x.json", "--query", "q", "--checkpoint", "nowhere"),
            "checkpoint 'nowhere' not found",
        ),
        (
            ("compare", "--json", "--chunks", "x.json", "--query", "q", "--methods", "qrag,telepathy"),
            "'telepathy' does not exist",
        ),
        (("compare", "--json", "--chunks", "x.json", "--query", "q", "--methods", ""), "'' does not exist"),
        (("ingest", "x.txt"), "--json"),
        (("ingest", "x.txt", "--json", "--chunker", "knife"), "'knife'"),
        (("ingest", "/nowhere/x.txt", "--json"), "x.txt can't be read"),
        (("ingest", "/", "--json"), "can't be read"),
        (("import-checkpoint", "/nowhere", "/tmp/never"), "/nowhere"),
        (("runs", "list", "--log", "/nowhere/log.duckdb"), "/nowhere/log.duckdb"),
        (("runs", "replay", "no-such-run", "--log", "/nowhere/log.duckdb"), "/nowhere/log.duckdb"),
    ],
)
def test_unusable_arguments(refused: Callable[..., str], argv: tuple[str, ...], words: str) -> None:
    assert words in refused(*argv)


def test_status_and_streams_of_a_process(tmp_path: Path) -> None:
    """What a shell sees: 2, nothing on stdout, one line on stderr. The command is one that needs no model."""
    done = process("runs", "show", "x", "--log", tmp_path / "none.duckdb", "--json")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().count("\n") == 1
    assert "none.duckdb" in done.stderr.decode()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--step-budget", 6), "step budget 6 is above 5, the number of chunks"),
        (("--step-budget", 0), "step budget 0"),
        (("--step-budget", "ten"), "'ten'"),
        (("--temperature", "nan"), "temperature nan"),
        (("--temperature", "-1"), "temperature -1.0"),
        (("--temperature", "inf"), "temperature inf"),
        (("--stop-threshold", "nan"), "stop threshold nan"),
        (("--stop-threshold", "inf"), "stop threshold inf"),
        (("--seed", "-1"), "seed -1"),
        (("--within", "-1"), "within -1"),
        (("--within", "nan"), "within nan"),
        (("--beam-width", 0), "beam width 0"),
        (("--beam-width", 99), "beam width 99"),
        (("--beam-width", 2, "--temperature", 1), "a beam above 1"),
        (("--top-k-actions", 0), "top-k actions 0"),
        (("--query", ""), "question is empty"),
        (("--query", "where? " * 15_000), "104,999 characters, more than 10,000"),
        (("--query", "where \udcff"), "half a character"),
        (("--episodes", "e.jsonl"), "not allowed with"),
    ],
)
def test_unusable_values(
    refused: Callable[..., str], tiny: tuple[object, ...], flags: tuple[object, ...], words: str
) -> None:
    assert words in refused("trace", *tiny, *flags)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no valid JSON"),
        (b"[", "no valid JSON"),
        (b"[]", "JSON list of non-empty strings"),
        (b"{}", "JSON list of non-empty strings"),
        (b'["a", 1]', "JSON list of non-empty strings"),
        (b'["a", "  "]', "JSON list of non-empty strings"),
        (b"[NaN]", "JSON list of non-empty strings"),
        (b"[" * 100_000, "no valid JSON"),
        (b'["\\ud800"]', "no valid JSON"),
        (b'["\xff"]', "no UTF-8 text"),
    ],
)
def test_unusable_chunk_files(
    refused: Callable[..., str], tiny: tuple[object, ...], tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "chunks.json").write_bytes(content)
    sentence = refused("trace", *tiny)
    assert "chunks.json" in sentence
    assert words in sentence


GOOD_LINE = json.dumps({"id": "good", "query": QUERY, "chunks": CHUNKS})


@pytest.mark.parametrize(
    ("bad_line", "words"),
    [
        ("{", "line 2 of e.jsonl is no valid JSON"),
        ("[]", 'line 2 of e.jsonl needs "id", "query" and "chunks"'),
        ('{"id": "x", "query": "q"}', '"chunks" in line 2 of e.jsonl'),
        ('{"id": "x", "query": 7, "chunks": ["a"]}', "line 2 of e.jsonl needs"),
        ('{"id": null, "query": "q", "chunks": ["a"]}', "line 2 of e.jsonl needs"),
        ('{"id": "x", "query": "q", "chunks": []}', '"chunks" in line 2 of e.jsonl'),
        ('{"id": "x", "query": " ", "chunks": ["a"]}', "question is empty"),
    ],
)
def test_unusable_episodes_are_told_before_anything_runs(
    refused: Callable[..., str], tiny_checkpoints: dict[str, Path], tmp_path: Path, bad_line: str, words: str
) -> None:
    (tmp_path / "e.jsonl").write_text(f"{GOOD_LINE}\n{bad_line}\n")
    assert words in refused(
        "trace", episodes=tmp_path / "e.jsonl", checkpoint=tiny_checkpoints["none"], json=True
    )


def test_a_file_without_episodes(
    refused: Callable[..., str], tiny_checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "e.jsonl").write_text("\n\n")
    assert "holds no episode" in refused(
        "trace", episodes=tmp_path / "e.jsonl", checkpoint=tiny_checkpoints["none"], json=True
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "is empty"), (b"\x00\x01\x02\xff" * 300, "notes.txt"), (b" \n\t", "has no text")],
)
def test_unusable_documents(refused: Callable[..., str], tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "notes.txt").write_bytes(content)
    for words_of_command in (
        ("ingest", tmp_path / "notes.txt", "--json"),
        ("trace", "--query", "q", "--document", tmp_path / "notes.txt", "--checkpoint", "base", "--json"),
    ):
        assert words in refused(*words_of_command)


def test_ingest_bounds(refused: Callable[..., str], files: dict[str, Path]) -> None:
    assert "max tokens 3 is below 8" in refused("ingest", files["story.txt"], "--json", "--max-tokens", 3)
    assert "max tokens 9999 is above 254" in refused(
        "ingest", files["story.txt"], json=True, max_tokens=9999, checkpoint="base"
    )
    assert "--text prints one document and got 2" in refused(
        "ingest", files["story.txt"], files["road.md"], text=True
    )
