"""A method as a Haystack component; needs haystack-ai.

A pipeline with it can't be written to YAML: the open documents are no part of a file.
"""

from __future__ import annotations

from haystack import Document, component

from core.integrations.adapters.search import Search


@component
class QragRetriever:
    """`pipeline.add_component("retriever", QragRetriever(open_search(documents)))`."""

    def __init__(self, search: Search, top_k: int | None = None) -> None:
        """top_k: most documents; None: as many as the search's configuration says."""
        self._search, self._top_k = search, top_k

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Documents in order of choice, Q as their score."""
        found = self._search.passages(query, self._top_k if top_k is None else top_k)
        documents = [
            Document(id=one.id, content=one.text, meta=one.metadata, score=one.score) for one in found
        ]
        return {"documents": documents}
