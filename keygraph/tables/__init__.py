"""Whole tables: load, export, sample and verify them.

`bulk` writes and reads all items in bounded memory; `interchange` turns items into lines of JSON and back; `sample`
reads some items; `verify` checks every item against the model, with `item_keys` for its keys, and reports `findings`;
`totals` computes what counts and sums should be; `repair` computes and makes the changes that repair findings.
`item_fields` checks one item, also by a model's own rules. The server's commands use this package; nothing that serves
a request does.
"""
