"""Both halves in one process, for a small installation; the minutes half still reads the log from the broker."""

from .build import add_minutes, add_perceive, build

flow = build("room", ("flows.perceive", add_perceive), ("flows.minutes", add_minutes))
