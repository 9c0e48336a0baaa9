"""What commands that run for a long time share: what they read from, how they continue after an interruption, and
what is done with changes.

Only commands and Lambda functions enter here.
"""
