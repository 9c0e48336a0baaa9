"""The server as an AWS Lambda function: `keygraph_server.lambdas.graphql` is its handler.

`events` translates events into ASGI and back, `handler` keeps the application between them. Nothing else imports this
package.
"""

from keygraph_server.lambdas.handler import Handler

__all__ = ["graphql"]

graphql = Handler.of_environment()
