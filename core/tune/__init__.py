"""Preference pairs from logged SPARC runs, and DPO on them.

Weighted by pair (SPARC-RAG section 3.4).
"""
