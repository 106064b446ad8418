"""RES-RAG: the smallest evidence set that answers a question.

Over several documents, chosen at once.
"""
