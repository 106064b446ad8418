"""What this program asks of the Hugging Face hub beyond loading models.

A Space that runs the app, and a data set that keeps the log. `connect` is the way in; every failure of the
hub or the network comes out as one `HubError`, in which no token is ever named.
"""
