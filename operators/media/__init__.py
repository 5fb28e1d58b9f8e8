"""Decoding of compressed media in child processes."""
