"""Runs that another retriever made, brought into the log."""
