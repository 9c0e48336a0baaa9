"""Carries writes out: reads what must be known, sends one transaction, and explains a refusal by its conditions.

`writer` carries requests out through `sender`; `edges` finds the records that name a node, `removal` deletes and moves
named nodes; `describe` shows what would be sent. Nothing in the package above imports from here.
"""
