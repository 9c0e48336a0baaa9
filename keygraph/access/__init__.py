"""Access rules: the words that declare them in a model, and their meaning for one viewer.

This package is below the model and does not use record types. `keygraph.resolve` makes the rules of each type, and
`keygraph.model.permissions` evaluates them for one viewer.
"""
