"""Who asks: the claims of the viewer of a request, from its token or its headers.

`viewers` finds out which way the settings choose. `by_token` is the way of tokens: `tokens` verifies them, and `keys` has the keys
for that. What a viewer may see and change is said by the model (`keygraph.access`).
"""

from keygraph_server.auth.viewers import configured_viewers

__all__ = ["configured_viewers"]
