"""The order in which tests begin names tests that there are."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import LONG, LONGEST

ROOT = Path(__file__).resolve().parents[1]


def test_the_longest_tests_are_found_by_their_names() -> None:
    for test in LONGEST:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), test


def test_long_files_are_found_by_their_names() -> None:
    for path in LONG:
        assert (ROOT / path).exists(), path
