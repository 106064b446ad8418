"""The multi-step retrieval MDP of Q-RAG section 3 and its agent."""
