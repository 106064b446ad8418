"""A method as a LlamaIndex retriever; needs llama-index-core."""

from __future__ import annotations

from typing import Any

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from core.integrations.adapters.search import Search


class QragRetriever(BaseRetriever):
    """`QragRetriever(open_search(documents)).retrieve("...")`, nodes in order of choice."""

    def __init__(self, search: Search, similarity_top_k: int | None = None, **more: Any) -> None:
        """similarity_top_k: most nodes; None: the search's own number. more: of BaseRetriever."""
        self._search, self._top_k = search, similarity_top_k
        super().__init__(**more)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(
                    id_=passage.id,
                    text=passage.text,
                    metadata=passage.metadata,
                    start_char_idx=passage.metadata["start"],
                    end_char_idx=passage.metadata["end"],
                ),
                score=passage.score,
            )
            for passage in self._search.passages(query_bundle.query_str, self._top_k)
        ]
