"""Tasks: documents with questions whose supporting passages are known.

Retrieval is scored on them. `story` simulates people, places and objects; `prose` composes the noise around
them; `narrative` weaves both into a document of any length; `samples` lists the documents that ship with the
app and finds the chunks that hold their support.
"""
