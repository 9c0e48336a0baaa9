"""The server processes: one that stops without losing a request, and several that share a socket.

`process` sets one up, with its `collection` of garbage and its standard `streams`. `server` serves connections in it, and
`workers` runs several: these two extend uvicorn's classes.
"""

MOST_WORKERS = 256
