"""What a run would be with another method, cut, text or choice."""
