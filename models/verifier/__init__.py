"""The verifier: how probable it is that an item of the minutes holds against its evidence and context."""
