"""What the app's pages and the exported page draw alike: pure functions from core's data to nodes."""
