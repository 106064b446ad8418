"""What the app's pages and the exported page draw alike.

Pure functions from core's data to nodes, in which all text stays text.
"""
