"""SPARC-RAG (`papers`: section 3, algorithm 1): parallel branches over several rounds, with a managed note."""
