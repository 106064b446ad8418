"""SPARC-RAG and its baselines, measured over a pooled corpus."""
