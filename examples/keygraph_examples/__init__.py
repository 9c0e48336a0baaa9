"""Declared graphs, each with its sample data and queries to try. They import keygraph alone."""
