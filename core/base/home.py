"""Where this machine keeps what the library stores.

Caches and the default log, and how much of it the caches may be; what was not used for longest goes first. A
cache has parts, a folder each, so that nobody learns from their own part what others opened.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import BadRequest

if TYPE_CHECKING:
    import numpy as np

ROOT = Path(__file__).resolve().parents[2]
"""Of the repository, where what ships with it lies."""
ASSETS = ROOT / "assets"
"""Weights, scripts and styles."""
CACHES = ("chunks", "vectors", "layouts", "words", "opened")
"""Folders that can be made again from documents, and the documents that were open last."""
CACHE_GB = 20.0
"""Of all caches together, unless $QRAG_CACHE_GB says otherwise; a million chunks are 0.8 GB."""


def home() -> Path:
    """`$QRAG_HOME`, else `~/.local/share/qrag-explorer`. Created by whoever first writes into it."""
    return Path(os.environ.get("QRAG_HOME") or Path.home() / ".local" / "share" / "qrag-explorer")


def cache_folder(name: str, part: str = "") -> Path:
    """Folder of one of CACHES, or of a part of it. Created by whoever first writes into it."""
    return home() / name / part


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it. The home folder becomes its owner's alone: other accounts of the
    machine would read all texts and questions. Raises OSError.
    """
    top = home()
    if folder.absolute().is_relative_to(top.absolute()):
        top.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = top.stat()
        # a sticky folder, such as /tmp, is everybody's on purpose
        if found.st_uid == os.geteuid() and found.st_mode & 0o077 and not found.st_mode & stat.S_ISVTX:
            with suppress(OSError):
                top.chmod(stat.S_IMODE(found.st_mode) & ~0o077)
    folder.mkdir(parents=True, exist_ok=True)


def cache_bytes(environ: Mapping[str, str] = os.environ) -> int:
    """Most bytes of all caches together. Raises BadRequest when $QRAG_CACHE_GB is no size."""
    text = environ.get("QRAG_CACHE_GB") or str(CACHE_GB)
    with suppress(ValueError):
        gigabytes = float(text)
        if 0 <= gigabytes < math.inf:
            return int(gigabytes * 1e9)
    raise BadRequest(f"QRAG_CACHE_GB={text!r} is no size; give gigabytes, 0 or more, as a number")


def keep_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a file of a cache, beside and renamed into place; one that can't be written only costs time."""
    import numpy as np  # not above: the child that answers SQL starts in half the time without

    temporary = path.with_suffix(f".{os.getpid()}.tmp.npz")
    try:
        make_folder(path.parent)
        np.savez(temporary, allow_pickle=False, **arrays)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()


def kept_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of `keep_arrays`; none for a missing or damaged file (the archive carries checksums)."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)
    except Exception:  # zipfile and numpy fail on damaged bytes in more ways than they name
        return {}


def trim_caches(most_bytes: int, parts_since: float = 0.0) -> int:
    """Removes cached files until the rest weighs at most `most_bytes`; how many went. Whoever has one open
    goes on and makes it anew.

    `parts_since`: seconds since 1970; files of parts that were not used since then go in any case.
    """
    files = []
    for name in CACHES:
        for path in (*cache_folder(name).glob("*"), *cache_folder(name).glob("*/*")):
            with suppress(OSError):  # another process was first
                stat = path.stat()
                if not path.is_dir():
                    used, in_part = max(stat.st_atime, stat.st_mtime), path.parent != cache_folder(name)
                    files.append((used, stat.st_size, path, in_part))
                elif stat.st_mtime < parts_since:
                    path.rmdir()  # which fails unless it is empty
    weight, n_removed = sum(size for _, size, *_ in files), 0
    for used, size, path, in_part in sorted(files):
        if weight > most_bytes or (in_part and used < parts_since):
            with suppress(OSError):
                path.unlink()
                weight, n_removed = weight - size, n_removed + 1
    return n_removed
