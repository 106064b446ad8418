"""Runs out of the log, as files.

Lines, tables, graphs, and pages that stand alone.
"""
