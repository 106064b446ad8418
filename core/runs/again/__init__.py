"""Logged runs, made again and compared with what was logged."""
