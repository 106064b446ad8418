"""Runs out of the log, as lines, tables and pages."""
