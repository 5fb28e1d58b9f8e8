"""Clocks of devices: placed by what is told of them, followed by what their streams show."""

from operators.clock.placing import ClockOutput, ClockSettings, MeetingClocks, Timed
from operators.clock.step import Clock, clock

__all__ = ["Clock", "ClockOutput", "ClockSettings", "MeetingClocks", "Timed", "clock"]
