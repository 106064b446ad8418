"""Q-RAG Explorer's library: everything that is not user interface.

Flow, left to right: bytes -> Document -> ChunkTable -> ChunkIndex -> episode (events) -> Trace -> figures,
log rows. Nothing on the right is imported by anything on its left, and nothing here imports Gradio.
"""
