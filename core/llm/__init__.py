"""Language models behind one protocol: endpoints, models on this machine, a scripted one."""

KEY_VARIABLE = "QRAG_LLM_KEY"
"""Environment variable with a language model's key; no flag takes one, since everyone sees flags."""
