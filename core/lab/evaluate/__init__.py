"""Evaluation: examples through a method, one frozen row an example.

Everything that follows from rows is here, too. `corpora` indexes examples that share a haystack once, `run`
makes rows, `outcomes` and `summary` read them.
"""
