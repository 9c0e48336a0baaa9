"""Asks questions about a generated social network, and measures the reads, the time, and whether the answers are right.

`network` generates people, friends and a tree of categories; `oracle` knows the answers from memory; `__main__` asks.
"""
