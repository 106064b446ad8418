"""Language models behind one protocol: endpoints, on this machine, scripted."""

KEY_VARIABLE = "QRAG_LLM_KEY"
"""Environment variable with a language model's key; no flag takes one, since everyone sees flags."""
