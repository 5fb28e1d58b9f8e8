"""Speech of one meeting: sound blocks in, recognition requests and decided pieces out.

No threads, no clocks, no Kafka. The caller pushes blocks, calls `advance`, hands the requests to a pool of its own and
brings the answers back by `result`, in any order and whenever they are there. What is decided depends on the sound
and on what was heard in it, never on when an answer came.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from models.speech_recogniser import Recognition
from models.voice_activity import VoiceActivity
from operators.speech.delay import Arrangement
from operators.speech.endpointing import Asked, Closed, Dropped, EndpointSettings, Proposed, Step
from operators.speech.events import MicrophoneDead, SoundLate, SpeechEvent
from operators.speech.pieces import Pieces
from operators.speech.seats import LEVELS_KEPT, Level, Seats, SeatSettings
from operators.speech.stream import FRAME_NS, Frame, SoundStream, StreamName
from operators.speech.track import Placement, Track, track_key

STATE_FORMAT = 4


@dataclass(frozen=True)
class SpeechSettings:
    """How speech is cut and whose it is.

    `wait_for_others_ns`: a frame waits until the other microphones' sound of the same time is there, but not longer
    than this much of its own sound. It is what a lost packet holds its stream up by, and more than packets are late
    by; who comes later is compared with nobody. Where sound is punctual nobody waits.
    `echo_memory_ns`: how long closed pieces are compared with later ones. `partials`: recognise while somebody still
    speaks; `speculative`: at the first silent frame. Without either a piece is recognised once, when it is closed.
    """

    endpoint: EndpointSettings = field(default_factory=EndpointSettings)
    seats: SeatSettings = field(default_factory=SeatSettings)
    wait_for_others_ns: int = 600_000_000
    echo_memory_ns: int = 20_000_000_000
    partials: bool = True
    speculative: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.wait_for_others_ns <= LEVELS_KEPT * FRAME_NS // 2:
            raise ValueError(
                "wait_for_others_ns: after half of what microphones remember, levels to compare with are forgotten"
            )


class MeetingSpeech:
    """All microphones of one meeting."""

    def __init__(self, settings: SpeechSettings, voice_activity: VoiceActivity) -> None:
        """`voice_activity` may be shared by all meetings of a thread."""
        self.settings = settings
        self._voice = voice_activity
        self._tracks: dict[str, Track] = {}
        self._seats = Seats(settings.seats)
        self._pieces = Pieces(partials=settings.partials, speculative=settings.speculative)
        self._clocks: dict[str, int] = {}
        self._unplaced: frozenset[str] = frozenset()
        self._expected: frozenset[str] = frozenset()
        self._decided_ns = -(2**63)

    # --- what the caller tells

    def open_stream(
        self,
        device: str,
        channel: int,
        speaker: str | None,
        sample_rate_hz: int,
        stream_epoch: int,
        arrangement: Arrangement | None = None,
    ) -> None:
        """Announce a channel of a device, before its first block. A new epoch closes what the old one left open.

        With an `arrangement` the stream is all channels of the device, heard as one, and who speaks follows from
        the delays between them. An empty `speaker` is a seat's microphone that several people share.

        Raises:
            UnsupportedRate: the rate cannot be converted.
        """
        key = track_key(device, channel)
        before = self._tracks.get(key)
        if before is not None:
            arranged = None if before.delays is None else before.delays.arrangement
            same = before.stream.name.stream_epoch == stream_epoch and arranged == arrangement
            if same and before.stream.sample_rate_hz == sample_rate_hz:
                before.stream.speaker = speaker
                return
            self._finish_stream(before)
        channels = 1 if arrangement is None else arrangement.channels
        stream = SoundStream(StreamName(device, channel, stream_epoch), speaker, sample_rate_hz, channels)
        self._tracks[key] = Track(stream, self.settings.endpoint, arrangement)

    def push(
        self, device: str, stream_epoch: int, timestamp_ns: int, samples: npt.NDArray[np.int16], *, clock_set: bool = False
    ) -> None:  # fmt: skip
        """Add a block of all channels, int16 shape (n, channels), captured from `timestamp_ns` (raw) on.

        `clock_set`: the device's clock was set just before, and no sound is missing however its stamps jump.

        Raises:
            KeyError: no channel of this device and epoch is open.
        """
        known = False
        for track in self._of(device):
            name = track.stream.name
            if name.stream_epoch != stream_epoch:
                continue
            known = True
            if track.stream.channels > 1:
                block = samples[:, : track.stream.channels]
            else:
                block = np.ascontiguousarray(samples[:, name.channel : name.channel + 1])
            if block.shape[1] == track.stream.channels:
                moved_ns = track.push(timestamp_ns, block, self._placement(device), clock_set=clock_set)
                self._seats.move(track.key, moved_ns)
        if not known:
            raise KeyError(f"no open stream of device {device!r} with epoch {stream_epoch}")

    def end_of_stream(self, device: str) -> None:
        """No more blocks come from this device: what is open is closed by the next `advance`."""
        for track in self._of(device):
            track.stream.end()

    def give_up(self, device: str) -> None:
        """Nothing has come for too long: what is open is closed as it stands, by `advance`. More may come later."""
        for track in self._of(device):
            # In its place on the timeline: a restarted flow is told at the last block, long before it was decided.
            track.given_up = True

    def set_clock_offset(self, device: str, offset_ns: int, clock: int = 0) -> None:
        """Raw time minus timeline time of a device's next block; used only to lay microphones side by side.

        What has been heard since the clock was last set moves with it. `clock`: number of the clock record.
        """
        self._pieces.offsets_ns[device] = offset_ns
        self._clocks[device] = clock

    def wait_for_clocks(self, devices: frozenset[str]) -> None:
        """Decide nothing while it is not known where these devices' sound lies."""
        self._unplaced = devices

    def expect(self, devices: frozenset[str]) -> None:
        """Devices whose sound is to come: the first frames of others wait for them as for those that have begun."""
        self._expected = devices

    def clock_of(self, device: str, piece_id: str) -> int | None:
        """Number of the clock record that the times of a piece refer to, None for a piece of an earlier stream."""
        found = (track.clock_of(piece_id) for track in self._of(device))
        return next((clock for clock in found if clock is not None), None)

    def goes_on_through_step(self, device: str) -> bool:
        """Whether something that began before the device's clock was last set is not decided."""
        return any(
            track.before_step(index) for track in self._of(device) for index in self._pieces.held(track.key)
        )

    def result(self, piece_id: str, version: int, recognition: Recognition) -> None:
        """The answer to a request. Unknown and superseded ones are ignored."""
        self._pieces.result(piece_id, version, recognition)

    def failed(self, piece_id: str, version: int) -> None:
        """A request could not be answered: the piece goes without text, if it is the decisive one."""
        self.result(piece_id, version, Recognition(text="", suppressed="recognition failed"))

    # --- what the caller gets

    def advance(self) -> list[SpeechEvent]:
        """Work through the sound that is there and return what follows, in order."""
        for track in self._tracks.values():
            self._seats.move(track.key, track.place(self._placement(track.stream.name.device)))
            self._hear(track)
        while not self._unplaced and self._decide_next():
            pass
        for track in self._tracks.values():
            if (
                (track.given_up or track.stream.ended)
                and not track.undecided
                and not track.endpointer.asking
                and not track.flushed
            ):
                track.flushed = True
                self._follow(track, track.endpointer.flush())
        newest = [
            track.timeline_ns(track.stream.newest_ns)
            for track in self._tracks.values()
            if track.stream.newest_ns is not None
        ]
        if newest:
            # What waits to be decided is compared with what was said then, however long ago that is by now.
            self._pieces.forget(min(max(newest), self._decided_ns) - self.settings.echo_memory_ns)
        return self._pieces.take()

    def mark_ns(self, device: str) -> int:
        """Raw time before which no further piece of this device starts.

        Raises:
            KeyError: unknown device, or nothing has come from it.
        """
        marks = [mark for track in self._of(device) if (mark := self._mark_of(track)) is not None]
        if not marks:
            raise KeyError(f"no sound of device {device!r} yet")
        return min(marks)

    @property
    def held_up(self) -> bool:
        """Whether further sound waits for an answer, which tells whether a sentence has ended."""
        return any(track.endpointer.asking for track in self._tracks.values())

    def unanswered(self, device: str) -> int:
        """How many pieces of this device wait for the answer that decides them."""
        return sum(self._pieces.unanswered(track.key) for track in self._of(device))

    def _mark_of(self, track: Track) -> int | None:
        newest = track.stream.next_frame_ns
        if newest is None:
            return None
        held = self._pieces.held_ns(track.key)
        frames = track.endpointer.frames
        if frames:
            held.append(frames[0].start_ns)
        elif track.undecided:
            held.append(track.undecided[0].start_ns)
        return min([newest, *held])

    # --- frames

    def _of(self, device: str) -> list[Track]:
        return [track for track in self._tracks.values() if track.stream.name.device == device]

    def _placement(self, device: str) -> Placement:
        return Placement(0, self._pieces.offsets_ns.get(device, 0), self._clocks.get(device, 0))

    def _hear(self, track: Track) -> None:
        """Voice activity, level and seat scores of the frames that came."""
        waiting = track.stream.waiting
        if not waiting:
            return
        frames = list(waiting)
        waiting.clear()
        samples = np.stack([frame.pcm for frame in frames]).astype(np.float32) / 32768.0
        probabilities = self._voice.probabilities(track.stream.voice, track.line.for_voice(samples))
        # Differencing keeps rumble and mains hum from passing for loudness.
        edges = samples[:, 1:] - 0.9 * samples[:, :-1]
        levels = 10.0 * np.log10(np.mean(np.square(edges), axis=1) + 1e-12)
        undecided = max(len(other.undecided) for other in self._tracks.values()) + len(frames)
        for frame, probability, level_db in zip(frames, probabilities, levels, strict=True):
            frame.probability, frame.level_db = float(probability), float(level_db)
            level = Level(track.at_ns(frame), frame.level_db, frame.probability)
            self._seats.add(track.key, level, undecided)
            track.heard(frame)
            track.undecided.append(frame)
        if track.delays is not None:
            scores = track.delays.of_frames(
                np.stack([frame.channels for frame in frames if frame.channels is not None])
            )
            for frame, row in zip(frames, scores, strict=True):
                frame.seat_scores, frame.channels = tuple(float(score) for score in row), None

    def _decide_next(self) -> bool:
        """Decide the next frame in the order of the timeline; False if it cannot be decided yet.

        Which microphone learns first what a voice sounds like at the others must not be a matter of delivery.
        """
        if self._asks():
            return False
        heads = [
            (track.at_ns(track.undecided[0]), key) for key, track in self._tracks.items() if track.undecided
        ]
        if not heads:
            return False
        first_ns = min(heads)[0]
        # Frames of one moment differ by the noise of their stamps: then names decide.
        at_ns, key = min((h for h in heads if h[0] < first_ns + FRAME_NS // 2), key=lambda head: head[1])
        if not self._ready(self._tracks[key], at_ns):
            return False
        self._decide(self._tracks[key])
        return True

    def _asks(self) -> bool:
        """Whether it is still not known of a microphone where a sentence ends; where it is, its sound goes on."""
        asking = [track for track in self._tracks.values() if track.endpointer.asking]
        for track in asking:
            verdict = self._pieces.verdict(track)
            if verdict is not None:
                self._follow(track, track.endpointer.go_on(verdict.end))
        return any(track.endpointer.asking for track in asking)

    def _decide_all(self, track: Track) -> None:
        """Decide what there is of a stream that breaks off, without waiting for anything."""
        while track.undecided or track.endpointer.asking:
            if track.endpointer.asking:
                self._follow(track, track.endpointer.go_on(None))
            else:
                self._decide(track)
        self._follow(track, track.endpointer.flush())

    def _follow(self, track: Track, steps: list[Step]) -> None:
        self._pieces.follow(track, [*self._without_leaks(track, steps)])

    def _ready(self, track: Track, at_ns: int) -> bool:
        """Whether the other microphones' sound of a frame's time is there, or has been waited for long enough."""
        newest = track.stream.newest_ns
        assert newest is not None
        # A microphone that is further behind than this is not waited for until it has caught up.
        behind_ns = track.timeline_ns(newest) - self.settings.wait_for_others_ns
        over, devices = track.stream.ended or track.given_up, set()
        for other in self._tracks.values():
            heard = other.stream.next_frame_ns
            if heard is None:
                continue
            devices.add(other.stream.name.device)
            if other is track or other.stream.ended or (other.given_up and over):
                continue
            # Only whole frames have a level, and what begins half a frame later belongs to the next.
            if behind_ns < other.timeline_ns(heard) < at_ns + FRAME_NS // 2:
                return False
        return self._expected <= devices or track.stream.heard_ns >= self.settings.wait_for_others_ns

    def _decide(self, track: Track) -> None:
        """Say whose voice the next frame is and let the endpointer have it."""
        frame = track.undecided.popleft()
        seats = self.settings.seats
        frame.at_ns = track.at_ns(frame)
        self._tell_late(track, frame)
        level = Level(frame.at_ns, frame.level_db, frame.probability)
        margin = self._seats.margin_db(track.key, level)
        if track.stream.speaker is None and self._seat_speaks(level.start_ns):
            margin = -40.0
        if margin is not None:
            limited = min(seats.margin_limit_db, max(-seats.margin_limit_db, margin))
            track.margin_db += seats.follow * (limited - track.margin_db)
        elif frame.probability < self.settings.endpoint.voiced_below:
            # Silence: whoever spoke last has no claim on what comes next. Between two syllables they have.
            track.margin_db *= 0.7
        smooth = track.margin_db
        track.own = smooth > (seats.keep_above_db if track.own else seats.own_above_db)
        frame.margin_db = 40.0 if margin is None else margin
        frame.foreign = smooth < seats.foreign_below_db
        frame.voiced = track.endpointer.voiced(frame.probability, track.own)
        if frame.voiced:
            self._miss_the_dead(track)
        self._follow(track, track.feed(frame))

    def _without_leaks(self, track: Track, steps: list[Step]) -> Iterator[Step]:
        """The endpointer's steps, those about speech that was another person's left out or made void."""
        for step in steps:
            if isinstance(step, Proposed | Closed | Asked):
                voiced = [Level(f.at_ns, f.level_db, f.probability) for f in step.frames if f.voiced]
                if self._seats.is_leak(track.key, voiced, self._decided_ns):
                    if isinstance(step, Closed):
                        yield Dropped()
                    continue
            yield step

    def _miss_the_dead(self, speaking: Track) -> None:
        """A microphone that hears nothing while somebody speaks in the room is noticed."""
        for track in self._tracks.values():
            if track is not speaking and track.stream.speaker is not None and track.others_speak():
                name = track.stream.name
                self._pieces.tell(MicrophoneDead(name.device, name.channel, track.stream.speaker or None))

    def _tell_late(self, track: Track, frame: Frame) -> None:
        """A frame that others of its time were not compared with, as it came too late."""
        if track.late(frame, self._decided_ns - FRAME_NS):
            self._pieces.tell(SoundLate(track.stream.name.device))
        self._decided_ns = max(self._decided_ns, frame.at_ns)

    def _seat_speaks(self, start_ns: int) -> bool:
        """Whether somebody with a microphone of their own speaks: a room microphone then has nothing to add."""
        for key, track in self._tracks.items():
            history = self._seats.microphones.get(key)
            if track.stream.speaker is None or history is None:
                continue
            found = history.loudest(start_ns - FRAME_NS, start_ns)
            if found is not None and found.probability >= self.settings.endpoint.voiced_above:
                return True
        return False

    def _finish_stream(self, track: Track) -> None:
        """A publisher came back with a new epoch: decide what its old stream left."""
        track.stream.end()
        self._hear(track)
        self._decide_all(track)
        self._seats.forget(track.key)

    # --- state

    def state(self) -> dict[str, Any]:
        """All that is needed to go on exactly, as plain values (dict, list, str, int, float, bytes, None)."""
        return {
            "format": STATE_FORMAT,
            "microphones": [track.dump() for track in self._tracks.values()],
            "seats": self._seats.dump(),
            "offsets_ns": dict(self._pieces.offsets_ns),
            "pieces": self._pieces.dump(),
            "clocks": dict(self._clocks),
            "unplaced": sorted(self._unplaced),
            "expected": sorted(self._expected),
            "decided_ns": self._decided_ns,
        }

    @classmethod
    def from_state(
        cls, settings: SpeechSettings, voice_activity: VoiceActivity, raw: dict[str, Any]
    ) -> "MeetingSpeech":
        """Take up a `state`. The next `advance` repeats requests whose answers had not come (partials aside).

        Raises:
            ValueError: written by another format.
        """
        if raw.get("format") != STATE_FORMAT:
            raise ValueError(f"speech state of format {raw.get('format')}, expected {STATE_FORMAT}")
        meeting = cls(settings, voice_activity)
        meeting._seats.load(raw["seats"])
        meeting._pieces.offsets_ns = dict(raw["offsets_ns"])
        for part in raw["microphones"]:
            track = Track.load(settings.endpoint, part)
            meeting._tracks[track.key] = track
        meeting._pieces.load(raw["pieces"])
        meeting._clocks = dict(raw["clocks"])
        meeting._unplaced, meeting._expected = frozenset(raw["unplaced"]), frozenset(raw["expected"])
        meeting._decided_ns = raw["decided_ns"]
        return meeting
