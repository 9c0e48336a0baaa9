"""The processes that serve: one that stops without losing a request, and several that share a socket.

`server` serves connections in one process, `workers` starts and watches over several. Both extend uvicorn's classes.
"""
