"""The minutes half: ``python -m bytewax.run flows.minutes``."""

from .build import add_minutes, build

flow = build("minutes", ("flows.minutes", add_minutes))
