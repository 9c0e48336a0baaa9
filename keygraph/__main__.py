"""Runs the command line: `python -m keygraph` is the same as `keygraph`."""

from importlib.metadata import entry_points

if __name__ == "__main__":
    # Found by its entry point, because this package imports no other package of the distribution.
    next(iter(entry_points(group="console_scripts", name="keygraph"))).load()()
