"""GraphQL over HTTP: checks requests, sends answers, and stops when the client disconnects.

`graphql_http` is the endpoint, `requests` reads what it gets. The application (`keygraph_server.app`) wraps
`middleware` around it and all other endpoints.
"""
