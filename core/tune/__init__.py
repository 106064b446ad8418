"""Preference pairs from logged SPARC runs, and weighted DPO on them (SPARC-RAG section 3.4)."""
