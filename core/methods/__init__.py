"""Methods that look once and need only an encoder.

And what all methods have in common.
"""
