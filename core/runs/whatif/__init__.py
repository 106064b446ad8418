"""What is asked of a run that was not made.

Another method, cut, text or choice.
"""
