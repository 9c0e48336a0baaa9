"""Answer: writes the response's `data` from the objects that were read. Nothing is read or awaited here.

The service enters by `completion.write_data` with a `completion.Completion`, and makes errors and warnings of its reports (`reports`).
"""
