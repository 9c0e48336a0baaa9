"""Who may see and change what: the words in which a model says it, and what its rules mean for one viewer.

Below the model: nothing here knows record types. `keygraph.resolve` makes the rules of each type; `keygraph.model.permissions`
asks them for one viewer.
"""
