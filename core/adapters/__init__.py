"""The methods as retrievers of other people's frameworks, one file each.

See docs/adapters.md. Import the file of the framework that is installed: `core.adapters.langchain`,
`.llama_index`, `.haystack`.
"""
