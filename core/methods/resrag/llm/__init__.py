"""RES-RAG's policy as in the paper: a language model writes the action."""
