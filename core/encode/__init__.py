"""Texts -> float vectors.

Tokenizers, dual encoders, their checkpoints on disk, the embedding cache, rotations.
"""
