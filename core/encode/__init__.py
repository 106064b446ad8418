"""Texts -> float vectors: tokenizers, dual encoders, their checkpoints on disk, the embedding cache,
rotations.
"""
