"""Open documents: from files to chunks, vectors, word index and map."""
