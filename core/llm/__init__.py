"""Language models behind one protocol.

OpenAI-compatible endpoints, the hub's inference client, local transformers models, a scripted one.
"""

KEY_VARIABLE = "QRAG_LLM_KEY"
"""Environment variable with the key of a language model; no flag takes one, since flags are seen by everyone
on the machine.
"""
