"""The book of pieces: what is decided while a microphone still adds to it stays until it is closed."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

from models.speech_recogniser import Recognition, Word
from models.voice_activity import FRAME_SAMPLES
from operators.speech.endpointing import Closed, Dropped, EndpointSettings, Opened, Proposed, Resumed, Step
from operators.speech.events import PieceClosed, PieceWithdrawn, RecognitionRequest, SpeechEvent
from operators.speech.piece import quietest_after
from operators.speech.pieces import Pieces
from operators.speech.stream import FRAME_NS, Frame, SoundStream, StreamName
from operators.speech.track import Track

LONG_AFTER_NS = 2**62


def frames(first: int, count: int, margin_db: float) -> list[Frame]:
    pcm = np.zeros(FRAME_SAMPLES, np.int16)
    return [
        Frame(n * FRAME_SAMPLES, n * FRAME_NS, pcm, 0.9, -30.0, margin_db, voiced=True)
        for n in range(first, first + count)
    ]


def track(device: str) -> Track:
    return Track(SoundStream(StreamName(device, 0, 1), device, 16_000), EndpointSettings())


def test_sound_is_cut_in_the_first_quiet_place_behind_a_word() -> None:
    said = frames(0, 100, 0.0)
    for quiet in (range(40, 44), range(60, 64)):
        for place in quiet:
            said[place].level_db = -60.0
    # The word was heard to last from 1.0 s until the next one was heard, at 2.0 s.
    assert quietest_after(said, Word(1.0, 2.0, "there.", 0.9)) in range(41, 44)
    assert quietest_after(said, Word(1.6, 2.0, "there.", 0.9)) in range(61, 64)


@pytest.mark.parametrize("silent", [0, 7, 40])
@pytest.mark.parametrize("end_s", [0.0, 0.1, 0.9, 2.2])
def test_a_cut_leaves_voice_on_both_sides_wherever_a_word_is_heard(silent: int, end_s: float) -> None:
    said = frames(0, silent + 62, 0.0)
    for frame in said[:silent]:
        frame.voiced = False
    end = quietest_after(said, Word(max(0.0, end_s - 0.3), end_s, "So.", 0.9))
    assert silent + 5 <= end <= len(said) - 1


def closed(said: list[Frame]) -> Closed:
    return Closed(said, said[0], said[-1])


def answered(pieces: Pieces, texts: dict[str, str]) -> list[SpeechEvent]:
    """Answer all requests with what a device heard; the other events."""
    left: list[SpeechEvent] = []
    while events := pieces.take():
        for event in events:
            if isinstance(event, RecognitionRequest):
                pieces.result(event.piece_id, event.version, Recognition(texts[event.device]))
            else:
                left.append(event)
    return left


BAKERY = "We meet at the bakery on Monday."


def test_an_echo_that_goes_on_when_another_clock_runs_far_ahead() -> None:
    for end in (Dropped(), closed(frames(0, 20, -9.0))):
        pieces = Pieces(partials=False, speculative=True)
        own, echo = track("own"), track("echo")
        weak, strong = frames(0, 10, -9.0), frames(0, 10, 9.0)
        opening: list[tuple[Track, list[Step]]] = [
            (echo, [Opened(weak[:1]), Proposed(weak)]), (own, [Opened(strong[:1]), Proposed(strong)]),
        ]  # fmt: skip
        for each, steps in opening:
            pieces.follow(each, steps)
        answered(pieces, {"own": BAKERY, "echo": BAKERY})
        pieces.forget(LONG_AFTER_NS)
        pieces.follow(echo, [end])
        pieces.follow(own, [closed(strong)])
        answered(pieces, {"own": BAKERY, "echo": BAKERY})
        pieces.forget(LONG_AFTER_NS)
        assert pieces.dump()["pieces"] == []


@pytest.mark.parametrize(
    "then", [BAKERY, "We meet at the bakery on Monday, and Ben brings the cake with him."]
)
@pytest.mark.parametrize("first", ["own", "echo"])
@pytest.mark.parametrize("proposed", [True, False])
def test_who_repeats_whom_is_decided_by_final_texts_whatever_came_first(
    then: str, first: str, proposed: bool
) -> None:
    """The louder microphone goes on to say more, or does not: only then is known what the weaker one heard."""
    pieces = Pieces(partials=False, speculative=True)
    own, echo = track("own"), track("echo")
    weak, strong = frames(0, 10, -9.0), frames(0, 10, 9.0)
    more = frames(0, 10 if then == BAKERY else 14, 9.0)
    for each, said in ((own, strong), (echo, weak)):
        pieces.follow(each, [Opened(said[:1])])
    shown: list[SpeechEvent] = []
    if proposed:
        pieces.follow(own, [Proposed(strong)])
        shown += answered(pieces, {"own": BAKERY})
    ends: dict[str, tuple[Track, Step]] = {"own": (own, closed(more)), "echo": (echo, closed(weak))}
    for device in sorted(ends, key=lambda name: name != first):
        each, step = ends[device]
        if device == "own" and proposed and then != BAKERY:
            pieces.follow(own, [Resumed()])
        pieces.follow(each, [step])
        shown += answered(pieces, {"own": then, "echo": BAKERY})
    standing: dict[str, str] = {}
    for event in shown:
        if isinstance(event, PieceClosed):
            standing[event.device] = event.text
        elif isinstance(event, PieceWithdrawn):
            standing.pop(event.device, None)
    # A sentence that somebody says word for word is dropped; so are its first words.
    assert standing == {"own": then}
    if proposed and first == "echo" and then == BAKERY:
        assert not [e for e in shown if isinstance(e, PieceClosed) and e.device == "echo"], "never shown"


@pytest.mark.parametrize("restarted", [False, True])
def test_what_only_began_like_the_words_of_a_neighbour_stays(restarted: bool) -> None:
    """The neighbour's first words were heard as the same. In the end they were others."""
    pieces = Pieces(partials=False, speculative=True)
    own, echo = track("own"), track("echo")
    weak, strong = frames(0, 10, -9.0), frames(0, 10, 9.0)
    pieces.follow(own, [Opened(strong[:1]), Proposed(strong)])
    answered(pieces, {"own": BAKERY})
    pieces.follow(echo, [Opened(weak[:1]), closed(weak)])
    assert answered(pieces, {"echo": BAKERY}) == [], "it waits for the end of the other"
    if restarted:
        state, pieces = pieces.dump(), Pieces(partials=False, speculative=True)
        pieces.load(state)
    pieces.follow(own, [Resumed(), closed(frames(0, 12, 9.0))])
    shown = answered(pieces, {"own": "They sell eleven kinds of bread there."})
    assert {e.device: e.text for e in shown if isinstance(e, PieceClosed)} == {
        "own": "They sell eleven kinds of bread there.", "echo": BAKERY,
    }  # fmt: skip


def standing(shown: Sequence[SpeechEvent]) -> dict[str, str]:
    """What is left of all that was told, by microphone."""
    found: dict[str, str] = {}
    for event in shown:
        if isinstance(event, PieceClosed):
            found[event.device] = event.text
        elif isinstance(event, PieceWithdrawn):
            found.pop(event.device, None)
    return found


def at_level(margin_db: float, level_db: float, count: int = 10) -> list[Frame]:
    said = frames(0, count, margin_db)
    for frame in said:
        frame.level_db = level_db
    return said


def test_what_is_dropped_itself_drops_nothing() -> None:
    """The louder piece was heard, and then was too short, or the leak of a third."""
    pieces = Pieces(partials=False, speculative=True)
    own, echo = track("own"), track("echo")
    weak, strong = frames(0, 10, -9.0), frames(0, 10, 9.0)
    pieces.follow(own, [Opened(strong[:1]), Proposed(strong)])
    shown = answered(pieces, {"own": BAKERY})
    pieces.follow(echo, [Opened(weak[:1]), closed(weak)])
    shown += answered(pieces, {"echo": BAKERY})
    pieces.follow(own, [Dropped()])
    assert standing(shown + answered(pieces, {})) == {"echo": BAKERY}


CAKE = "We meet at the bakery on Monday and Ben brings the cake."
ROOMS = {
    "one recording as two devices": ({"a": at_level(3.0, -30.0), "b": at_level(3.0, -30.0)}, {}, "a|b"),
    "a circle": (
        {"a": at_level(1.0, -20.0), "b": at_level(5.0, -30.0), "c": at_level(40.0, -25.0)}, {}, "a|b|c|a c"
    ),
    "a chain": (
        {"a": at_level(-9.0, -30.0, 60), "b": at_level(0.0, -30.0, 40), "c": at_level(9.0, -30.0, 40)},
        {"a": CAKE, "b": "We meet at the bakery on Monday and Ben."}, "a c",
    ),
}  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
def test_a_sentence_is_never_dropped_at_all_microphones_and_the_order_of_answers_changes_nothing(
    room: str,
) -> None:
    heard_by, others, expected = ROOMS[room]
    texts = dict.fromkeys(heard_by, BAKERY) | others
    outcomes = set()
    for closing in permutations(heard_by):
        for answering in permutations(heard_by):
            pieces = Pieces(partials=False, speculative=True)
            tracks = {device: track(device) for device in heard_by}
            for device, said in heard_by.items():
                pieces.follow(tracks[device], [Opened(said[:1])])
            for device in closing:
                pieces.follow(tracks[device], [closed(heard_by[device])])
            asked = {e.device: e for e in pieces.take() if isinstance(e, RecognitionRequest)}
            for device in answering:
                pieces.result(asked[device].piece_id, asked[device].version, Recognition(texts[device]))
            outcomes.add(" ".join(sorted(standing(pieces.take()))))
    assert len(outcomes) == 1
    assert outcomes <= set(expected.split("|"))
