"""The pictures of the documentation: plots of measurements, and the playground."""
