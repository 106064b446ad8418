"""A method as a LangChain retriever; needs langchain-core."""

from __future__ import annotations

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import SkipValidation

from core.integrations.adapters.search import Search


class QragRetriever(BaseRetriever):
    """`QragRetriever(search=open_search(documents)).invoke("...")`; metadata hold Q and place."""

    search: SkipValidation[Search]
    k: int | None = None
    """Most documents; None: as many as the search's configuration says. `invoke(query, k=...)` goes first."""

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - part of the interface
        k: int | None = None,
    ) -> list[Document]:
        found = self.search.passages(query, self.k if k is None else k)
        return [
            Document(id=one.id, page_content=one.text, metadata={**one.metadata, "score": one.score})
            for one in found
        ]
