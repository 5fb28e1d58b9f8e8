"""Perception of one meeting: arrivals in, log records and requests for slow work out.

Plain data in, plain data out. Recognition, decoding and reading are asked for and answered later, in
any order; what is decided depends on the media and the answers. What already stands on the log
(``decided``) is taken from there and never asked for or written again.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from contracts.messages import (
    AnyControl,
    EndOfStream,
    MeetingEnded,
    MeetingStarted,
    OcrMessage,
    TranscriptMessage,
)
from contracts.packet import Codec, Modality, Packet, payload_array
from contracts.timeline import (
    AnyRecord,
    ClockRecord,
    ControlRecord,
    EndedRecord,
    MarkRecord,
    NoticeRecord,
)
from models.speech_recogniser import Recognition
from models.voice_activity import VoiceActivity
from operators.clock import Timed
from operators.ingest import Arrival, Late, Loss, modality_of
from operators.media.client import DecodedPictures, DecodedSound, DecodeFailed, FullFrame
from operators.perceive.clocks import DeviceClocks
from operators.perceive.hearing import Hearing
from operators.perceive.left_out import LeavingOut, LeftOut
from operators.perceive.output import Output
from operators.perceive.people import People, Seen
from operators.perceive.pictures import MeetingPictures, PictureStep, ReadSlide
from operators.perceive.records import own_bytes, transcript_record
from operators.perceive.seeing import Seeing
from operators.perceive.types import DecodeSound, Emission, PerceiveSettings, Stream, Undecodable
from operators.speech.events import RecognitionRequest
from operators.timeline import is_step, to_timeline_ns

_MARK_EVERY_NS: Final = 100_000_000
_DRAINED_NS: Final = 100_000_000
"""A stream that has ended is done once its mark is this close to its end (less than a piece is short)."""
_SET_BACK_NS: Final = 8_000_000
_SET_ON_NS: Final = 300_000_000
"""A stream of which no packet is missing and whose stamps go on by more than twice what passed: its clock was set.

By less than this it looks like a pause, and jitter of the delivery must not decide between the two.
"""
_END_WAIT_S: Final = 0.5
"""How long nothing may have come before a meeting ends whose streams nobody has named."""
_FOREVER_NS: Final = 2**63 - 1


class MeetingPerception:
    """One meeting. Not thread-safe; one shard's thread calls it."""

    def __init__(
        self, settings: PerceiveSettings, meeting_id: str, voice: VoiceActivity, *, live: bool
    ) -> None:
        """``live``: partial texts are wanted, and streams that fall silent are given up."""
        self._settings = settings
        self._voice = voice
        self._live = live
        self.meeting_id = meeting_id
        self.started: MeetingStarted | None = None
        self.end: MeetingEnded | None = None
        self.ended = False
        self._streams: dict[str, Stream] = {}
        self.people = People()
        self._marked_ns = -(2**63)
        self._clocks = DeviceClocks()
        self._late = 0
        self.left_out = LeavingOut()
        self.began_ns = 0
        """Arrival of the first thing that came of it, UTC."""
        self._arrived_s = 0.0
        self._settled_end = False
        self._output = Output(meeting_id)
        self._begin()
        self.last_activity_s: dict[str, float] = {}

    def _begin(self) -> None:
        """Microphones and pictures of which nothing has come."""
        self._pictures = MeetingPictures(self._settings.slides)
        self._seeing = Seeing(self._pictures, self._output, self._streams, self.people)
        self._hearing = Hearing(
            self._settings, self._voice, self._output, self._streams, self.people, self._clocks, self._pictures,
            live=self._live,
        )  # fmt: skip

    # --- inputs

    def decide(self, records: Iterable[AnyRecord]) -> None:
        """Records of earlier runs that stand on the log: they hold."""
        for record in records:
            self._output.decide(record)
            self.left_out.decide(record)
            if isinstance(record, EndedRecord):
                self.ended = True

    def resume(self) -> list[Emission]:
        """After a restart from a snapshot: give-ups that stand, and work that has to be asked for again."""
        for name in list(self._streams):
            self._apply_decided_give_up(name)
        self._shown(self._pictures.repeat())
        for name, stream in self._streams.items():
            for packet in stream.undecoded:
                self._output.ask(DecodeSound(name, packet))
        self._hearing.advance()
        return self._output.take()

    def feed(self, timed: Timed, now_s: float, *, shed: bool = False, fresh: bool = False) -> list[Emission]:
        """The next arrival; ``now_s`` is the clock of ``check_idle``.

        ``shed``: there is more to do than can be done, and this meeting's sound and pictures are to be left out;
        ``fresh``: it came after this run began, so that no earlier one can have handled it.
        """
        arrival = timed.arrival
        body = arrival.body
        if arrival.meeting_id == self.meeting_id:  # what holds for all meetings may be older than any of them
            self.began_ns = self.began_ns or arrival.arrival_ns
        if self.ended:
            return self._after_end(arrival)
        self._arrived_s = now_s
        if isinstance(body, Loss):
            # Packets may be missing before the first that came.
            modality = Modality[body.stream.rpartition("/")[2].upper()]
            stream = self._streams.get(body.stream) or Stream(body.device_id, modality)
            self._output.gap(stream, body.raw_start_ns, body.raw_end_ns, "lost")
        elif isinstance(body, Late):
            self._late += 1
        elif isinstance(body, Packet | TranscriptMessage | OcrMessage | EndOfStream):
            name = f"{body.device_id}/{modality_of(body).name.lower()}"
            known = self._streams.get(name)
            complete = known is not None and (known.epoch, known.sequence + 1) == (
                body.stream_epoch,
                body.sequence,
            )
            self.last_activity_s[name] = now_s
            if (
                isinstance(body, Packet)
                and known is not None
                and self._leaves_out(name, known, body, shed=shed, fresh=fresh)
            ):
                return self._output.take()
            self._open(timed, body)
            stream = self._streams[name]
            if isinstance(body, Packet) and body.modality is Modality.AUDIO:
                self._came(stream, body, arrival.arrival_ns, complete=complete)
            self._media(name, stream, body)
            return self._finish(name)
        else:
            self._control(body, arrival)
        return self._finish()

    def place(self, record: ClockRecord | NoticeRecord) -> list[Emission]:
        """A clock record or a notice of the clock step, for the log."""
        if self.ended:
            return []
        if isinstance(record, ClockRecord):
            # What an earlier run wrote under this number is what readers go by.
            decided = self._output.decided(record.identity)
            record = decided if isinstance(decided, ClockRecord) else record
            self._new_clock(record)
        self._output.record(record)
        return self._output.take()

    def _new_clock(self, record: ClockRecord) -> None:
        device, before = record.device, self._clocks.set(record)
        if is_step(record):
            # How far the device's streams have come is counted on its clock, which has just been set.
            for stream in self._streams.values():
                if stream.device == device and stream.raw_ns:
                    stream.raw_ns, stream.logged_mark_ns = record.from_raw_ns, None
        elif before is not None:
            sound = self._streams.get(f"{device}/audio")
            if sound is not None and sound.last is not None:
                raw_ns = sound.last[0]
                self._clocks.ways.placed_anew(
                    device, to_timeline_ns(record, raw_ns) - to_timeline_ns(before, raw_ns)
                )

    def recognised(self, request: RecognitionRequest, found: Recognition | Exception) -> list[Emission]:
        """The answer to a recognition request."""
        if self.ended:
            return []
        self._hearing.recognised(request, found)
        return self._finish()

    def decoded(self, result: DecodedSound | DecodedPictures | FullFrame | DecodeFailed) -> list[Emission]:
        """The answer to a decoding request."""
        stream = self._streams.get(result.stream)
        if stream is None or self.ended:
            return []
        if isinstance(result, DecodedSound):
            self._undecoded_done(stream, result.timestamp_ns)
            self._push_sound(result.stream, stream, result.timestamp_ns, result.samples, result.rate_hz)
            if result.stream in self.left_out.streams and not stream.undecoded:
                # Nothing more comes for now: what is open would else wait until the stream is heard again.
                self._hearing.give_up(stream.device)
        elif isinstance(result, DecodedPictures):
            self._shown(self._pictures.decoded(result))
        elif isinstance(result, FullFrame):
            self._shown(self._pictures.fetched(result))
        elif stream.modality is Modality.AUDIO:
            self._refuse(stream.undecoded, result)
            self._undecoded_done(stream, result.timestamp_ns)
            self._output.gap(stream, result.timestamp_ns, result.timestamp_ns + 1, "undecodable")
        else:
            self._refuse(self._pictures.recent(result.stream), result)
            self._shown(self._pictures.failed(result))
        return self._finish()

    def read(self, ask: ReadSlide, lines: Sequence[Any] | None) -> list[Emission]:
        """The answer to a reading request."""
        if self.ended:
            return []
        self._shown(self._pictures.read(ask.stream, ask.frame_ns, lines))
        return self._finish()

    def check_idle(self, now_s: float) -> list[Emission]:
        """Give up what has been silent for too long; ``now_s`` counts only while the flow is not behind."""
        if not self._live or self.ended:
            return []
        for name, stream in self._streams.items():
            since = self.last_activity_s.setdefault(name, now_s)
            if (
                not stream.over
                and now_s - since > self._settings.stream_idle_s
                and not self._busy(name, stream)
            ):
                self._give_up(name, stream)
        newest = max(self.last_activity_s.values(), default=now_s)
        if (
            self.end is None
            and now_s - newest > self._settings.meeting_idle_s
            and all(s.over and not self._busy(n, s) for n, s in self._streams.items())
        ):
            self._end("idle", self._last_mark_ns())
        # Messages of one moment on several topics come in any order: the end waits until nothing follows it.
        self._settled_end = self.end is not None and now_s - self._arrived_s >= _END_WAIT_S
        return self._finish()

    def finish_input(self) -> list[Emission]:
        """No more input will come (files): streams without an end of their own end here."""
        for name, stream in self._streams.items():
            if stream.state == "expected":
                self._give_up(name, stream)
            elif stream.end_raw_ns is None and not stream.over:
                self._end_stream(stream, stream.raw_ns)
        if self.end is None:
            self.end = MeetingEnded(meeting_id=self.meeting_id)
        return self._finish()

    # --- control

    def _control(self, control: AnyControl, arrival: Arrival) -> None:
        self._output.record(ControlRecord(meeting_id=self.meeting_id, control=control, source=arrival.source))
        match control:
            case MeetingStarted():
                self.started = control
                for name in control.streams:
                    device, _, modality = name.rpartition("/")
                    if modality.upper() in Modality.__members__ and device:
                        self._streams.setdefault(name, Stream(device, Modality[modality.upper()]))
            case MeetingEnded():
                self.end = control
        self.people.apply(control)

    # --- media

    def _open(self, timed: Timed, body: Packet | TranscriptMessage | OcrMessage | EndOfStream) -> None:
        """Open the meeting and the stream where this is the first that comes of them."""
        modality = modality_of(body)
        name = f"{body.device_id}/{modality.name.lower()}"
        if self.started is None:
            start_ns = self._timeline_ns(body.device_id, body.timestamp_ns)
            self.started = MeetingStarted(meeting_id=self.meeting_id, start_ns=start_ns, implicit=True)
            self._output.record(
                ControlRecord(meeting_id=self.meeting_id, control=self.started, source="implicit")
            )
        stream = self._streams.setdefault(name, Stream(body.device_id, modality))
        stream.clock = timed.clock
        if stream.state == "expected":
            self._output.stream(stream, "opened", body.timestamp_ns, body.stream_epoch)
        elif stream.over:
            self._output.stream(stream, "resumed", body.timestamp_ns, body.stream_epoch)
            stream.end_raw_ns = None
            self._shed_gap(stream, body.timestamp_ns)
        elif body.stream_epoch != stream.epoch:
            self._output.gap(stream, stream.raw_ns, body.timestamp_ns, "lost")
        stream.state = "opened"
        stream.epoch, stream.sequence = body.stream_epoch, body.sequence

    def _came(self, stream: Stream, body: Packet, arrival_ns: int, *, complete: bool) -> None:
        """What the arrival of a block of sound says of its device's clock; ``complete``: none is missing before it."""
        last, stream.last = stream.last, (body.timestamp_ns + body.duration_ns, arrival_ns)
        if last is not None and complete:
            jump_ns = body.timestamp_ns - last[0]
            passed_ns = arrival_ns - last[1]
            if jump_ns < -_SET_BACK_NS or (arrival_ns > 0 and jump_ns > max(_SET_ON_NS, 2 * passed_ns)):
                stream.clock_set_at.add(body.timestamp_ns)
        if arrival_ns > 0:
            end_ns = self._timeline_ns(body.device_id, body.timestamp_ns + body.duration_ns)
            self._clocks.ways.came(body.device_id, end_ns, arrival_ns, body.duration_ns)

    def _media(
        self, name: str, stream: Stream, body: Packet | TranscriptMessage | OcrMessage | EndOfStream
    ) -> None:
        if isinstance(body, EndOfStream):
            self._end_stream(stream, body.timestamp_ns)
        elif isinstance(body, TranscriptMessage):
            self._transcript(name, stream, body)
        elif isinstance(body, OcrMessage):
            self._seeing.told(stream, body)
        elif body.modality is Modality.VIDEO:
            role: Literal["slides", "camera"] = "slides" if self._shows_slides(body.device_id) else "camera"
            self._shown(self._pictures.push(name, body, role))
        elif body.codec is Codec.PCM_S16LE:
            samples = np.asarray(payload_array(body), dtype=np.int16)
            self._push_sound(name, stream, body.timestamp_ns, samples, body.rate_hz)
        else:
            stream.undecoded.append(body)
            self._output.ask(DecodeSound(name, body))
        stream.raw_ns = max(stream.raw_ns, body.timestamp_ns + body.duration_ns)
        self._apply_decided_give_up(name)

    def _leaves_out(self, name: str, stream: Stream, packet: Packet, *, shed: bool, fresh: bool) -> bool:
        """Whether a packet is left out, as its meeting is; the first one of them ends what the stream has open."""
        if name in self.left_out.streams:
            return self.left_out.drops(packet, shed=shed, fresh=fresh)
        if not shed or stream.state != "opened":
            return False
        self._leave_out(name, stream)
        return self.left_out.drops(packet, shed=True, fresh=True)

    def _leave_out(self, name: str, stream: Stream) -> None:
        begun = LeftOut(stream.epoch, stream.sequence, stream.clock, stream.raw_ns, stream.raw_ns)
        self.left_out.begin(name, begun)
        self._output.stream(stream, "shed", stream.raw_ns, stream.epoch)
        stream.state = "shed"
        if not self.left_out.told:
            self.left_out.told = True
            self._output.notice(
                "shed",
                "There was more to do than could be done in time: sound and pictures were left out for a while.",
            )
        if stream.modality is Modality.AUDIO:
            self._hearing.give_up(stream.device)

    def _shed_gap(self, stream: Stream, resumed_ns: int | None = None) -> None:
        """What was left out of a stream, once that is over; ``resumed_ns``: stamp of what comes after it."""
        left = self.left_out.end(stream.name)
        if left is None or not left.packets:
            return
        end_ns = left.to_ns
        if resumed_ns is not None and stream.clock != left.clock:
            # The clock was set meanwhile: both ends by the clock of the beginning.
            since_ns = self._clocks.seen_ns(Seen(stream.device, left.clock, left.from_ns))
            end_ns = left.from_ns + self._timeline_ns(stream.device, resumed_ns) - since_ns
        self._output.gap(stream, left.from_ns, end_ns, "shed", clock=left.clock)

    def _shows_slides(self, device: str) -> bool:
        return self.started is None or not self.started.slide_devices or device in self.started.slide_devices

    def _push_sound(
        self, name: str, stream: Stream, raw_ns: int, samples: npt.NDArray[np.int16], rate_hz: int
    ) -> None:
        if self._hears_sound():
            self._hearing.push(stream, raw_ns, samples, rate_hz, self.started)

    def _hears_sound(self) -> bool:
        return (
            self.started is None
            or self.started.speech_source == "sound"
            or not self._has(Modality.TRANSCRIPT)
        )

    def _has(self, modality: Modality) -> bool:
        return any(stream.modality is modality for stream in self._streams.values())

    def _end_stream(self, stream: Stream, raw_ns: int) -> None:
        stream.end_raw_ns = raw_ns
        if stream.modality is Modality.AUDIO and not stream.undecoded:
            self._hearing.end_of_stream(stream.device)

    def _undecoded_done(self, stream: Stream, raw_ns: int) -> None:
        stream.undecoded = [p for p in stream.undecoded if p.timestamp_ns != raw_ns]
        if stream.end_raw_ns is not None and not stream.undecoded:
            self._end_stream(stream, stream.end_raw_ns)

    def _transcript(self, name: str, stream: Stream, message: TranscriptMessage) -> None:
        source = self.started.speech_source if self.started is not None else "sound"
        if (source == "sound" and self._has(Modality.AUDIO)) or not message.text.strip():
            return
        self._output.record(transcript_record(message, stream))
        stream.logged_mark_ns = message.timestamp_ns

    def _shown(self, steps: Iterable[PictureStep]) -> None:
        self._seeing.take(steps)
        self._hearing.slides_went_on()

    def _refuse(self, packets: Iterable[Packet], failed: DecodeFailed) -> None:
        """A dead letter for a packet that no decoder could read."""
        if failed.shed:
            return
        for packet in packets:
            if packet.timestamp_ns == failed.timestamp_ns:
                self._output.ask(Undecodable(packet, failed.reason))
                return

    # --- streams, marks, ends

    def _mark_ns(self, name: str, stream: Stream) -> int | None:
        """Raw time before which nothing of the stream follows, None where nothing has come yet."""
        if stream.modality is Modality.VIDEO:
            return self._pictures.mark_ns(name)
        if stream.modality is not Modality.AUDIO:
            return stream.told_mark_ns
        return self._hearing.undecided_ns(stream)

    def _drained(self, name: str, stream: Stream) -> bool:
        if stream.modality is Modality.AUDIO:
            mark = self._mark_ns(name, stream)
            last = min(stream.raw_ns, stream.end_raw_ns or stream.raw_ns)
            return not stream.undecoded and mark is not None and mark >= last - _DRAINED_NS
        return self._pictures.idle(name)

    def _busy(self, name: str, stream: Stream) -> bool:
        """Whether an answer is outstanding: then silence is ours, not the stream's."""
        return bool(self._outstanding(name, stream))

    def _outstanding(self, name: str, stream: Stream) -> int:
        """How many answers to decisive requests about a stream have not come."""
        if stream.modality is Modality.AUDIO:
            return len(stream.undecoded) + self._hearing.unanswered(stream.device)
        return int(not self._pictures.idle(name))

    @property
    def held_up(self) -> bool:
        """Whether further sound waits for an answer."""
        return self._hearing.held_up

    def waits_for(self) -> tuple[str, ...]:
        """Why a meeting that was told to be over has not ended, in words for an operator; empty where it has."""
        if self.end is None or self.ended:
            return ()
        end_ns = self._told_end_ns()
        found = []
        for name, stream in self._streams.items():
            outstanding = self._outstanding(name, stream)
            if outstanding:
                found.append(f"{name}: {outstanding} answers of the workers")
            elif stream.state == "expected":
                found.append(f"{name}: nothing has come from it")
            elif not stream.over:
                mark = self._mark_ns(name, stream)
                last_ns = min(end_ns, self._last_mark_ns())
                short_s = 0.0 if mark is None else (last_ns - self._timeline_ns(stream.device, mark)) / 1e9
                end = "no end of stream" if stream.end_raw_ns is None else "its end of stream came"
                found.append(f"{name}: {end}, read to {short_s:.1f} s before the meeting's end")
        return tuple(found) or ("nothing more to come",)

    def _finish(self, only: str | None = None) -> list[Emission]:
        """After every input: marks, ends of streams, end of the meeting; for a packet, its own stream's mark only."""
        for name, stream in self._streams.items():
            if stream.state != "opened" or only not in (None, name):
                continue
            if stream.end_raw_ns is not None and self._drained(name, stream):
                self._output.stream(stream, "ended", stream.end_raw_ns, stream.epoch)
                stream.state = "ended"
        if only is not None:
            stream = self._streams[only]
            newest = self._timeline_ns(stream.device, stream.raw_ns)
            if newest - self._marked_ns >= _MARK_EVERY_NS:
                self._marked_ns = newest
                self._log_marks()
        told = self.started is not None and bool(self.started.streams)
        if self.end is None or self.ended or not (told or self._settled_end or not self._live):
            return self._output.take()
        if self._all_past_end():
            end_ns = self.end.end_ns if self.end.end_ns is not None else self._last_mark_ns()
            self._end("control", end_ns)
        return self._output.take()

    def _log_marks(self) -> None:
        """Marks of all streams together, so that they travel in one batch."""
        for name, stream in self._streams.items():
            mark = self._mark_ns(name, stream) if stream.state == "opened" else None
            if stream.modality is Modality.AUDIO and self._hearing.goes_on_through_step(stream.device):
                continue  # its mark is still one of the clock as it was before
            if mark is None or (stream.logged_mark_ns is not None and mark <= stream.logged_mark_ns):
                continue
            stream.logged_mark_ns = mark
            self._output.record(MarkRecord(meeting_id=self.meeting_id, stream=name, raw_ns=mark))

    def _all_past_end(self) -> bool:
        end_ns = self._told_end_ns()
        for name, stream in self._streams.items():
            if stream.over:
                if self._outstanding(name, stream):
                    return False  # a stream that was given up may leave speech whose text is still to come
                continue
            mark = self._mark_ns(name, stream)
            if mark is None or self._timeline_ns(stream.device, mark) < end_ns:
                return False
        return True

    def _told_end_ns(self) -> int:
        return self.end.end_ns if self.end is not None and self.end.end_ns is not None else _FOREVER_NS

    def _last_mark_ns(self) -> int:
        # What was left out was there, too.
        left = {name: left.to_ns for name, left in self.left_out.streams.items()}
        ends = [
            self._timeline_ns(stream.device, max(stream.raw_ns, left.get(name, 0)))
            for name, stream in self._streams.items()
            if stream.raw_ns
        ]
        start = self.started.start_ns if self.started is not None and self.started.start_ns is not None else 0
        return max(ends, default=start)

    def _end(self, reason: Literal["control", "idle"], end_ns: int) -> None:
        if self._late:
            self._output.notice("late", f"{self._late} packets came too late and were left out.")
        for name in list(self.left_out.streams):
            self._shed_gap(self._streams[name])
        self._output.record(EndedRecord(meeting_id=self.meeting_id, reason=reason, end_ns=end_ns))
        self.ended = True
        # A flow that runs for weeks would else keep the sound and pictures of every meeting that it had.
        self._begin()
        self._output.forget()

    def _after_end(self, arrival: Arrival) -> list[Emission]:
        """What comes after the end: control and corrections have their place on the log, media is too late."""
        if isinstance(arrival.body, Packet | TranscriptMessage | OcrMessage | EndOfStream | Loss | Late):
            self._late += 1
        else:
            self._output.record(
                ControlRecord(meeting_id=self.meeting_id, control=arrival.body, source=arrival.source)
            )
        return self._output.take()

    def _give_up(self, name: str, stream: Stream) -> None:
        self._output.stream(stream, "given_up", stream.raw_ns, stream.epoch)
        stream.state = "given_up"
        if stream.sequence < 0:
            self._output.notice("no_stream", f"Nothing came from {name}.")
        elif stream.modality in (Modality.AUDIO, Modality.VIDEO):
            # Transcripts and slide texts come when there is something to say; their silence is no fault.
            self._output.gap(stream, stream.raw_ns, stream.raw_ns + 1, "silent_device")
        if stream.modality is Modality.AUDIO:
            self._hearing.give_up(stream.device)

    def _apply_decided_give_up(self, name: str) -> None:
        """A give-up of an earlier run stands at the packet where it was decided, and so does leaving out."""
        stream = self._streams[name]
        place = f"stream/{name}/{stream.epoch}/{stream.sequence}"
        if not stream.over and self._output.decided(f"{place}/given_up"):
            self._give_up(name, stream)
        elif not stream.over and self._output.decided(f"{place}/shed"):
            self._leave_out(name, stream)

    def captured_ns(self, packet: Packet) -> int:
        """When the last of a packet was captured, on the timeline, by what is known now."""
        return self._timeline_ns(packet.device_id, packet.timestamp_ns + packet.duration_ns)

    def _timeline_ns(self, device: str, raw_ns: int) -> int:
        return self._clocks.timeline_ns(device, raw_ns)

    # --- state

    _PLAIN: Final = (
        "started", "end", "ended", "_streams", "people", "_clocks", "_late", "_marked_ns", "left_out", "began_ns",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """All that is needed to go on exactly."""
        for stream in self._streams.values():
            stream.undecoded = [own_bytes(p) for p in stream.undecoded]
        plain = {name: getattr(self, name) for name in self._PLAIN}
        return plain | {"hearing": self._hearing.state(), "pictures": self._pictures.state()}

    @classmethod
    def from_state(
        cls,
        settings: PerceiveSettings,
        meeting_id: str,
        voice: VoiceActivity,
        raw: dict[str, Any],
        *,
        live: bool,
    ) -> "MeetingPerception":
        """Go on where ``state`` was taken; ``decide`` and ``resume`` come next."""
        meeting = cls(settings, meeting_id, voice, live=live)
        for name in cls._PLAIN:
            setattr(meeting, name, raw[name])
        meeting._begin()
        meeting._pictures.load(raw["pictures"])
        meeting._hearing.load(raw["hearing"], voice)
        return meeting
