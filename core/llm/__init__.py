"""Language models behind one protocol: OpenAI-compatible endpoints, the hub's inference client, local transformers models, a scripted one."""
