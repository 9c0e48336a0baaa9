"""Keys: templates, the texts of their placeholders, and which keys can be mistaken for each other.

`template` renders a key from fields and parses it back; `text` and `types` define how one value is written; `shapes`
compares templates. This package does not use record types.
"""
