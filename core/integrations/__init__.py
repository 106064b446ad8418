"""The library elsewhere: in other frameworks, and on a cluster."""
