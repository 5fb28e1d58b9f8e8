"""The perceive half: ``python -m bytewax.run flows.perceive``."""

from .build import add_perceive, build

flow = build("perceive", ("flows.perceive", add_perceive))
