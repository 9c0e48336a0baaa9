"""Identifies the viewer of a request: the claims in its token or its headers.

`viewers` chooses the way that the settings name. `tokens` verifies tokens, and `keys` has the keys for that. The model decides what a viewer may see and change (`keygraph.access`).
"""

from keygraph_server.auth.viewers import configured_viewers

__all__ = ["configured_viewers"]
