"""Language models behind one protocol: endpoints, and models on this machine."""

KEY_VARIABLE = "QRAG_LLM_KEY"
"""Environment variable with a language model's key; no flag takes one, since everyone sees flags."""
