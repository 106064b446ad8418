"""Evaluation: examples through a method, one frozen row an example."""
