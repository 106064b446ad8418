"""Runs out of the log, as files.

Lines, tables, and pages that stand alone.
"""
