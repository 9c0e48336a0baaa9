"""What commands that run for a long time share: what they read from, and how they continue after an interruption.

Only commands enter here.
"""
