"""The commands of `keygraph`, a module each."""
