"""The slide watcher on drawn frames: lists of (time, picture) in, events out."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence

import cv2
import numpy as np
import pytest

from models.slide_reader import TextLine
from operators.pictures.picture import Luma, small_luma
from operators.pictures.slides import Slide, SlideCandidate, SlideEvent, SlideSettings, SlideWatcher

SECOND = 1_000_000_000


def slide(*lines: str, dark: bool = False) -> Luma:
    """A slide with large lines of text, as the small frame of a 1280x720 picture."""
    picture = np.full((720, 1280), 30 if dark else 245, np.uint8)
    for row, text in enumerate(lines):
        ink = 230 if dark else 20
        cv2.putText(picture, text, (80, 120 + 90 * row), cv2.FONT_HERSHEY_SIMPLEX, 1.6, ink, 3, cv2.LINE_AA)
    return small_luma(picture)


A = slide("Launch date", "Thursday, 26 March", "Testing complete")
B = slide("Budget for the launch", "Advertising 4,000", "Hosting 1,500")
C = slide("Old desktop version", "Active users: 41")


def hold(picture: Luma, start_s: float, end_s: float, step_s: float = 0.5) -> list[tuple[int, Luma]]:
    times = np.arange(start_s, end_s - 1e-9, step_s)
    return [(round(float(t) * SECOND), picture) for t in times]


def lines(text: str) -> list[TextLine]:
    return [TextLine(text, (0.1, 0.1, 0.5, 0.2), 0.99)]


def watch(
    watcher: SlideWatcher, frames: Sequence[tuple[int, Luma]], read: bool = True, sharpness: float = 100.0
) -> list[SlideEvent]:
    """Feeds frames; answers each candidate with its frame's time as text where `read` says so."""
    events: list[SlideEvent] = []
    for timestamp_ns, luma in frames:
        for event in watcher.observe(timestamp_ns, luma, sharpness):
            events.append(event)
            if read and isinstance(event, SlideCandidate):
                events += watcher.read(event.frame_ns, lines(f"text at {event.start_ns}"))
    return events


def candidates(events: Sequence[SlideEvent]) -> list[float]:
    return [event.start_ns / SECOND for event in events if isinstance(event, SlideCandidate)]


def test_each_slide_is_asked_for_once_from_its_first_frame() -> None:
    frames = hold(A, 0, 4) + hold(B, 4, 8) + hold(C, 8, 12)
    events = watch(SlideSettings().build(), frames)
    assert candidates(events) == [0.0, 4.0, 8.0]
    shown = [event for event in events if isinstance(event, Slide)]
    assert [each.start_ns for each in shown] == [0, 4 * SECOND, 8 * SECOND]
    assert not any(each.known for each in shown)


def test_two_key_frames_are_enough() -> None:
    assert candidates(watch(SlideSettings().build(), hold(A, 0, 4, 2.0) + hold(B, 4, 8, 2.0))) == [0.0, 4.0]


def test_a_slide_passed_over_quickly_is_not_read() -> None:
    frames = hold(A, 0, 3, 0.2) + hold(B, 3, 3.4, 0.2) + hold(C, 3.4, 6, 0.2)
    assert candidates(watch(SlideSettings().build(), frames)) == pytest.approx([0.0, 3.4])


def test_a_build_is_another_reading() -> None:
    first, second = slide("Where we stand", "Errors: 9"), slide("Where we stand", "Errors: 9", "Import")
    assert candidates(watch(SlideSettings().build(), hold(first, 0, 3) + hold(second, 3, 6))) == [0.0, 3.0]


def test_a_fade_is_read_when_it_is_over() -> None:
    fade = [
        (round((3 + i / 10) * SECOND), np.asarray(cv2.addWeighted(A, 1 - i / 10, B, i / 10, 0), np.uint8))
        for i in range(10)
    ]
    events = watch(SlideSettings().build(), hold(A, 0, 3) + fade + hold(B, 4, 7, 0.2))
    assert len(candidates(events)) == 2
    assert 3.3 <= candidates(events)[1] <= 4.0


def test_flipping_back_is_known_and_costs_no_reading() -> None:
    frames = hold(A, 0, 3) + hold(B, 3, 6) + hold(A, 6, 9) + hold(B, 9, 12)
    events = watch(SlideSettings().build(), frames)
    assert candidates(events) == [0.0, 3.0]
    known = [event for event in events if isinstance(event, Slide) and event.known]
    assert [(each.start_ns, each.text) for each in known] == [
        (6 * SECOND, "text at 0"),
        (9 * SECOND, f"text at {3 * SECOND}"),
    ]


def test_a_mouse_pointer_is_no_change() -> None:
    frames = hold(A, 0, 2)
    for index in range(20):
        pointed = A.copy()
        pointed[80 + index : 86 + index, 60 + 10 * index : 64 + 10 * index] = 0
        frames.append((round((2 + index * 0.3) * SECOND), pointed))
    assert candidates(watch(SlideSettings().build(), frames)) == [0.0]


def test_a_video_in_a_corner_makes_no_storm_of_readings() -> None:
    noise = np.random.default_rng(5)
    frames = []
    for index in range(80):
        picture = (A if index < 40 else B).copy()
        picture[120:180, 220:320] = noise.integers(0, 255, (60, 100), dtype=np.uint8)
        frames.append((round(index * 0.5 * SECOND), picture))
    events = watch(SlideSettings().build(), frames)
    assert len(candidates(events)) == 2
    assert candidates(events)[1] == pytest.approx(20.0)


def test_dark_slides_change_too() -> None:
    frames = hold(slide("One", "two", dark=True), 0, 2) + hold(slide("Three", "four", dark=True), 2, 4)
    assert candidates(watch(SlideSettings().build(), frames)) == [0.0, 2.0]


def test_waits_while_the_picture_gets_sharper() -> None:
    watcher = SlideSettings().build()
    found = [watcher.observe(t * SECOND // 2, A, 100.0 * 1.3**t) for t in range(4)]
    assert found == [[], [], [], []]
    assert watcher.observe(2 * SECOND, A, 100.0 * 1.3**3) == [SlideCandidate(0, 2 * SECOND)]


def test_the_same_text_again_is_no_new_slide() -> None:
    watcher = SlideSettings().build()
    shown: list[Slide] = []
    for timestamp_ns, luma in hold(A, 0, 2) + hold(slide("Launch date", "Thursday"), 2, 4):
        for event in watcher.observe(timestamp_ns, luma, 1.0):
            assert isinstance(event, SlideCandidate)
            shown += watcher.read(event.frame_ns, lines("same"))
    assert [each.start_ns for each in shown] == [0]


def test_readings_may_come_late_and_a_flip_back_waits_for_them() -> None:
    watcher = SlideSettings().build()
    asked = watch(watcher, hold(A, 0, 2) + hold(B, 2, 4) + hold(A, 4, 6), read=False)
    assert candidates(asked) == [0.0, 2.0]
    assert watcher.open_since_ns == 0
    first, second = (event for event in asked if isinstance(event, SlideCandidate))
    assert [s.start_ns for s in watcher.read(first.frame_ns, lines("a"))] == [0]
    assert watcher.open_since_ns == 2 * SECOND
    assert [s.start_ns for s in watcher.read(second.frame_ns, lines("b"))] == [2 * SECOND]
    assert watcher.open_since_ns is None


def test_a_failed_reading_is_asked_again_and_then_given_up() -> None:
    watcher = SlideSettings().build()
    (first,) = watch(watcher, hold(A, 0, 1.5), read=False)
    assert isinstance(first, SlideCandidate)
    assert watcher.failed(first.frame_ns) == []
    (again,) = watch(watcher, hold(A, 1.5, 4), read=False)
    assert isinstance(again, SlideCandidate)
    assert again.start_ns == 0 and again.frame_ns > first.frame_ns
    assert watcher.failed(again.frame_ns) == [Slide(0, "", (), known=False)]
    assert watcher.open_since_ns is None
    assert watch(watcher, hold(A, 4, 8), read=False) == []


def test_a_failed_slide_that_has_gone_lets_the_mark_go() -> None:
    watcher = SlideSettings().build()
    (first,) = watch(watcher, hold(A, 0, 1.5), read=False)
    assert isinstance(first, SlideCandidate)
    watcher.failed(first.frame_ns)
    watch(watcher, hold(B, 1.5, 9))
    assert watcher.open_since_ns is None
    # Seen another time, it is read.
    assert candidates(watch(watcher, hold(A, 9, 11))) == [9.0]


def test_state_goes_on_with_the_same_events_from_any_moment() -> None:
    frames = hold(A, 0, 3, 0.3) + hold(B, 3, 6, 0.3) + hold(A, 6, 8, 0.3) + hold(C, 8, 10, 0.3)
    whole = watch(SlideSettings().build(), frames)
    for cut in range(len(frames)):
        before = SlideSettings().build()
        events = watch(before, frames[:cut])
        state = pickle.loads(pickle.dumps(before.state()))
        after = SlideWatcher.from_state(SlideSettings(), state)
        assert events + watch(after, frames[cut:]) == whole


def test_state_is_small_and_bounded() -> None:
    watcher = SlideSettings().build()
    for index in range(60):
        picture = slide(f"Slide number {index}", f"{index} " * 12, f"{index * 7} points")
        watch(watcher, hold(picture, index, index + 1))
    assert len(pickle.dumps(watcher.state())) < 200_000


def test_refuses_settings_and_states_it_cannot_honour() -> None:
    with pytest.raises(ValueError, match="settle_ns"):
        SlideSettings(settle_ns=0)
    with pytest.raises(ValueError, match="format"):
        SlideWatcher.from_state(SlideSettings(), json.loads('{"format": 99}'))


def test_stamps_that_go_back_start_anew() -> None:
    watcher = SlideSettings().build()
    watch(watcher, hold(A, 100, 103))
    assert candidates(watch(watcher, hold(B, 0, 3))) == [0.0]
