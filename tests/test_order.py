"""The order in which tests begin names files that there are."""

from __future__ import annotations

from tests.conftest import LONG, ROOT


def test_long_files_are_found_by_their_names() -> None:
    for path in LONG:
        assert (ROOT / path).exists(), path
