"""The DynamoDB engine: the only room that talks to AWS.

`engine` is the way in. `requests` writes requests as DynamoDB's own, `sending` repeats them until they succeed (by the rules
of `retrying`, after the failures that `errors` names), and a `transport` carries them: `direct`, over `signing` and `http1`,
or `client`, which is aioboto3's. `settings` reads AWS's own settings and chooses the transport that can follow them.
"""
