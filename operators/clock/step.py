"""Clock as a step of the flow: every arrival with the number of the clock record that places it, state by shard."""

import pickle
from collections.abc import Iterable
from typing import Final

from bytewax.operators import KeyedStream

from contracts.messages import ALL_MEETINGS, Calibration, ClockState, MeetingPurged
from operators.broker.sink import Outgoing
from operators.broker.source import CaughtUp
from operators.clock.lights import Lights
from operators.clock.placing import ClockOutput, ClockSettings, MeetingClocks, Timed, check_believable
from operators.ingest import Arrival, in_words, refused
from operators.log import say
from operators.shard import by_shard
from operators.store import StepStore, Stores

_PREFIX: Final = b"meeting/"
_GLOBAL: Final = b"global"


class Clock:
    """The step of one shard."""

    def __init__(self, settings: ClockSettings, shard: int = 0, lights: Lights | None = None) -> None:
        self._settings = settings
        self._shard = shard
        self._lights = Lights() if lights is None else lights
        self._meetings: dict[str, MeetingClocks] = {}
        self._calibrations: dict[str, Calibration] = {}
        """What holds for all meetings, by device."""
        self._states: dict[str, ClockState] = {}
        self._touched: set[str] = set()

    def open(self, store: StepStore) -> None:
        for _, value in store.scan(_PREFIX):
            meeting, clocks = pickle.loads(value)
            self._meetings[meeting] = clocks
        saved = store.get(_GLOBAL)
        if saved is not None:
            self._calibrations, self._states = pickle.loads(saved)

    def save(self, store: StepStore) -> None:
        for meeting in sorted(self._touched):
            if meeting != ALL_MEETINGS and meeting not in self._meetings:
                store.forget(_PREFIX + meeting.encode())
            elif meeting != ALL_MEETINGS:
                store.put(_PREFIX + meeting.encode(), pickle.dumps((meeting, self._meetings[meeting])))
            else:
                store.put(_GLOBAL, pickle.dumps((self._calibrations, self._states)))
        self._touched.clear()

    def on_timer(self) -> Iterable[ClockOutput | Outgoing]:
        return ()

    def next_timer_s(self) -> float | None:
        return None

    def on_batch(self, values: list[Arrival | Outgoing | CaughtUp]) -> list[ClockOutput | Outgoing]:
        out: list[ClockOutput | Outgoing] = []
        self._take_lights()
        for value in values:
            if isinstance(value, Outgoing | CaughtUp):
                out.append(value)
                continue
            try:
                if isinstance(value.body, Calibration | ClockState):
                    check_believable(value.body)
            except ValueError as error:
                out.append(refused(value, error))
                continue
            self._touched.add(value.meeting_id)
            if value.meeting_id == ALL_MEETINGS:
                out.append(Timed(value, 0))
                if isinstance(value.body, Calibration | ClockState):
                    out += self._for_all(value.body)
                continue
            if isinstance(value.body, MeetingPurged):
                self._meetings.pop(value.meeting_id, None)
                out.append(Timed(value, 0))
                continue
            clocks = self._meetings.get(value.meeting_id)
            if clocks is None:
                clocks = self._meetings[value.meeting_id] = MeetingClocks(
                    self._settings, value.meeting_id, self._calibrations, self._states
                )
            try:
                out.extend(clocks.feed(value))
            except (ValueError, ArithmeticError, LookupError) as error:
                # One message of one device must not end the flow, and end it again after every restart.
                say(
                    f"flows.perceive: {value.source} was refused: {in_words(error)[:300]}",
                    "refused",
                )
                out.append(refused(value, error))
        return out

    def _take_lights(self) -> None:
        for light in self._lights.take(self._shard):
            clocks = self._meetings.get(light.meeting_id)
            if clocks is not None:
                self._touched.add(light.meeting_id)
                for raw_ns, brightness in light.seen:
                    clocks.seen(light.device, raw_ns, brightness)

    def _for_all(self, body: Calibration | ClockState) -> list[ClockOutput]:
        """What is said for all meetings holds for those under way and for those to come."""
        if isinstance(body, Calibration):
            self._calibrations[body.device] = body
        else:
            self._states[body.device] = body
        out: list[ClockOutput] = []
        for meeting_id, clocks in self._meetings.items():
            self._touched.add(meeting_id)
            try:
                out += clocks.told(body)
            except (ValueError, ArithmeticError) as error:
                # It fits other meetings; one must not end the flow over it, again after every restart.
                about = in_words(error)[:300]
                say(
                    f"flows.perceive: {body.type} of {body.device} does not fit {meeting_id}: {about}",
                    "refused",
                )
        return out


def clock(
    up: KeyedStream[tuple[int, Arrival | Outgoing | CaughtUp]], stores: Stores, settings: ClockSettings,
    lights: Lights | None = None,
) -> KeyedStream[tuple[int, ClockOutput | Outgoing]]:  # fmt: skip
    """Attach the clock record in force to every arrival; ``lights``: what decoded pictures say."""
    return by_shard("clock", up, stores, lambda shard: Clock(settings, shard, lights))
