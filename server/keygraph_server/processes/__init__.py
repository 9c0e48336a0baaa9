"""The server processes: one that stops without losing a request, and several that share a socket.

`process` sets one up, `server` serves connections in it, `workers` runs several. The last two extend uvicorn's classes.
"""
