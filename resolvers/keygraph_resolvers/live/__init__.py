"""Live operations: subscriptions whose answer is sent again whenever it has become another.

`matching` finds the operations whose reads a change of an item touches (`keygraph_resolvers.read.recording` records
them). `queries` runs the operations, again when they are touched, for all who listen (`listeners`). Nothing
here knows a transport, or where the changes come from.
"""

from keygraph_resolvers.live.listeners import Listener, LiveAnswer, LiveLimitReached
from keygraph_resolvers.live.queries import ChangeSource, LiveQueries

__all__ = ["ChangeSource", "Listener", "LiveAnswer", "LiveLimitReached", "LiveQueries"]
