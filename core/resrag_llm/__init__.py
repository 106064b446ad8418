"""RES-RAG's policy as in the paper: a language model that writes the action."""
