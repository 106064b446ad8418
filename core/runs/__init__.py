"""Runs that were made: log, replay, what-if, exports, the hub."""
