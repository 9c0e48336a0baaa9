"""The servers that Keygraph is compared with. Each is a process of its own, told by its environment where the table is."""
