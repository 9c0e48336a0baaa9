"""Keygraph beside other servers that answer the same queries from the same table."""
