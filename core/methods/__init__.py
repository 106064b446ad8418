"""Methods of retrieval: simple ones, Q-RAG, RES-RAG and SPARC-RAG."""
