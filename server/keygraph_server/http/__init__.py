"""GraphQL over HTTP: what a request must be, how an answer is sent, and what happens when the client is gone.

`graphql_http` is the endpoint; the application (`keygraph_server.app`) puts `masking` and others around it.
"""
