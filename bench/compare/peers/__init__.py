"""The servers that Keygraph is compared with. Each is a separate process that finds the table by its environment."""
