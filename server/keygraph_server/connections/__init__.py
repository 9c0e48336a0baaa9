"""Client connections and their limits: the bytes, memory and time of each, and their number.

`factory` makes them, as uvicorn's `http=`. `guarded` has the limits of one connection, `httptools_protocol` and
`h11_protocol` uvicorn's two protocol classes with these limits, one for each HTTP parser; `websocket` is what a connection
becomes that asks for that. `gate` knows all connections
of a process, `system` asks the operating system about one. `settings` are the limits.
"""

BEGAN = "keygraph.began"
"""In the ASGI `state` of a request: the time of its first byte, by the event loop's clock."""
STREAMS = "keygraph.streams"
"""In the ASGI `state` of a request whose answer has no end: its client is gone when it has closed its own direction."""
STOPS = "keygraph.stops"
"""In the state of the lifespan, which all requests get: a function to call when the server begins to stop."""
BEGINS = "keygraph.begins"
"""In the ASGI scope of a request that waits to begin: a future, which is set to false if its client disconnects."""
LET_THROUGH = "keygraph.let-through"
"""In the ASGI `state` of a request: the round of the event loop in which it was read after a wait, and for which client."""
KEPT = "keygraph.kept"
"""In the ASGI `state` of a WebSocket: a function to call with whether it is to stay open when there are too many."""
