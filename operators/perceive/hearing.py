"""What the microphones of one meeting hear: recognition asked for, and its answers turned into records."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from contracts.messages import MeetingStarted, PartialText
from contracts.packet import Modality
from models.speech_recogniser import Recognition
from models.voice_activity import VoiceActivity
from operators.perceive.clocks import DeviceClocks
from operators.perceive.output import Output
from operators.perceive.people import People, told_from
from operators.perceive.pictures import MeetingPictures
from operators.perceive.records import as_recognition, heard_record, withdrawn_record
from operators.perceive.types import PerceiveSettings, Stream
from operators.speech.events import (
    MicrophoneDead,
    PieceClosed,
    PieceText,
    PieceWithdrawn,
    RecognitionRequest,
    SoundLate,
    SpeechEvent,
)
from operators.speech.foreign import NOT_ENGLISH, ForeignSettings
from operators.speech.names import correct_names
from operators.speech.pool import PoolFull, Superseded
from operators.speech.recognise import MeetingSpeech, SpeechSettings


class Hearing:
    """All microphones of one meeting. Streams, people, clocks and pictures are the meeting's; this only reads them."""

    _PLAIN: Final = ("_foreign", "_hurried")

    def __init__(
        self, settings: PerceiveSettings, voice: VoiceActivity, output: Output, streams: Mapping[str, Stream],
        people: People, clocks: DeviceClocks, pictures: MeetingPictures, *, live: bool,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._live = live
        self._output = output
        self._streams = streams
        self._people = people
        self._clocks = clocks
        self._pictures = pictures
        self._foreign = ForeignSettings().build()
        self._hurried = False
        self._held: list[RecognitionRequest] = []
        """Waiting for slides. A restart asks for what had no answer anew."""
        self._speech = MeetingSpeech(_speech_settings(settings, live), voice)

    # --- sound in

    def push(
        self, stream: Stream, raw_ns: int, samples: npt.NDArray[np.int16], rate_hz: int,
        started: MeetingStarted | None,
    ) -> None:  # fmt: skip
        """Samples (n, channels) of one block."""
        device, people = stream.device, self._people
        channels = samples.shape[1]
        mapped = [c for c in range(channels) if (device, c) in people.speakers]
        arrangement = None if mapped else people.arrangement(device, channels)
        if not mapped and channels > 1 and arrangement is None:
            # Nobody says who sits where: one voice track, as a mixed recording.
            samples = np.asarray(np.round(samples.mean(axis=1, keepdims=True)), dtype=np.int16)
        for channel in mapped or [0]:
            speaker = people.speakers.get((device, channel))
            if speaker is None and started is not None and started.implicit:
                speaker = device
            self._speech.open_stream(device, channel, speaker, rate_hz, stream.epoch, arrangement)
        later_ns = self._clocks.ways.later_ns(device)
        offset_ns = raw_ns - self._clocks.timeline_ns(device, raw_ns) - later_ns
        self._speech.set_clock_offset(device, offset_ns, stream.clock)
        clock_set = raw_ns in stream.clock_set_at
        stream.clock_set_at.discard(raw_ns)
        self._speech.push(device, stream.epoch, raw_ns, samples, clock_set=clock_set)
        self.advance()
        # By now some of it may have waited for too long.
        self.slides_went_on()

    def advance(self) -> None:
        """Go on as far as the sound of all microphones that are waited for has come."""
        self._speech.wait_for_clocks(self._clocks.ways.unsure())
        self._speech.expect(
            frozenset(s.device for s in self._streams.values() if s.modality is Modality.AUDIO and not s.over)
        )
        for event in self._speech.advance():
            self._event(event)

    def end_of_stream(self, device: str) -> None:
        """No more sound of this device will follow."""
        self._speech.end_of_stream(device)
        self.advance()

    def give_up(self, device: str) -> None:
        """A device is silent. Somebody may have been in the middle of a sentence."""
        self._speech.give_up(device)
        self.advance()

    def undecided_ns(self, stream: Stream) -> int:
        """Raw time before which no further piece of a stream starts: its mark."""
        try:
            mark_ns = self._speech.mark_ns(stream.device)
        except KeyError:
            mark_ns = stream.raw_ns
        return min([mark_ns, *(packet.timestamp_ns for packet in stream.undecoded)])

    def unanswered(self, device: str) -> int:
        """How many pieces of a device wait for the answer that decides them."""
        return self._speech.unanswered(device)

    @property
    def held_up(self) -> bool:
        """Whether further sound waits for an answer."""
        return self._speech.held_up

    def goes_on_through_step(self, device: str) -> bool:
        """Whether something that began before the device's clock was last set is not decided."""
        return self._speech.goes_on_through_step(device)

    # --- answers

    def recognised(self, request: RecognitionRequest, found: Recognition | Exception) -> None:
        """The answer to a recognition request."""
        if isinstance(found, Superseded):
            return
        if isinstance(found, PoolFull):
            self._speech.failed(request.piece_id, request.version)
            stream = self._streams[f"{request.device}/audio"]
            self._output.gap(stream, request.start_ns, request.end_ns, "shed")
            self._output.notice("shed", "Recognition did not keep up; some speech was left out.")
        elif isinstance(found, Exception):
            self._speech.failed(request.piece_id, request.version)
            self._output.notice("recognition_failed", "Some speech could not be recognised.")
        else:
            if found.hurried and not self._hurried:
                self._hurried = True
                self._output.notice(
                    "hurried",
                    "Recognition was behind for a while: doubtful words were not listened to a second time.",
                )
            self._speech.result(request.piece_id, request.version, found)
        self.advance()

    def slides_went_on(self) -> None:
        """Slides may have been read, or have turned out to be none: speech that waited for them may go."""
        held, self._held = self._held, []
        for request in held:
            self._hear(request)

    def _event(self, event: SpeechEvent) -> None:
        if isinstance(event, RecognitionRequest):
            decided = self._output.decided_text(event.piece_id, event.version)
            if decided is not None:
                self._speech.result(event.piece_id, event.version, as_recognition(decided, event.start_ns))
                self.advance()
            elif event.kind != "partial":
                self._hear(event)
            elif self._live:
                self._ask(event)
        elif isinstance(event, PieceText) and event.state == "partial":
            self._partial(event)
        elif isinstance(event, PieceText | PieceClosed):
            self._utterance(event)
        elif isinstance(event, PieceWithdrawn):
            stream = self._streams[f"{event.device}/audio"]
            mark = self.undecided_ns(stream)
            self._output.record(
                withdrawn_record(self._output.meeting_id, event.piece_id, event.version, stream, mark)
            )
        elif isinstance(event, MicrophoneDead):
            whose = f" ({event.speaker})" if event.speaker else ""
            self._output.notice(
                "dead_microphone",
                f"Microphone {event.device}{whose} gave no sound while others spoke: it may be off, muted or broken.",
            )
        elif isinstance(event, SoundLate):
            self._output.notice(
                "late_sound",
                f"Sound of {event.device} came so late that who spoke was decided without it.",
            )

    def _hear(self, request: RecognitionRequest) -> None:
        """Ask for words, once every slide is read of which recognition is to be told.

        Else the words would depend on how fast slides are read. Who is late beyond all measure is not waited for.
        """
        late_ns = self._streams[f"{request.device}/audio"].raw_ns - request.start_ns
        at_ns = self._clocks.timeline_ns(request.device, request.start_ns)
        if self._slides_unread(at_ns) and late_ns / 1e9 <= self._settings.late_s:
            self._held = [h for h in self._held if h.piece_id != request.piece_id] + [request]
        else:
            self._ask(request)

    def _ask(self, request: RecognitionRequest) -> None:
        self._output.ask(replace(request, hotwords=self._terms(request.device, request.start_ns)))

    def _slides_unread(self, at_ns: int) -> bool:
        """Whether a slide may come out of what is being decoded or read that speech at this time is to know of."""
        for name, stream in self._streams.items():
            if stream.modality is Modality.VIDEO:
                undone_ns = self._pictures.undone_ns(name)
                if undone_ns is None:
                    continue
                if told_from(self._clocks.timeline_ns(stream.device, undone_ns)) <= at_ns:
                    return True
        return False

    def _terms(self, device: str, raw_ns: int) -> tuple[str, ...]:
        """What recognition should expect of speech that began at a raw time of a device."""
        return self._people.terms(self._clocks.timeline_ns(device, raw_ns), self._clocks.seen_ns)

    # --- records

    def _partial(self, piece: PieceText) -> None:
        if self._live:
            self._output.ask(
                PartialText(
                    meeting_id=self._output.meeting_id, piece_id=piece.piece_id, version=piece.version,
                    device=piece.device, speaker=self._speaker(piece),
                    start_ns=self._clocks.timeline_ns(piece.device, piece.start_ns),
                    end_ns=self._clocks.timeline_ns(piece.device, piece.end_ns), text=piece.text,
                    boundary_ms=piece.boundary_ms,
                )
            )  # fmt: skip

    def _utterance(self, piece: PieceText | PieceClosed) -> None:
        people = self._people
        terms = self._terms(piece.device, piece.samples_start_ns)
        text, _ = correct_names(piece.text, people.names, self._settings.ordinary_words, terms)
        stream = self._streams[f"{piece.device}/audio"]
        speaker = self._speaker(piece)
        clock = self._speech.clock_of(piece.device, piece.piece_id)
        mark_ns = self.undecided_ns(stream)
        if isinstance(piece, PieceClosed) and piece.follows_ns is not None:
            mark_ns = min(mark_ns, piece.follows_ns)
        self._output.record(
            heard_record(
                self._output.meeting_id, piece, stream, clock=clock, text=text, speaker=speaker, mark_ns=mark_ns,
            )
        )  # fmt: skip
        if not isinstance(piece, PieceClosed):
            return
        claimed = people.claimed_seat(speaker, text)
        if claimed is not None:
            self._output.notice(
                "swapped_microphone",
                f"Somebody at {piece.device}, the microphone of {speaker}, said to be {claimed}: microphones may be "
                "swapped.",
            )
        microphone = piece.piece_id.rpartition("/")[0]
        if self._foreign.heard(microphone, (piece.end_ns - piece.start_ns) / 1e9, piece.words):
            self._output.notice("not_english", NOT_ENGLISH)
        for start_ns, end_ns in piece.gaps:
            self._output.gap(stream, start_ns, end_ns, "lost")

    def _speaker(self, piece: PieceText | PieceClosed) -> str | None:
        return self._people.speaker(
            piece.device, piece.speaker, piece.start_ns, piece.end_ns,
            lambda raw_ns: self._clocks.timeline_ns(piece.device, raw_ns),
        )  # fmt: skip

    # --- state

    def state(self) -> dict[str, Any]:
        """All that is needed to go on exactly."""
        return {name: getattr(self, name) for name in self._PLAIN} | {"speech": self._speech.state()}

    def load(self, raw: dict[str, Any], voice: VoiceActivity) -> None:
        """Go on where ``state`` was taken."""
        for name in self._PLAIN:
            setattr(self, name, raw[name])
        self._speech = MeetingSpeech.from_state(
            _speech_settings(self._settings, self._live), voice, raw["speech"]
        )


def _speech_settings(settings: PerceiveSettings, live: bool) -> SpeechSettings:
    """Nobody waits for the text of a file: each piece is recognised once, when it is whole."""
    return settings.speech if live else replace(settings.speech, partials=False, speculative=False)
