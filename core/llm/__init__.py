"""Language models behind one protocol.

OpenAI-compatible endpoints, the hub's inference client, local transformers models, a scripted one.
"""

KEY_VARIABLE = "QRAG_LLM_KEY"
"""Environment variable with a language model's key; no flag takes one, since everyone sees flags."""
