"""Measurements. Nothing else imports them."""
