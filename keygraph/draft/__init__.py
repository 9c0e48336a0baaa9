"""Drafts a first model for an unknown table, for `keygraph draft`.

`draft` is the entry point. `keys` splits keys into words and varying parts, `kinds` groups items by them, `types` (with
`fields`) turns the groups into record types, `lists` gives them lists, `text` writes the model file. `draft` imports
that file to check it. `parts` has the parts of a draft, `names` names them.
"""
