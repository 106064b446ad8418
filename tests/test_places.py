"""Where things are: what a newcomer looks for, the file where it is looked for first."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACES = {
    "the stop rule": ("core/methods/qrag/stop.py", "stop_of"),
    "a row of measurements as a line of JSON": ("core/base/rows.py", "row_line"),
    "temperature": ("core/methods/qrag/policy.py", "probabilities"),
    "rho": ("core/methods/qrag/positions.py", "chunk_positions"),
    "PDF conversion": ("core/ingest/pdf.py", "read_pdf"),
    "HTML cleaning": ("core/ingest/clean.py", "clean"),
    "BM25": ("core/corpus/bm25.py", "WordIndex"),
    "scores of chunks in shards": ("core/integrations/cluster/sharded.py", "ShardedIndex"),
    "the vector cache": ("core/encode/cache.py", "embed_chunks"),
    "the list of methods": ("core/methods/registry.py", "build_retriever"),
    "top-k": ("core/methods/topk.py", "TopK"),
    "confidence intervals": ("core/base/statistics.py", "interval"),
    "plotly figures": ("core/views/figures.py", "best_q_figure"),
    "a sentence that says why a run stopped": ("core/views/ending.py", "end_sentence"),
    "what is written down of a run": ("core/runs/again/records.py", "run_record"),
    "replay of a run": ("core/runs/again/replay.py", "replay_run"),
    "whether a replay came out the same": ("core/runs/again/compare.py", "compare_traces"),
    "a program that makes a run again": ("core/runs/again/snippets.py", "python_of"),
    "one question through several methods": ("core/runs/whatif/comparison.py", "compare"),
    "a question over a changed text": ("core/runs/whatif/variant.py", "try_out"),
    "what would have helped": ("core/runs/whatif/diagnosis.py", "diagnose"),
    "a choice without one before it": ("core/runs/whatif/influence.py", "leave_one_out"),
    "export of runs": ("core/runs/export/runs.py", "export_runs"),
    "traces for other tools": ("core/runs/log/spans.py", "spans_of"),
    "what another retriever found": ("core/runs/foreign/files.py", "read_foreign"),
    "a retriever whose calls are logged": ("core/integrations/watch.py", "watch"),
    "documents in three lines": ("core/book/book.py", "Book"),
    "the LangChain retriever": ("core/integrations/adapters/langchain.py", "QragRetriever"),
    "log migrations": ("core/runs/log/migrations.py", "migrate"),
    "the SQL sandbox": ("core/runs/log/sql.py", "query_log"),
    "the `trace` command": ("core/cli/trace.py", "run_trace"),
    "`runs list`": ("core/cli/runs.py", "list_command"),
    "what Explore draws": ("app/pages/explore/view.py", "steps"),
    "what Compare draws": ("core/views/draw/comparison.py", "columns"),
    "which methods found a chunk": ("core/views/findings.py", "found_by"),
    "what Evidence sets draws": ("app/pages/evidence/documents.py", "documents"),
    "the language model that writes a set": ("core/methods/resrag/llm/policy.py", "LlmEvidenceSet"),
    "what the reward makes of a set": ("core/methods/resrag/sets.py", "reward_terms"),
    "JSON-LD as an answer model reads it": ("core/answer/metadata.py", "metadata_json"),
    "what stands under a control": ("core/base/config.py", "help_of"),
    "what callers read of an argument": ("app/calls/arguments.py", "described"),
    "the question box of a tab": ("app/pages/widgets/asking.py", "Asking"),
    "the strip": ("app/components/strip.py", "strip"),
    "the map of the chunks": ("app/pages/explore/chunk_map.py", "ChunkMaps"),
    "where a chunk lies in the map": ("core/corpus/layout/places.py", "places_of"),
    "child processes": ("core/base/child.py", "start_child"),
    "how scripts are put together": ("core/views/draw/scripts.py", "bundled"),
    "the page of a run that stands alone": ("core/runs/export/page.py", "run_page"),
    "the page of a comparison": ("core/runs/export/comparison_page.py", "comparison_page"),
    "the story line": ("core/views/draw/story.py", "story_nodes"),
    "evidence in its place": ("core/views/draw/evidence.py", "evidence_rows"),
    "the agents on offer": ("app/services/agents.py", "Agents"),
    "what is open in memory": ("app/services/library.py", "Library"),
    "quotas of visitors": ("app/services/visitors.py", "Allowance"),
}


def test_things_are_where_they_are_looked_for() -> None:
    for file, name in PLACES.values():
        body = ast.parse((ROOT / file).read_text(encoding="utf-8")).body
        assert name in {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}, name


def test_a_method_is_named_where_it_is_defined() -> None:
    """Its facts stand there, and whoever lists methods takes them from `core.methods.registry`."""
    files = [path for folder in ("core", "app") for path in (ROOT / folder).rglob("*.py")]
    naming = {path for path in files if "multistep" in path.read_text(encoding="utf-8")}
    assert naming == {ROOT / "core" / "methods" / "qrag" / "retriever.py"}


def test_every_page_has_the_same_files() -> None:
    pages = {path.parent for path in (ROOT / "app" / "pages").glob("*/*.py")}
    assert len(pages) > 7, "the widgets are none"
    for page in sorted(pages - {ROOT / "app" / "pages" / "widgets"}):
        missing = {"tab.py", "layout.py", "view.py"} - {path.name for path in page.iterdir()}
        assert not missing, f"{page.name} lacks {sorted(missing)}"
