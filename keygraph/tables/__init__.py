"""Whole tables: loading, exporting, sampling and verifying them. The commands of the server enter here."""
