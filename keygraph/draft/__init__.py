"""A first model for an unknown table: what `keygraph draft` does.

`draft` is the entrance. `keys` splits keys into words and varying parts, `kinds` groups items by them, `types` (with
`fields`) makes record types of the groups, `lists` gives them lists, `text` writes the model file. `draft` imports it to
see whether it is right. `parts` has what a draft consists of, `names` how it is named.
"""
