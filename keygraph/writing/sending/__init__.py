"""Carrying writes out: what must be known is read, one transaction is sent, and a refusal is told as its conditions mean it.

`writer` carries requests out through `sender`; `edges` finds what names a node, `removal` deletes and moves what is named;
`describe` tells what would be sent. Nothing of the room above imports from here.
"""
