"""The step from device packets to the log."""
