"""The steps between device topics and minutes, each a plain class plus a thin Bytewax operator."""
