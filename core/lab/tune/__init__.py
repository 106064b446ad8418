"""Language models tuned for the papers' methods.

For SPARC: preference pairs from logged runs, and DPO on them; pairs have weights (SPARC-RAG section 3.4). For
RES-RAG: evidence sets, supervised and by GRPO (RES-RAG section 3.4).
"""
