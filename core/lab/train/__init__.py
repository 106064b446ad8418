"""Training of agents.

PQN with soft values on episodes whose support is known (Q-RAG section 3.2).
"""
