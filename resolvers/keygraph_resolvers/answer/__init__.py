"""Answer: writes the response's `data` from the objects that were read. Nothing is read or awaited here.

`columns` writes objects, one field of all of them at a time. `completion` turns each value into what its type writes,
and says what an error or a null becomes (GraphQL specification 6.4.3 and 6.4.4).
The service enters by `columns.write_data` with a `completion.Completion`, and takes its errors and warnings afterwards.
"""
