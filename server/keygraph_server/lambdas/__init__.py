"""AWS Lambda functions: `keygraph_server.lambdas.graphql` is the handler of the server, `keygraph_server.lambdas.changes` that
of the table's stream.

`event_handler` keeps what answers events between them: in `handler` the application, for which `events` translates events into
ASGI and back, in `changes_handler` what applies changes. Nothing else imports this package. A handler is made when Lambda looks it up, which only needs one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from keygraph_server.processes.collection import keeping_all

if TYPE_CHECKING:
    from keygraph_server.lambdas.changes_handler import ChangesHandler
    from keygraph_server.lambdas.handler import Handler

__all__ = ["changes", "graphql"]

graphql: Handler
changes: ChangesHandler


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(name)
    made: Any
    with keeping_all():
        if name == "graphql":
            from keygraph_server.lambdas.handler import Handler

            made = Handler.of_environment()
        else:
            from keygraph_server.lambdas.changes_handler import ChangesHandler

            made = ChangesHandler.of_environment()
    globals()[name] = made
    return made
