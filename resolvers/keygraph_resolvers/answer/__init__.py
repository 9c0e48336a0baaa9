"""Writes the response's `data` from the objects that were read. Nothing is read or awaited here.

The service calls `completion.write_data`, and turns the `Completion`'s reports into errors and warnings (`reports`).
"""
