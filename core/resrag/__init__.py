"""RES-RAG: the smallest set of evidence over several documents that answers a question, chosen at once."""
