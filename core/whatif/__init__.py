"""What is asked of a run that was not made: another method, cut, text or choice."""
