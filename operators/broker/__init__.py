"""The edges to the broker: reading, writing, the journal."""
