"""RES-RAG: the smallest evidence set that answers, chosen at once."""
