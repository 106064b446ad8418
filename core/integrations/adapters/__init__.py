"""The methods as retrievers of other frameworks, see docs/interfaces.md."""
