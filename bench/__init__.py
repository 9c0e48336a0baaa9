"""Measurements; nothing else imports them."""
