"""SPARC-RAG: sequential rounds of parallel branches over one memory, with a language model or with rules and
a reader.
"""
