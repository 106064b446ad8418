"""Documents in a few lines of Python, see `core.open`."""
