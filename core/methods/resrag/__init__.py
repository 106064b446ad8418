"""RES-RAG: the smallest evidence set that answers a question.

It is chosen at once, over several documents.
"""
