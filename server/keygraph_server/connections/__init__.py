"""Connections of clients: what each may send, keep and take time for, and how many there may be.

`protocols` has the two classes that uvicorn serves connections with, one for each HTTP parser. It is the only module that
depends on uvicorn's internals. `gate` knows all connections of a process. The settings are `settings/connections.py`.
"""
