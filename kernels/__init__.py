"""Fractal attention: windows of many meetings in one ragged batch, joined by a few global tokens each."""
