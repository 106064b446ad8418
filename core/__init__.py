"""Q-RAG Explorer's library: everything that is not user interface.

Rooms, each of which imports only those before it: base, ingest, encode, corpus, llm, answer, methods, views,
runs, lab, integrations, cli. So flow the data: bytes -> Document -> ChunkTable -> ChunkIndex -> episode
(events) -> Trace -> figures, log rows. Nothing here imports Gradio.
"""
