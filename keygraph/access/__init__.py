"""Who may see and change what: the declaration words of a model, and what its rules mean for one viewer.

This package sits below the model and knows no record types. `keygraph.resolve` makes the rules of each type, and
`keygraph.model.permissions` evaluates them for one viewer.
"""
