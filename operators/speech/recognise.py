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
from operators.speech.events import MicrophoneDead, SpeechEvent
from operators.speech.pieces import Pieces
from operators.speech.seats import Level, Seats, SeatSettings
from operators.speech.stream import FRAME_NS, SoundStream, StreamName
from operators.speech.track import Track, track_key

STATE_FORMAT = 3


@dataclass(frozen=True)
class SpeechSettings:
    """How speech is cut and whose it is.

    `wait_for_others_ns`: a frame waits until the other microphones' sound of the same time is there, but not longer
    than this much of its own sound. A microphone whose sound is older than `live_within_ns` is not waited for.
    `echo_memory_ns`: how long closed pieces are compared with later ones. `partials`: recognise while somebody still
    speaks; `speculative`: at the first silent frame. Without either a piece is recognised once, when it is closed.
    """

    endpoint: EndpointSettings = field(default_factory=EndpointSettings)
    seats: SeatSettings = field(default_factory=SeatSettings)
    wait_for_others_ns: int = 200_000_000
    live_within_ns: int = 500_000_000
    echo_memory_ns: int = 20_000_000_000
    partials: bool = True
    speculative: bool = True

    def __post_init__(self) -> None:
        if self.live_within_ns < self.wait_for_others_ns:
            raise ValueError(
                "live_within_ns below wait_for_others_ns: no microphone would ever be waited for"
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

    def push(self, device: str, stream_epoch: int, timestamp_ns: int, samples: npt.NDArray[np.int16]) -> None:
        """Add a block of all channels, int16 shape (n, channels), captured from `timestamp_ns` (raw) on.

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
                if samples.shape[1] >= track.stream.channels:
                    track.stream.push(timestamp_ns, samples[:, : track.stream.channels])
            elif name.channel < samples.shape[1]:
                track.stream.push(timestamp_ns, np.ascontiguousarray(samples[:, name.channel]))
        if not known:
            raise KeyError(f"no open stream of device {device!r} with epoch {stream_epoch}")

    def end_of_stream(self, device: str) -> None:
        """No more blocks come from this device: what is open is closed by the next `advance`."""
        for track in self._of(device):
            track.stream.end()

    def give_up(self, device: str) -> None:
        """Nothing has come for too long: what is open is closed as it stands. More blocks may come later."""
        for track in self._of(device):
            self._hear(track)
            self._decide_all(track)

    def set_clock_offset(self, device: str, offset_ns: int) -> None:
        """Raw time minus timeline time of a device; used only to lay microphones side by side."""
        self._pieces.offsets_ns[device] = offset_ns

    def set_hotwords(self, hotwords: tuple[str, ...]) -> None:
        """Names and terms for requests from now on."""
        self._pieces.hotwords = hotwords

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
            self._hear(track)
        while self._decide_next():
            pass
        for track in self._tracks.values():
            if (
                track.stream.ended
                and not track.undecided
                and not track.endpointer.asking
                and not track.flushed
            ):
                track.flushed = True
                self._seats.forget(track.key)
                self._pieces.follow(track, track.endpointer.flush())
        newest = [
            self._corrected(track, track.stream.newest_ns)
            for track in self._tracks.values()
            if track.stream.newest_ns is not None
        ]
        if newest:
            self._pieces.forget(max(newest) - self.settings.echo_memory_ns)
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

    def _corrected(self, track: Track, raw_ns: int) -> int:
        return raw_ns - self._pieces.offsets_ns.get(track.stream.name.device, 0)

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
        for frame, probability, level_db in zip(frames, probabilities, levels, strict=True):
            frame.probability, frame.level_db = float(probability), float(level_db)
            level = Level(self._corrected(track, frame.start_ns), frame.level_db, frame.probability)
            self._seats.add(track.key, level)
            track.heard(frame)
            track.undecided.append(frame)
        if track.delays is not None:
            scores = track.delays.of_frames(
                np.stack([frame.channels for frame in frames if frame.channels is not None])
            )
            for frame, row in zip(frames, scores, strict=True):
                frame.seat_scores, frame.channels = tuple(float(score) for score in row), None

    def _decide_next(self) -> bool:
        """Decide the earliest frame that can be decided; False if there is none."""
        if self._asks():
            return False
        heads = sorted(
            (self._corrected(track, track.undecided[0].start_ns), key)
            for key, track in self._tracks.items()
            if track.undecided
        )
        for start_ns, key in heads:
            if self._ready(self._tracks[key], start_ns):
                self._decide(self._tracks[key])
                return True
        return False

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
        self._pieces.follow(track, track.endpointer.flush())

    def _follow(self, track: Track, steps: list[Step]) -> None:
        self._pieces.follow(track, [*self._without_leaks(track, steps)])

    def _ready(self, track: Track, start_ns: int) -> bool:
        if track.stream.ended:
            return True
        end_ns = start_ns + FRAME_NS
        newest = track.stream.newest_ns
        assert newest is not None
        if self._corrected(track, newest) >= end_ns + self.settings.wait_for_others_ns:
            return True
        for other in self._tracks.values():
            if other is track or other.stream.ended or other.stream.newest_ns is None:
                continue
            # Only whole frames have a level.
            heard_ns = self._corrected(other, other.stream.next_frame_ns or 0)
            if start_ns - self.settings.live_within_ns < heard_ns < end_ns:
                return False
        return True

    def _decide(self, track: Track) -> None:
        """Say whose voice the next frame is and let the endpointer have it."""
        frame = track.undecided.popleft()
        seats = self.settings.seats
        level = Level(self._corrected(track, frame.start_ns), frame.level_db, frame.probability)
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
                voiced = [
                    Level(self._corrected(track, frame.start_ns), frame.level_db, frame.probability)
                    for frame in step.frames
                    if frame.voiced
                ]
                if self._seats.is_leak(track.key, voiced):
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

    def _seat_speaks(self, start_ns: int) -> bool:
        """Whether somebody with a microphone of their own speaks: a room microphone then has nothing to add."""
        for key, track in self._tracks.items():
            history = self._seats.microphones.get(key)
            if track.stream.speaker is None or history is None:
                continue
            found = history.loudest(start_ns - FRAME_NS, start_ns + FRAME_NS)
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
            "hotwords": list(self._pieces.hotwords),
            "pieces": self._pieces.dump(),
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
        meeting._pieces.hotwords = tuple(raw["hotwords"])
        for part in raw["microphones"]:
            track = Track.load(settings.endpoint, part)
            meeting._tracks[track.key] = track
        meeting._pieces.load(raw["pieces"])
        return meeting
