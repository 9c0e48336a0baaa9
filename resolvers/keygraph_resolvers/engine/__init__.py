"""Drives the steps of an operation, and adds up the most that they request.

A step is a generator: it yields requests, which are values (`requests`), and is sent the answers. `engine` answers them
from the store: a list by its own Query, at once, keys in batches, and parts of one partition by one Query (`gathering`).

A step also yields the most that it requests for one object, in the order of time (`worst`). Added up for all steps, by
`keygraph_resolvers.plan.bound`, that is the **bound** of an operation. Read backwards (`worst.key_trips`), it tells in
which **round trips** (of requests that are in flight at the same time) a step requests keys after each of its **waits**
for an answer, and so what can still add to a batch: **a batch of keys is sent when no step in progress can**
(`Engine._send_batches`). `keygraph explain` prints a tree of these values. `requests` says how a kind of step is added.
"""
