"""Runs as the log keeps them, made again, and compared with what was logged."""
