"""From evidence to an answer.

The extractive reader that ships, and answers of a language model that cite chunks.
"""
