"""Runs out of the log as files: lines, tables, graphs, and pages that stand alone."""
