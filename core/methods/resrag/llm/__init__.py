"""RES-RAG's policy as in the paper.

A language model writes the action.
"""
