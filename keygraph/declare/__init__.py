"""The words that declare a graph; they only record what was declared.

`specifiers` has the words for a field, `decorators` those for a class or a method, `declaration` the recorded values,
`docstrings` the texts that describe classes and their members.
Higher packages turn them into record types; a model file imports the words from `keygraph` itself.
"""
