"""The DynamoDB engine: the only room that talks to AWS.

`engine` is the way in. `requests` writes requests as DynamoDB's own, `sending` repeats them until they succeed, and a
transport (`direct` here, aioboto3 in `settings`) carries them.
"""
