"""Preference pairs from logged SPARC runs, and DPO on them.

Pairs have weights (SPARC-RAG section 3.4).
"""
