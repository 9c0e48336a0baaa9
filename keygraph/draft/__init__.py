"""A first model for an unknown table: what `keygraph draft` does.

`draft` is the way in; it goes from keys and attributes to kinds of items, to types, to the text of a model file, and
tries that text.
"""
