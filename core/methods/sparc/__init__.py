"""SPARC-RAG: sequential rounds of parallel branches over one memory.

With a language model, or with rules and a reader.
"""
