"""Open documents on disk.

Their address finds them there after a restart, and once nobody's page has them open, also where the log has
no run over them. Each visitor has a folder of their own, where as many stay as one may have open. They are a
cache, bounded and forgotten as the others. What can't be written or read is opened anew by its visitor.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from app.services.in_view import Labelled, OpenDocuments
from app.services.visitors import DOCUMENTS_OPEN, check_known
from core.base.config import ChunkConfig
from core.base.errors import LogError
from core.base.home import cache_folder, keep_arrays, kept_arrays
from core.base.types import Document, Workspace
from core.runs.log.blobs import decode_table, encode_table


@dataclass(frozen=True)
class KeptDocuments:
    """What documents are opened from as they were."""

    token: str
    checkpoint: str
    questions: tuple[Labelled, ...]
    workspace: Workspace


@dataclass(frozen=True)
class _Record:
    """All of it but the chunks, which are beside it."""

    token: str
    checkpoint: str
    questions: tuple[Labelled, ...]
    documents: tuple[Document, ...]
    configs: tuple[ChunkConfig | None, ...]


_RECORD: TypeAdapter[_Record] = TypeAdapter(_Record)


def keep_documents(opened: OpenDocuments) -> None:
    """Writes them down for their visitor, unless they are there; those kept longest go."""
    path, workspace = _path(opened.name, opened.owner), opened.workspace
    with suppress(OSError):
        if path.exists():
            path.touch()
            return
        record = _Record(
            opened.token,
            opened.agent.spec.name,
            opened.questions,
            workspace.documents,
            workspace.configs,
        )
        tables = {str(i): encode_table(table) for i, table in enumerate(workspace.tables)}
        parts = {"record": _RECORD.dump_json(record), **tables}
        keep_arrays(path, {name: np.frombuffer(data, np.uint8) for name, data in parts.items()})
        for file in sorted(path.parent.glob("*.npz"), key=lambda file: file.stat().st_mtime)[
            :-DOCUMENTS_OPEN
        ]:
            file.unlink()


def kept_documents(name: str, owner: str | None) -> KeptDocuments | None:
    """A visitor's documents by `OpenDocuments.name`; None where they have none of it. Raises BadRequest for
    nobody's.
    """
    if not re.fullmatch(r"[0-9a-f]{16}", name):
        return None
    stored = {part: data.tobytes() for part, data in kept_arrays(_path(name, owner)).items()}
    try:
        record = _RECORD.validate_json(stored["record"])
        tables = tuple(decode_table(stored[str(i)]) for i in range(len(record.documents)))
    except (KeyError, ValidationError, LogError):
        return None
    workspace = Workspace(record.documents, tables, record.configs)
    return KeptDocuments(record.token, record.checkpoint, record.questions, workspace)


def _path(name: str, owner: str | None) -> Path:
    check_known(owner)
    return cache_folder("opened", owner or "") / f"{name}.npz"
