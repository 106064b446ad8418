"""Open documents on disk.

Their address finds them there after a restart, also where the log has no run over them. Each visitor has a
folder of their own, where as many stay as one may have open. They are a cache as the others: what can't be
written or read is opened anew by its visitor.
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
    """What documents are opened from as they were, but their chunks, which are beside it."""

    token: str
    checkpoint: str
    questions: tuple[Labelled, ...]
    documents: tuple[Document, ...]
    configs: tuple[ChunkConfig | None, ...]


_RECORD: TypeAdapter[KeptDocuments] = TypeAdapter(KeptDocuments)


def keep_documents(opened: OpenDocuments) -> None:
    """Writes them down for their visitor, unless they are there; those kept longest go."""
    path, workspace = _path(opened.name, opened.owner), opened.workspace
    with suppress(OSError):
        if path.exists():
            path.touch()
            return
        checkpoint, documents = opened.agent.spec.name, workspace.documents
        record = KeptDocuments(opened.token, checkpoint, opened.questions, documents, workspace.configs)
        tables = {str(i): encode_table(table) for i, table in enumerate(workspace.tables)}
        parts = {"record": _RECORD.dump_json(record), **tables}
        keep_arrays(path, {name: np.frombuffer(data, np.uint8) for name, data in parts.items()})
        latest_last = sorted(path.parent.glob("*.npz"), key=lambda file: file.stat().st_mtime)
        for file in latest_last[:-DOCUMENTS_OPEN]:
            file.unlink()


def kept_documents(name: str, owner: str | None) -> tuple[KeptDocuments, Workspace] | None:
    """A visitor's documents by `OpenDocuments.name`, if kept. Raises BadRequest for nobody's."""
    if not re.fullmatch(r"[0-9a-f]{16}", name):
        return None
    stored = {part: data.tobytes() for part, data in kept_arrays(_path(name, owner)).items()}
    try:
        record = _RECORD.validate_json(stored["record"])
        tables = tuple(decode_table(stored[str(i)]) for i in range(len(record.documents)))
    except (KeyError, ValidationError, LogError):
        return None
    return record, Workspace(record.documents, tables, record.configs)


def _path(name: str, owner: str | None) -> Path:
    check_known(owner)
    return cache_folder("opened", owner or "") / f"{name}.npz"
