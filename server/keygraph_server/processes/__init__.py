"""The processes that serve: one that stops without losing a request, and several that share a socket.

`process` sets one up, `server` serves connections in it, `workers` starts and watches over several. These two extend uvicorn's classes.
"""
