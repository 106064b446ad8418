"""Tasks: documents with questions whose supporting passages are known."""
