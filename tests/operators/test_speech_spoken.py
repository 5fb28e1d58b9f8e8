"""What a piece is told of the one before it: after short pauses only, whatever becomes of that one, whenever it is heard."""

import numpy as np
import pytest

from models.speech_recogniser import Recognition, Word
from models.voice_activity import FRAME_SAMPLES
from operators.speech.endpointing import EndpointSettings
from operators.speech.events import PieceClosed, RecognitionRequest, SpeechEvent
from operators.speech.pieces import Pieces
from operators.speech.stream import FRAME_NS, Frame, SoundStream, StreamName
from operators.speech.track import Track

FIRST = range(10, 50)
HEARD = Recognition("we meet", (Word(0.2, 0.5, "we", 0.9), Word(0.5, 0.9, "meet", 0.9)))


class Microphone:
    """Frames of one microphone; whoever looks at a frame's samples sees its number."""

    def __init__(self) -> None:
        self.pieces = Pieces(partials=False, speculative=True)
        self.track = Track(SoundStream(StreamName("mic", 0, 1), "Anna", 16_000), EndpointSettings())
        self.next = 0

    def until(self, last: int, *voiced: range) -> list[SpeechEvent]:
        for number in range(self.next, last):
            speaks = any(number in each for each in voiced)
            pcm = np.full(FRAME_SAMPLES, number, np.int16)
            frame = Frame(number * FRAME_SAMPLES, number * FRAME_NS, pcm, 0.9 * speaks, -30.0, voiced=speaks)
            self.pieces.follow(self.track, self.track.feed(frame))
        self.next = last
        return self.pieces.take()

    def again(self) -> None:
        """Go on from a snapshot."""
        pieces, track = (
            Pieces(partials=False, speculative=True),
            Track.load(EndpointSettings(), self.track.dump()),
        )
        pieces.load(self.pieces.dump())
        self.pieces, self.track = pieces, track


def asked(events: list[SpeechEvent]) -> list[RecognitionRequest]:
    return [event for event in events if isinstance(event, RecognitionRequest)]


def second(pause: int) -> range:
    return range(FIRST.stop + pause, FIRST.stop + pause + 40)


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_piece_is_told_what_was_said_before_it_however_late_that_is_heard(
    late: bool, restart: bool
) -> None:
    mic = Microphone()
    later = second(30)
    (first,) = asked(mic.until(80, FIRST))
    assert first.before is None
    if not late:
        mic.pieces.result(first.piece_id, first.version, HEARD)
        mic.pieces.take()
    if restart:
        mic.again()
        (first,) = asked(mic.pieces.take()) if late else (first,)
        assert first.voice == pytest.approx(0.9)
    requests = asked(mic.until(later.stop + 2, later))
    if late:
        assert requests == []
        mic.pieces.result(first.piece_id, first.version, HEARD)
        requests = asked(mic.pieces.take())
    (request,) = requests
    assert request.voice == pytest.approx(0.9)
    before = request.before
    assert before is not None
    assert before.words == HEARD.words
    # The first piece starts with seven frames of its pre-roll and ends one after its voice.
    assert before.end_s == pytest.approx(48 * 0.032)
    numbers = np.rint(before.samples[::FRAME_SAMPLES] * 32768).astype(int)
    assert numbers.tolist() == list(range(3, later.start - 7))
    assert np.rint(request.samples[0] * 32768) == later.start - 7


def test_after_a_long_pause_or_nothing_heard_nothing_is_told() -> None:
    for pause, heard in ((60, HEARD), (30, Recognition("", suppressed="no speech"))):
        mic = Microphone()
        later = second(pause)
        (first,) = asked(mic.until(90, FIRST))
        mic.pieces.result(first.piece_id, first.version, heard)
        (request,) = asked(mic.until(later.stop + 2, later))
        assert request.before is None


def test_the_next_piece_is_told_even_of_what_was_dropped_as_an_echo() -> None:
    mic = Microphone()
    mic.until(60, FIRST)
    (piece,) = mic.pieces._pieces.values()
    piece.heard, piece.recognition = HEARD, HEARD
    mic.pieces._drop(piece, "cross-talk")
    later = second(30)
    mic.until(80, FIRST)
    (request,) = asked(mic.until(later.stop + 2, later))
    assert request.before is not None
    assert request.before.words == HEARD.words


def test_a_piece_that_waits_is_closed_after_the_one_it_waits_for() -> None:
    mic = Microphone()
    later = second(30)
    (first,) = asked(mic.until(80, FIRST))
    assert asked(mic.until(later.stop + 40, later)) == []
    mic.pieces.result(first.piece_id, first.version, HEARD)
    events = mic.pieces.take()
    (request,) = asked(events)
    mic.pieces.result(request.piece_id, request.version, HEARD)
    closed = [event.piece_id for event in [*events, *mic.pieces.take()] if isinstance(event, PieceClosed)]
    assert closed == [first.piece_id, request.piece_id]
