"""Measurements of values that the graph keeps: by a job (`summaries`), at one popular node (`popular`), and their repair
(`repairing`). Each is a program: `python -m bench.kept.summaries`."""
