"""Commands that write a whole table while it is in use, and can be interrupted and resumed."""
