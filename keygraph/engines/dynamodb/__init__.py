"""The DynamoDB engine: the only package that talks to AWS.

`engine` is the entry point. `requests` renders requests for DynamoDB, `sending` repeats them until they succeed (by the
rules of `retrying`, after the failures that `errors` names), `answers` decodes what comes back, and a `transport`
carries them: `direct`, over `signing` and `http1`, or `client`, which is aioboto3's. `settings` reads AWS's settings and chooses the transport.
"""
