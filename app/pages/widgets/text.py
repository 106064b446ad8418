"""What is open, as pages beside Explore say it."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from app.services.in_view import OpenDocuments
from core.views.draw.nodes import Node, h
from core.views.draw.words import counted


def open_documents(documents: OpenDocuments | None, awaits: bool = True) -> list[Node]:
    """What will be searched. awaits: whether something is on its way."""
    if documents is None:
        words = "A document is being opened…" if awaits else "No document is open. Open one in Explore."
        return [h("p.qx-empty", {"role": "status"}, words)]
    workspace = documents.workspace
    more = f"and {len(workspace.documents) - 1} more" if len(workspace.documents) > 1 else ""
    size = f"{workspace.n_tokens:,} tokens · {counted(len(workspace), 'chunk')}"
    title = h("strong.qx-doc-title", workspace.documents[0].title)
    about = h("span.qx-mut.qx-sm", {"title": "What is open in Explore"}, size)
    return [h("div.qx-row", title, h("strong", more) if more else None, about)]


def file_button(file: Path) -> gr.DownloadButton:
    """What a handler says of a button whose file is ready."""
    n_bytes = file.stat().st_size
    size = f"{n_bytes / 2**20:.1f} MB" if n_bytes > 10**6 else f"{n_bytes / 1000:.0f} KB"
    return gr.DownloadButton(f"Download {file.name} · {size}", value=str(file), visible=True)
