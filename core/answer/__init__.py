"""From evidence to answers, of the reader or a language model."""
