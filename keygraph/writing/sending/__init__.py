"""Executes writes: reads the items that they depend on, sends one transaction, and explains a refusal.

`writer` executes requests through `sender`; `edges` finds the records that name a node, `removal` deletes and moves
named nodes; `describe` shows what would be sent. Nothing in the package above imports from here.
"""
