"""Methods that look once and need only an encoder.

What all methods have in common is here, too.
"""
