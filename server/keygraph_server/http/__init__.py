"""GraphQL over HTTP: what a request must be, how an answer is sent, and what happens when the client is gone.

`graphql_http` is the endpoint, `exposure` decides what its errors tell. The application (`keygraph_server.app`) puts
`middleware` around it and all others.
"""
