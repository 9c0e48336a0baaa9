"""The table whose requests are rendered in tests: it has indexes of every kind of key."""

from __future__ import annotations

from keygraph.dynamo.table import Index, Table

by_day = Index("by-day", "GSI1PK", ("day", "N"))
by_state = Index("by-state", "state", projection=["name", "PK"])
by_digest = Index("by-digest", "PK", ("digest", "B"), projection="KEYS_ONLY", local=True)
shop = Table("Shop", partition_key="PK", sort_key="SK", indexes=[by_day, by_state, by_digest])
