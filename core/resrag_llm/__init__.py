"""RES-RAG's policy as in the paper.

A language model that writes the action.
"""
