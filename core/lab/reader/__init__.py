"""The reader's questions, training and evaluation."""
