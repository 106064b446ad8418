"""The rules about how the code hangs together, read off the source with ast: who may import whom, what may
not be called, how large files are.
"""

from __future__ import annotations

import ast
import os
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]

FLOW = (
    {"errors", "home", "later", "child", "batches", "tiles"},
    {"config"},
    {"types", "events"},
    {"ingest", "encode", "bm25", "prose", "layout"},
    {"index"},
    {"opening"},
    {"methods"},
    {"qrag", "resrag"},
    {"tasks"},
    {"metrics", "statistics", "evaluate"},
    {"train", "answer", "llm", "sparc", "resrag_llm", "completeness"},
    {"retrievers", "choice"},
    {"ending"},
    {"studies"},
    {"figures", "svg", "trail", "findings"},
    {"story"},
    {"sparc_story"},
    {"draw", "log"},
    {"export"},
    {"report", "frontier", "row_answers", "tune", "hub", "marked"},
    {"whatif", "again"},
    {"document_evaluation", "cluster"},
    {"cli", "__main__", "adapters"},
)
"""Parts of core from left to right. A part may import everything to the left of it, and its neighbours in one
set where `IMPORT_NEIGHBOURS` says so.
"""

IMPORT_NEIGHBOURS = {
    "home",
    "completeness",
    "evaluate",
    "answer",
    "resrag_llm",
    "sparc",
    "train",
    "svg",
    "__main__",
}
"""Parts that import a neighbour. Among the others of a set none imports another."""

RANK = {part: rank for rank, parts in enumerate(FLOW) for part in parts}

UNPICKLING = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
"""Modules that must not be called; naming their exceptions is fine."""

LARGEST_FILE = 6_000_000
"""Bytes."""

SHARED_CLASSES = {"QragRetriever"}
"""What every framework's adapter calls its retriever."""


@cache
def parsed(path: Path) -> ast.Module:
    """Ten tests look at the same files."""
    return ast.parse(path.read_text(encoding="utf-8"))


cached_distributions = cache(packages_distributions)


def sources(*folders: str) -> list[Path]:
    """All Python files under some top-level folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def imported_modules(path: Path) -> Iterator[str]:
    """Dotted names that a file imports anywhere, relative imports made absolute."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imported_roots(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported_modules(path)}


def part_of(path: Path) -> str:
    """The part of core that a file belongs to: `core/ingest/html.py` -> `ingest`."""
    return path.relative_to(ROOT / "core").with_suffix("").parts[0]


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """(dotted name, call) for every call of a plain or dotted name."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield ast.unparse(node.func), node


def keyword(call: ast.Call, name: str) -> object:
    """Value of a literal keyword argument, None when it is absent or computed."""
    values = [argument.value for argument in call.keywords if argument.arg == name]
    return values[0].value if values and isinstance(values[0], ast.Constant) else None


def test_core_imports_neither_gradio_nor_the_app() -> None:
    for path in sources("core"):
        assert not imported_roots(path) & {"gradio", "gradio_client", "app", "benchmarks"}, path


def test_core_imports_follow_the_flow() -> None:
    parts = {part_of(path) for path in sources("core")}
    assert RANK.keys() <= parts, f"{RANK.keys() - parts} are no parts of core; take them out of FLOW"
    for path in sources("core"):
        part = part_of(path)
        if part == "__init__":
            continue
        assert part in RANK, f"core/{part} has no place in FLOW; give it one"
        targets = {name.split(".")[1] for name in imported_modules(path) if name.startswith("core.")}
        allowed = RANK[part] if part in IMPORT_NEIGHBOURS else RANK[part] - 1
        backwards = {target for target in targets - {part} if RANK.get(target, len(FLOW)) > allowed}
        assert not backwards, f"{path} imports {backwards}, which lies to its right"


def test_no_class_name_stands_twice() -> None:
    homes = defaultdict(list)
    for path in sources("core", "app"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(path.relative_to(ROOT).as_posix())
    shared = {name: paths for name, paths in homes.items() if len(paths) > 1}
    clashes = {name: paths for name, paths in shared.items() if name not in SHARED_CLASSES}
    assert not clashes, f"one of each needs another name: {clashes}"
    assert all(path.startswith("core/integrations/adapters/") for name in shared for path in shared[name]), (
        shared
    )


def test_modules_begin_with_a_short_line() -> None:
    for path in sources("core", "app"):
        words = ast.get_docstring(parsed(path)) or ""
        first = words.partition("\n\n")[0]
        assert 0 < len(first.split()) <= 12, f"{path} begins with more than 12 words, shorten it: {first}"
        assert "nows nothing of" not in words, f"{path}: say it with a test here"


def test_entry_is_trivial() -> None:
    assert len((ROOT / "app.py").read_text(encoding="utf-8").splitlines()) < 40


def test_nothing_unpickles_or_evaluates() -> None:
    for path in sources("core", "app"):
        from_imports = {
            name for name in imported_modules(path) if name.partition(".")[0] in UNPICKLING and "." in name
        }
        assert not from_imports, f"{path}: import the module, so that calls of it can be seen here"
        for name, call in calls(path):
            where = f"{path}:{call.lineno}"
            assert name.partition(".")[0] not in UNPICKLING, where
            assert name not in {"eval", "exec", "yaml.load", "yaml.unsafe_load"}, where
            assert name != "torch.load" or keyword(call, "weights_only") is True, where
            assert keyword(call, "allow_pickle") is not True, where
            assert keyword(call, "trust_remote_code") is not True, where
            assert keyword(call, "shell") is not True, where


def test_no_large_files() -> None:
    built = {"__pycache__", "artifacts"}
    folders = ("app", "assets", "benchmarks", "core", "sample_docs", "tests")
    for folder, subfolders, names in (step for top in folders for step in os.walk(ROOT / top)):
        subfolders[:] = [name for name in subfolders if name not in built]
        for path in (Path(folder, name) for name in names):
            assert path.stat().st_size <= LARGEST_FILE, path


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]


def test_a_space_installs_what_the_project_needs() -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    needed = [*PROJECT["dependencies"], *EXTRAS["gpu"]]
    assert [line for line in lines if not line.startswith("#")] == needed, "run make requirements"


@pytest.mark.parametrize("folder", ["core", "app"])
def test_every_imported_library_is_listed(folder: str) -> None:
    distributions = cached_distributions()
    extras = ("cluster", "constrained", "haystack", "langchain", "llama-index", "tune") * (folder == "core")
    lines = [*PROJECT["dependencies"], *(line for extra in ("cpu", *extras) for line in EXTRAS[extra])]
    names = {Requirement(line).name for line in lines}
    for path in sources(folder):
        for root in imported_roots(path) & distributions.keys():
            providers = {
                provider.lower().replace("_", "-").replace("faiss-gpu", "faiss-cpu")
                for provider in distributions[root]
            } - {PROJECT["name"]}
            assert not providers or providers & names, f"{path} imports {root}, which pyproject.toml lacks"
