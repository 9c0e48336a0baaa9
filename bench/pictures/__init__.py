"""The plots of measurements in the documentation."""
