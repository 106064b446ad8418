"""Runs and measurements to be shown: charts, stories, trees of text."""
