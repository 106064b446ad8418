"""From evidence to an answer: the extractive reader that ships, and answers of a language model that cite
chunks.
"""
