"""SPARC-RAG: sequential rounds of parallel branches over one memory."""
