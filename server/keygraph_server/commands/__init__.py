"""The commands of `keygraph`, one module for each."""
