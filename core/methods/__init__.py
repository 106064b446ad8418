"""Methods that look once and need no model but an encoder, and what all methods have in common."""
