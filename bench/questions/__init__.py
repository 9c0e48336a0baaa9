"""Questions about a made social network: what they read, how long they take, and whether their answers are right.

`network` makes the people, their friends and a tree of categories; `oracle` knows the answers from memory; `__main__` asks.
"""
