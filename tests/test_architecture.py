"""The rules about how the code hangs together, read off the source with ast."""

from __future__ import annotations

import ast
import gc
import os
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from core.methods.registry import METHODS

ROOT = Path(__file__).resolve().parents[1]

ROOMS = (
    "base",
    "ingest",
    "encode",
    "corpus",
    "llm",
    "answer",
    "methods",
    "views",
    "runs",
    "integrations",
    "lab",
    "book",
    "cli",
)
"""Folders of core from left to right. A room imports nothing but what lies to its left."""

UNPICKLING = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
"""Modules that must not be called; naming their exceptions is fine."""

LARGEST_FILE = 6_000_000
"""Bytes."""

SHARED_CLASSES = {"QragRetriever"}
"""What every framework's adapter calls its retriever."""


@pytest.fixture(scope="module", autouse=True)
def trees() -> Iterator[None]:
    """Kept for the file: millions of nodes, in none of which the collector finds anything."""
    gc.disable()
    yield
    parsed.cache_clear()
    nodes.cache_clear()
    gc.enable()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of a file; ten tests look at them."""
    return tuple(ast.walk(parsed(path)))


cached_distributions = cache(packages_distributions)


def sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def imported_modules(path: Path) -> Iterator[str]:
    """Dotted names that a file imports anywhere, relative imports made absolute."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imported_roots(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported_modules(path)}


@cache
def files_by_module() -> dict[str, Path]:
    """Dotted name -> file, a package's being its `__init__.py`."""
    files = {}
    for path in sources("core", "app"):
        *folders, name = path.relative_to(ROOT).with_suffix("").parts
        files[".".join(folders if name == "__init__" else (*folders, name))] = path
    return files


@cache
def imported_files(path: Path) -> set[Path]:
    """Files of core and app that a file imports, those included that only a type checker reads."""
    files = files_by_module()
    found = set()
    for name in imported_modules(path):
        while name not in files and "." in name:  # a name in a module
            name = name.rpartition(".")[0]
        found.add(files.get(name, path))
    return found - {path}


def circle(imports: dict[str, set[str]]) -> list[str]:
    """Names that import each other in a circle, if any do."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def dotted(node: ast.expr) -> str:
    """A plain or dotted name, empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """(dotted name, call) for every call."""
    return ((dotted(node.func), node) for node in nodes(path) if isinstance(node, ast.Call))


def keyword(call: ast.Call, name: str) -> object:
    """Value of a literal keyword argument, None when it is absent or computed."""
    values = [argument.value for argument in call.keywords if argument.arg == name]
    return values[0].value if values and isinstance(values[0], ast.Constant) else None


def test_nothing_imports_a_program_that_stands_on_it() -> None:
    for path in sources("core"):
        assert not imported_roots(path) & {"gradio", "gradio_client", "app", "benchmarks", "tests"}, path
    for path in sources("app", "benchmarks"):
        modules = set(imported_modules(path))
        assert not any(name.startswith("core.cli") for name in modules), path
        if path.is_relative_to(ROOT / "app"):
            assert not {name.partition(".")[0] for name in modules} & {"benchmarks", "tests"}, path


def test_a_room_imports_what_lies_to_its_left() -> None:
    core = ROOT / "core"
    rooms = {path.name for path in core.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == set(ROOMS)
    for path in (path for room in ROOMS for path in sources(f"core/{room}")):
        rank = ROOMS.index(path.relative_to(core).parts[0])
        for target in imported_files(path):
            room = target.relative_to(core).parts[0]
            assert room in ROOMS[: rank + 1], f"{path} imports {target}, which lies to its right"


def test_no_files_import_each_other() -> None:
    names = {path: path.relative_to(ROOT).as_posix() for path in sources("core", "app")}
    assert circle({names[path]: {names[file] for file in imported_files(path)} for path in names}) == []


@pytest.mark.parametrize("top", ["core", "app"])
def test_no_folders_import_each_other(top: str) -> None:
    """Nor does a folder and a file beside it."""
    folders = {parent for path in sources(top) for parent in path.parents}
    for folder in (folder for folder in folders if folder.is_relative_to(ROOT / top)):
        inside = [path for path in sources(top) if path.is_relative_to(folder)]
        imports: dict[str, set[str]] = defaultdict(set)
        for path in inside:
            child = path.relative_to(folder).parts[0]
            others = {file.relative_to(folder).parts[0] for file in imported_files(path) & set(inside)}
            imports[child] |= others - {child}
        assert circle(imports) == [], folder


def test_a_view_takes_nothing_from_another_page_s_view() -> None:
    pages = ROOT / "app" / "pages"
    for path in (path for path in sources("app/pages") if path.name not in ("tab.py", "layout.py")):
        own = ("widgets", path.relative_to(pages).parts[0])
        for name in (name for name in imported_modules(path) if name.startswith("app.pages.")):
            _, _, page, *parts = name.split(".")
            assert page in own or not {"view", "tab", "layout"} & set(parts), f"{path} takes {name}"


def test_a_run_s_method_is_compared_with_a_method_not_with_words() -> None:
    for path in sources("core", "app"):
        for node in nodes(path):
            if isinstance(node, ast.Compare) and dotted(node.left).endswith(("method", "kind", "key")):
                words = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
                assert not words & METHODS.keys(), f"{path}:{node.lineno}"


def test_no_class_name_stands_twice() -> None:
    homes = defaultdict(list)
    for path in sources("core", "app"):
        for node in nodes(path):
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
    extras = ("cluster", "constrained", "haystack", "langchain", "llama-index", "ocr", "tune") * (
        folder == "core"
    )
    lines = [*PROJECT["dependencies"], *(line for extra in ("cpu", *extras) for line in EXTRAS[extra])]
    names = {Requirement(line).name for line in lines}
    for path in sources(folder):
        for root in imported_roots(path) & distributions.keys():
            providers = {
                provider.lower().replace("_", "-").replace("faiss-gpu", "faiss-cpu")
                for provider in distributions[root]
            } - {PROJECT["name"]}
            assert not providers or providers & names, f"{path} imports {root}, which pyproject.toml lacks"
