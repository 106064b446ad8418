"""The command line as others call it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.cli import main
from tests.conftest import ROOT
from tests.core.cli.conftest import Output, argv
from tests.core.ingest.made import encrypted_pdf, make_docx, make_zip, paragraph

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
GOOD_LINE = json.dumps({"id": "good", "query": QUERY, "chunks": CHUNKS})


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    contents = {"page.html": PAGE, "road.md": MARKDOWN, "story.txt": TEXT, "chunks.json": json.dumps(CHUNKS)}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content.encode())
    return {name: tmp_path / name for name in contents}


Command = Callable[..., list[Any]]


@pytest.fixture
def core(core: Output) -> Command:
    """`core("trace", ...)`: the JSON values a command prints, one a line. Fails on another exit status than
    0.
    """
    return lambda *parts, **flags: [json.loads(line) for line in core(*parts, **flags).splitlines()]


def process(*argv: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
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


def test_how_a_file_is_read_can_be_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    page.write_bytes("<nav>Zażółć</nav><p>Wieża stoi, śpi.".encode("cp1250"))
    assert main(["ingest", str(page), "--text", "--encoding", "cp1250", "--keep-side-matter"]) == 0
    assert capsys.readouterr() == ("Zażółć\n\nWieża stoi, śpi.", "")


def test_ingest_says_the_json_ld_of_a_page_once(core: Command, tmp_path: Path) -> None:
    block = '<script type="application/ld+json">{"@type": "Recipe", "name": "</scr\\u0069pt>"}</script>'
    pages = [tmp_path / "soup.html", tmp_path / "plain.html"]
    for page, head in zip(pages, (block, ""), strict=True):
        page.write_text(f"{head}<h1>Soup</h1><p>Boil it.</p><h2>Salt</h2><p>Add it.</p>", encoding="utf-8")
    first, *others = core("ingest", *pages, "--json")
    assert first["json_ld"] == [{"@type": "Recipe", "name": "</script>"}]
    assert {chunk["document"] for chunk in others} == {"soup.html", "plain.html"}
    assert not any("json_ld" in chunk for chunk in others)


def test_chunks_of_all_documents_are_slices_numbered_on(
    core: Command, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("page.html", "story.txt", "road.md")
    chunks = core("ingest", *(files[name] for name in names), "--json", "--max-tokens", 40)
    assert [chunk["chunk_id"] for chunk in chunks] == list(range(len(chunks)))
    for name, kinds in zip(
        names, ({"text", "table", "list"}, {"text"}, {"text", "table", "list"}), strict=True
    ):
        own = [chunk for chunk in chunks if chunk["document"] == name]
        assert {chunk["type"] for chunk in own} == kinds
        assert main(["ingest", str(files[name]), "--text"]) == 0
        text = capsys.readouterr().out
        for chunk in own:
            assert list(chunk) == CHUNK_FIELDS
            assert text[chunk["start"] : chunk["end"]] == chunk["text"]
            assert 0 < chunk["n_tokens"] <= 40
            assert all(isinstance(heading, str) for heading in chunk["heading_path"])


def test_documents_of_an_archive_are_ingested_and_searched_as_one_list(
    core: Command, tmp_path: Path, tiny_checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    letter = make_docx(paragraph("Harbour", "Heading1") + paragraph("The ship left."), "A letter")
    (tmp_path / "letter.docx").write_bytes(letter)
    (tmp_path / "all.zip").write_bytes(make_zip({"b/letter.docx": letter, "notes.txt": "The sea is wide."}))
    chunks = core("ingest", tmp_path / "all.zip", json=True)
    assert [(chunk["document"], chunk["text"]) for chunk in chunks] == [
        ("all.zip/b/letter.docx", "# Harbour\n\nThe ship left."),
        ("all.zip/notes.txt", "The sea is wide."),
    ]
    assert chunks[0]["heading_path"] == ["Harbour"]
    assert main(["ingest", str(tmp_path / "letter.docx"), "--text"]) == 0
    out, err = capsys.readouterr()
    assert out == "# Harbour\n\nThe ship left."
    assert err == ""
    texts = tmp_path / "texts.zip"
    texts.write_bytes(make_zip({"b/letter.txt": "The ship left.", "notes.txt": "The sea is wide."}))
    checkpoint = tiny_checkpoints["none"]
    (trace,) = core("trace", query=QUERY, document=texts, checkpoint=checkpoint, json=True)
    check_trace(trace, 2, several=True)


CHUNK_FIELDS = ["document", "chunk_id", "type", "heading_path", "text", "start", "end", "n_tokens"]

STEP_FIELDS = [
    *("step", "chunk_id", "q_value", "probability", "state_value", "position", "text", "milliseconds"),
]


TRACE_FIELDS = [
    *("query", "checkpoint", "config", "n_chunks", "searched", "stop_reason", "stop_sentence"),
    *("steps", "stop", "evidence", "completeness", "answer", "timings"),
]


def check_trace(trace: dict[str, Any], n_chunks: int, *, full: bool = False, several: bool = False) -> None:
    """The contract's fields and what holds between them."""
    assert list(trace) == TRACE_FIELDS + (["documents"] if several else [])
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


def test_trace_over_documents(
    core: Command, files: dict[str, Path], home: Path, tiny_checkpoints: dict[str, Path]
) -> None:
    """The second call finds its vectors in the cache and gives the same numbers."""
    documents = (files["page.html"], files["story.txt"], files["road.md"])
    checkpoint = ("--checkpoint", tiny_checkpoints["none"], "--json")
    n_chunks = len(core("ingest", *documents, *checkpoint))
    asked = ("trace", "--query", "who left the harbour?", *checkpoint, "--step-budget", 2, "--document")
    first, again = (core(*asked, *documents)[0] for _ in range(2))
    check_trace(first, n_chunks, several=True)
    assert [step["position"] for step in first["steps"]] == [None, None]
    assert [step["q_value"] for step in first["steps"]] == [step["q_value"] for step in again["steps"]]
    stages = {"loading", "reading", "chunking", "embedding", "indexing", "steps", "answer"}
    assert set(first["timings"]) == stages
    assert list((home / "vectors").iterdir())


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
    source = reference / "checkpoints" / name
    assert core("import-checkpoint", source, tmp_path / name, base=reference / "tiny-bert") == []
    file = tmp_path / "episodes.jsonl"
    file.write_text(
        "".join(
            json.dumps({"id": e["id"], "query": e["question"], "chunks": e["chunks"], "support": [0]}) + "\n"
            for e in golden
        )
    )
    traces = core(
        "trace", episodes=file, checkpoint=tmp_path / name, step_budget=budget, full=True, json=True
    )
    assert [trace.pop("id") for trace in traces] == [episode["id"] for episode in golden]
    assert len(traces) == 2
    for trace, episode in zip(traces, golden, strict=True):
        check_trace(trace, len(episode["chunks"]), full=True)
        assert [step["chunk_id"] for step in trace["steps"]] == [step["action"] for step in episode["steps"]]
        for step, expected in zip(trace["steps"], episode["steps"], strict=True):
            assert step["text"] == episode["chunks"][step["chunk_id"]]
            assert step["position"] == step["positions"][step["chunk_id"]]
            np.testing.assert_allclose(step["q_values"], expected["q_values"], atol=1e-5)
            np.testing.assert_allclose(step["positions"], expected["positions"], atol=1e-5)


@pytest.fixture
def tiny(tiny_checkpoints: dict[str, Path], files: dict[str, Path]) -> tuple[object, ...]:
    """Question, chunks and checkpoint of most traces here."""
    checkpoint = ("--checkpoint", tiny_checkpoints["relative10"])
    return ("--query", QUERY, "--chunks", files["chunks.json"], *checkpoint, "--json")


def test_flags_lie_over_the_checkpoints_defaults(core: Command, tiny: tuple[object, ...]) -> None:
    (plain,) = core("trace", *tiny)
    config = plain["config"]
    assert (config["step_budget"], config["temperature"], config["stop_threshold"]) == (4, 0.0, None)
    (sampled,) = core("trace", *tiny, temperature=0.5, seed=7, top_k_actions=3, step_budget=5)
    check_trace(sampled, 5)
    config = sampled["config"]
    assert (config["temperature"], config["seed"], config["top_k_actions"]) == (0.5, 7, 3)
    assert len(sampled["steps"]) == 5
    assert min(step["probability"] for step in sampled["steps"][:3]) < 1
    (same,) = core("trace", *tiny, temperature=0.5, seed=7, top_k_actions="none", stop_threshold="none")
    assert (same["config"]["top_k_actions"], same["config"]["stop_threshold"]) == (None, None)
    (planned,) = core("trace", *tiny, beam_width=8, step_budget=3, full=True)
    check_trace(planned, 5, full=True)
    assert len(planned["steps"]) == 3


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_threshold_and_what_it_rejected(core: Command, tiny: tuple[object, ...]) -> None:
    (stopped,) = core("trace", *tiny, "--stop-threshold", 1000)
    assert (stopped["stop_reason"], stopped["steps"], stopped["evidence"]) == ("threshold", [], [])
    assert stopped["stop_sentence"].startswith("Nothing left is worth 1000.00: best Q is ")
    (free,) = core("trace", *tiny, "--stop-threshold", "none")
    assert stopped["stop"].items() <= free["steps"][0].items()
    for low in ("-1000", "-1e300"):
        assert core("trace", *tiny, "--stop-threshold", low)[0]["evidence"] == free["evidence"]


def test_a_question_longer_than_the_agent_reads_is_told(
    files: dict[str, Path], tiny_checkpoints: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    named = {"chunks": files["chunks.json"], "checkpoint": tiny_checkpoints["relative10"], "json": True}
    for n, told in ((70, 1), (3, 0)):
        assert main(argv("trace", query="where " * n, **named)) == 0
        assert capsys.readouterr().err.count("of 70 tokens. Ask in fewer words.") == told


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
    file = tmp_path / "some.jsonl"
    sampled = {"temperature": 2, "seed": 5, "step_budget": 2, "checkpoint": tiny_checkpoints["absolute"]}

    def run(command: str, episodes: list[dict[str, Any]], **more: object) -> list[Any]:
        file.write_text("\n".join(map(json.dumps, episodes)))
        return core(command, episodes=file, json=True, **sampled, **more)

    together = run("trace", lines)
    assert [trace["id"] for trace in together] == [line["id"] for line in lines]
    chosen = {trace["id"]: [step["chunk_id"] for step in trace["steps"]] for trace in together}
    assert len({tuple(ids) for ids in chosen.values()}) > 1
    for line in lines[3::17]:  # one of each batch
        assert [step["chunk_id"] for step in run("trace", [line])[0]["steps"]] == chosen[line["id"]]
        compared = run("compare", [line], methods="qrag")[0]
        assert compared["id"] == line["id"]
        assert [entry["chunk_id"] for entry in compared["methods"]["qrag"]["ranked"]] == chosen[line["id"]]


def test_compare(core: Command, tiny: tuple[object, ...]) -> None:
    methods = ["qrag", "topk", "bm25", "hybrid", "threshold", "multistep"]
    (result,) = core("compare", *tiny, "--methods", ",".join(methods), "--k", 2)
    assert list(result) == ["query", "methods"]
    assert list(result["methods"]) == methods
    for name, entry in result["methods"].items():
        assert list(entry) == [
            "evidence",
            "ranked",
            "answer",
            "answer_state",
            "answer_reliable",
            "n_tokens",
            "milliseconds",
        ]
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
    (tmp_path / "e.jsonl").write_text(f'{GOOD_LINE[:-1]}, "support": [0], "answers": ["Mary"]}}')
    sampled = ("--temperature", 3, "--seed", 1, "--json")
    core("trace", "--episodes", tmp_path / "e.jsonl", *checkpoint, *log, *sampled)
    (listed,) = core("runs", "list", *log, "--json")
    assert listed["total"] == 5
    known = {(run["n_support"], run["known_answer"]) for run in listed["runs"]}
    assert known == {(None, ""), (1, "Mary")}
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
    assert core("runs", "list", *log, "--json")[0]["total"] == 4
    assert core("runs", "import", tmp_path / "run.jsonl", *log, "--json") == [{"imported": 1}]
    (replay,) = core("runs", "replay", run_id, *log, *checkpoint)
    assert replay["holds"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), "required: COMMAND"),
        (("fly",), "invalid choice: 'fly'"),
        (("trace", "--json"), "--document --chunks --episodes"),
        (
            ("trace", "--json", "--frobnicate", "--chunks", "x.json"),
            "unrecognized arguments: --frobnicate; see python -m core trace --help",
        ),
        (("runs", "list", "--frobnicate"), "--frobnicate; see python -m core runs list --help"),
        (
            ("trace", "--json", "--chunks", "x.json", "--query", "q", "--k", "3"),
            "unrecognized arguments: --k 3",
        ),
        (("trace", "--json", "--chunks", "x.json", "--episodes", "y.jsonl"), "not allowed with"),
        (("trace", "--json", "--chunks", "x.json", "--query", "q", "--temperature", "warm"), "'warm'"),
        (("trace", "--json", "--chunks", "x.json", "--query", "q", "--device", "warp"), "device 'warp'"),
        (
            ("trace", "--json", "--chunks", "x.json", "--query", "q", "--checkpoint", "nowhere"),
            "checkpoint 'nowhere' not found",
        ),
        (
            ("compare", "--json", "--chunks", "x.json", "--query", "q", "--methods", "qrag,telepathy"),
            "'telepathy' does not exist",
        ),
        (("ingest", "x.txt", "--json", "--chunker", "knife"), "'knife'"),
        (("ingest", "/nowhere/x.txt", "--json"), "x.txt can't be read"),
        (("embed-corpus", "", "--out", "/proc/x"), "'' must be a path"),
        (("import-checkpoint", "/nowhere", "/tmp/never"), "/nowhere"),
        (("runs", "list", "--log", "/nowhere/log.duckdb"), "/nowhere/log.duckdb"),
    ],
)
def test_unusable_arguments(refused: Output, argv: tuple[str, ...], words: str) -> None:
    assert words in refused(*argv)


def test_status_and_streams_of_a_process(tmp_path: Path) -> None:
    """What a shell sees: 2, nothing on stdout, one line on stderr. The command is one that needs no model."""
    done = process("runs", "show", "x", "--log", tmp_path / "none.duckdb", "--json")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().count("\n") == 1
    assert "none.duckdb" in done.stderr.decode()


def test_an_output_that_is_full_or_closed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("It rained.", encoding="utf-8")
    command = argv("ingest", tmp_path / "a.txt", text=True)
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(command) == 2
        assert capsys.readouterr().err == (
            "the output can't be written (No space left on device); make room, or name another place\n"
        )
    monkeypatch.setattr(sys, "stdout", None)
    assert main(command) == 0


def test_names_that_no_file_can_have(refused: Output, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path, why in (
        (tmp_path / ("x" * 300), "File name too long"),
        (tmp_path / "loop", "Too many levels of symbolic links"),
    ):
        for command in (
            argv("runs", "list", log=path),
            argv("runs", "delete", "id", log=path),
            argv("embed-corpus", path, out=tmp_path / "corpus"),
            argv("study", "budget", rows=path),
            argv("study", "curves", trainings=path),
        ):
            assert refused(*command) == f"{path} can't be used ({why}); name another\n"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--step-budget", 6), "step budget 6 is above 5, the number of chunks"),
        (("--step-budget", "ten"), "'ten'"),
        (("--stop-threshold", "None"), "'None' must be a number, or none"),
        (("--temperature", "nan"), "temperature nan"),
        (("--within", "-1"), "within -1"),
        (("--within", "1e999"), "within inf"),
        (("--beam-width", 2, "--temperature", 1), "a beam above 1"),
        (("--query", ""), "question is empty"),
        (("--query", "where? " * 15_000), "104,999 characters, more than 10,000"),
        (("--query", "where \udcff"), "half a character"),
    ],
)
def test_unusable_values(
    refused: Output, tiny: tuple[object, ...], flags: tuple[object, ...], words: str
) -> None:
    assert words in refused("trace", *tiny, *flags)


def test_unusable_chunk_files(refused: Output, tiny: tuple[object, ...], tmp_path: Path) -> None:
    for content, words in (
        (b"", "no valid JSON"),
        (b"[]", "JSON list of non-empty strings"),
        (b'["a", 1]', "JSON list of non-empty strings"),
        (b'["a", "  "]', "JSON list of non-empty strings"),
        (b"[" * 100_000, "no valid JSON"),
        (b'["\\ud800"]', "no valid JSON"),
        (b'["\xff"]', "no UTF-8 text"),
    ):
        (tmp_path / "chunks.json").write_bytes(content)
        sentence = refused("trace", *tiny)
        assert "chunks.json" in sentence
        assert words in sentence


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (f"{GOOD_LINE}\n{{", "line 2 of e.jsonl is no valid JSON"),
        (f'{GOOD_LINE}\n{{"id": "x", "query": "q"}}', '"chunks" in line 2 of e.jsonl'),
        (f'{GOOD_LINE}\n{{"id": "x", "query": 7, "chunks": ["a"]}}', "line 2 of e.jsonl needs"),
        (
            f'{GOOD_LINE}\n{{"id": "x", "query": " ", "chunks": ["a"]}}',
            "line 2 of e.jsonl: the question is empty",
        ),
        ("\n\n", "holds no episode"),
    ],
)
def test_unusable_episodes_are_told_before_anything_runs(
    refused: Output, tiny_checkpoints: dict[str, Path], tmp_path: Path, lines: str, words: str
) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text(lines)
    assert words in refused("trace", episodes=file, checkpoint=tiny_checkpoints["none"], json=True)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("notes.txt", b"", "is empty"),
        ("notes.txt", b"\x00\x01\x02\xff" * 300, "notes.txt"),
        ("secret.pdf", encrypted_pdf([["text"]], "password"), "secret.pdf is encrypted; save it without"),
    ],
)
def test_unusable_documents(refused: Output, tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert words in refused("ingest", tmp_path / name, json=True)


def test_a_trace_refuses_what_ingest_refuses(refused: Output, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"")
    asked = {"query": "q", "document": tmp_path / "notes.txt", "checkpoint": "base"}
    assert "is empty" in refused("trace", **asked, json=True)


def test_ingest_bounds(refused: Output, files: dict[str, Path]) -> None:
    assert "max tokens 3 is below 8" in refused("ingest", files["story.txt"], "--json", "--max-tokens", 3)
    assert "max tokens 9999 is above 254" in refused(
        "ingest", files["story.txt"], json=True, max_tokens=9999, checkpoint="base"
    )
    assert "checkpoint '' not found" in refused("ingest", files["story.txt"], json=True, checkpoint="")
    assert "--text prints one document and got 2" in refused(
        "ingest", files["story.txt"], files["road.md"], text=True
    )
