"""Documents that a server knows before they are sent.

`collecting` reads them from files and checks them, `manifest` stores the trusted ones in a file, and the endpoint asks
`known`, which finds a document by its id and refuses untrusted ones.
"""
