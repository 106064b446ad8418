"""The methods as retrievers of other people's frameworks, one file each.

See docs/interfaces.md. Import the file of the framework that is installed:
`core.integrations.adapters.langchain`, `.llama_index`, `.haystack`.
"""
