"""Answer: writes the response's `data` from the objects that were read. Nothing is read or awaited here.

The service enters by `completion.write_data` with a `completion.Completion`, and takes its errors and warnings afterwards.
"""
