"""Connections of clients: what each may send, keep and take time for, and how many there may be.

`factory` makes them, as uvicorn's `http=`. `guarded` has what one connection may do, `httptools_protocol` and `h11_protocol`
the two classes that uvicorn serves connections with, one for each HTTP parser. `gate` knows all connections of a process,
`system` what the operating system knows of one. The settings are `settings/connections.py`.
"""

BEGAN = "keygraph.began"
"""In the ASGI `state` of a request: when its first byte came, by the clock of the event loop."""
