"""A clone needs nothing beside it: no line names a place outside of the repository.

`.ci/run` shows it by running every test in such a clone. This says at once which line would break that.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTHON = [path for folder in ("app", "benchmarks", "core", "tests") for path in (ROOT / folder).rglob("*.py")]
OTHERS = [ROOT / "Makefile", ROOT / "Dockerfile", *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]

WRAPPED = re.compile(r"\s*\n\s*(?=[.)\]])")
"""Where a chain of calls goes on in the next line."""
FROM_HERE = re.compile(r"__file__[\w.()\[\]]*")
"""A module's own path, and what is made of it."""
UP = re.compile(r"\.parents\[(?P<index>\d+)\]|(?P<any>\.parents\b)|\.parent\b")
OUTSIDE = (
    re.compile(r"\b[A-Z][A-Z_]+\.parents?\b"),  # above a folder with a name, such as the repository's
    re.compile(r"""(?:/|joinpath\(|Path\(|open\()\s*[a-z]*["'](?:[^"'\n]*/)?\.\.[/"']"""),
    re.compile(r"dirname\([^\n]*__file__"),  # pathlib says it so that it can be counted
    re.compile(r"""["']/(?:home|media|mnt|opt|root|srv|Users)/"""),  # on somebody's machine
    re.compile(r"\bshared\W{1,5}data\b"),  # beside the repository, as it once was
)


def leading_out(source: str, depth: int) -> list[str]:
    """What leads out of the repository in the source of a module `depth` folders below its root."""
    source = WRAPPED.sub("", source)
    here = [match[0] for match in FROM_HERE.finditer(source) if steps_up(match[0]) > depth + 1]
    return here + [match[0] for pattern in OUTSIDE for match in pattern.finditer(source)]


def steps_up(path: str) -> int:
    """How many folders up an expression goes at most."""
    return sum(
        1_000 if step["any"] else int(step["index"]) + 1 if step["index"] else 1 for step in UP.finditer(path)
    )


@pytest.mark.parametrize(
    "line",
    [
        'Path(os.environ.get("QRAG_DATA", Path(__file__).resolve().parents[2] / "../somewhere"))',
        'Path(os.environ.get("QRAG_DATA") or ROOT.parent / "somewhere")',
        "Path(__file__)\n    .resolve()\n    .parents[3]",
        "Path(__file__).parent.parent.parent.parent",
        "os.path.dirname(os.path.dirname(__file__))",
        "[folder for folder in Path(__file__).parents if folder.name == 'somewhere']",
        "Path(__file__).parents[up]",
        "ROOT.joinpath('tests/../../somewhere')",
        "Path('..', 'somewhere')",
        "Path('/home/ada/somewhere')",
        "f'{base}/" + "shared" + "/data'",
        "base / 'shared'" + " / 'data'",
    ],
)
def test_a_line_that_leads_out_is_found(line: str) -> None:
    assert leading_out(line, depth=2)


def test_ways_within_the_repository_are_not_found() -> None:
    assert not leading_out("Path(__file__)\n.resolve()\n.parents[2] / 'data'\npath.parents[9]", depth=2)
    assert not leading_out("Path(__file__).parent / name\nclean('../../etc/passwd')", depth=0)


def test_nothing_leads_out() -> None:
    assert len(PYTHON) > 300
    for path in PYTHON:
        if path != Path(__file__).resolve():
            inside = path.relative_to(ROOT)
            assert not leading_out(path.read_text(encoding="utf-8"), len(inside.parents) - 1), inside
    for path in OTHERS:
        assert not leading_out(path.read_text(encoding="utf-8"), 0), path
