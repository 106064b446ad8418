"""What the app's pages and the exported page draw alike.

Pure functions from core's data to nodes.
"""
