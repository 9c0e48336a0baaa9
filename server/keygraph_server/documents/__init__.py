"""Documents that a server knows before they are sent.

`collecting` reads them from files and checks them, `manifest` keeps the trusted ones in a file, and `known` is what the
endpoint asks: it finds a document by its id, and refuses those that are not trusted.
"""
