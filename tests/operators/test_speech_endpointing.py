"""Where pieces begin and end, on made-up frames."""

import itertools

import numpy as np
import pytest

from operators.speech.endpointing import (
    Asked,
    Closed,
    Dropped,
    Endpointer,
    EndpointSettings,
    Grew,
    Opened,
    Proposed,
    Resumed,
    Step,
)
from operators.speech.stream import FRAME_NS, Frame

SETTINGS = EndpointSettings()


def frames(pattern: str) -> list[Frame]:
    """One frame a character: V voiced, anything else silent; q is quieter than the rest."""
    made = []
    for number, kind in enumerate(pattern):
        level = {"V": -20.0, "q": -60.0}.get(kind, -50.0)
        made.append(
            Frame(
                number * 512, number * FRAME_NS, np.zeros(512, np.int16), level_db=level, voiced=kind == "V"
            )
        )
    return made


def run(pattern: str, settings: EndpointSettings = SETTINGS) -> list[tuple[int, Step]]:
    """Steps with the number of the frame they came at."""
    endpointer = Endpointer(settings)
    return [(number, step) for number, frame in enumerate(frames(pattern)) for step in endpointer.feed(frame)]


def names(steps: list[tuple[int, Step]]) -> list[str]:
    return [type(step).__name__ for _, step in steps]


def test_the_first_silent_frame_proposes_and_the_pause_closes_the_same_range() -> None:
    steps = run("." * 20 + "V" * 10 + "." * 25)
    assert names(steps) == ["Opened", "Proposed", "Closed"]
    assert [number for number, _ in steps] == [20, 30, 29 + SETTINGS.hang_over_frames]
    opened, proposed, closed = (step for _, step in steps)
    assert isinstance(opened, Opened) and isinstance(proposed, Proposed) and isinstance(closed, Closed)
    assert opened.frames[0].index == (20 - SETTINGS.pre_roll_frames) * 512
    assert [f.index for f in closed.frames] == [f.index for f in proposed.frames]
    assert (closed.first_voiced.index, closed.last_voiced.index) == (20 * 512, 29 * 512)


def test_speech_that_goes_on_takes_the_proposal_back() -> None:
    steps = run("." * 8 + "V" * 6 + "...." + "V" * 6 + "." * 26)
    assert names(steps) == ["Opened", "Proposed", "Resumed", "Proposed", "Closed"]
    last = steps[-1][1]
    assert isinstance(last, Closed)
    assert last.last_voiced.index == 23 * 512


def test_a_click_in_the_pause_is_no_speech() -> None:
    steps = run("." * 8 + "V" * 6 + "....V" + "." * 26)
    assert names(steps) == ["Opened", "Proposed", "Closed"]
    last = steps[-1][1]
    assert isinstance(last, Closed)
    assert last.last_voiced.index == 13 * 512


def test_a_blip_is_dropped_and_one_word_is_kept() -> None:
    assert names(run("." * 8 + "VVV" + "." * 26)) == ["Opened", "Dropped"]
    assert names(run("." * 8 + "V" * 6 + "." * 26)) == ["Opened", "Proposed", "Closed"]


def test_pieces_never_overlap() -> None:
    steps = run(("V" * 8 + "." * 25) * 3)
    ranges = [(s.frames[0].index, s.frames[-1].index) for _, s in steps if isinstance(s, Closed)]
    assert len(ranges) == 3
    assert all(before[1] < after[0] for before, after in itertools.pairwise(ranges))


def test_a_long_piece_ends_at_a_shorter_pause() -> None:
    assert "Closed" not in names(run("V" * 250 + "." * 12 + "V"))
    assert "Closed" in names(run("V" * 320 + "." * 12 + "V"))
    assert "Closed" in names(run("V" * 410 + "." * 6 + "V"))
    # Where several people share a microphone, a pause is more often another person's turn.
    assert "Closed" in names(asked("V" * 100 + "." * 15 + "V", None))


def test_speech_without_a_pause_is_cut_at_its_quietest_place() -> None:
    pattern = "V" * 439 + "q" + "V" * 60 + "." * 26
    steps = run(pattern)
    pieces = [step for _, step in steps if isinstance(step, Closed)]
    assert len(pieces) == 2
    assert len(pieces[0].frames) <= SETTINGS.max_frames
    assert abs(pieces[0].frames[-1].index // 512 - 439) <= 1
    # Nothing is lost between the two.
    assert pieces[1].frames[0].index == pieces[0].frames[-1].index + 512
    assert pieces[1].last_voiced.index == 499 * 512


def test_partials_come_at_a_steady_pace() -> None:
    grew = [number for number, step in run("V" * 100) if isinstance(step, Grew)]
    assert grew[0] == SETTINGS.first_partial_frames - 1
    assert set(np.diff(grew)) == {SETTINGS.partial_every_frames}


def test_a_partial_is_spared_where_a_proposal_has_just_shown_the_same() -> None:
    steps = run("V" * 45 + "s" * 2 + "V" * 45)
    asked = [(number, type(step)) for number, step in steps if isinstance(step, Grew | Proposed)]
    (proposed,) = (number for number, kind in asked if kind is Proposed)
    after = next(number for number, kind in asked if kind is Grew and number > proposed)
    assert after - proposed >= SETTINGS.partial_every_frames - 1


def test_long_pieces_have_fewer_partials() -> None:
    grew = [number for number, step in run("V" * 400) if isinstance(step, Grew)]
    assert set(np.diff(grew)[:2]) == {SETTINGS.partial_every_frames}
    assert grew[-1] - grew[-2] >= grew[-2] // SETTINGS.partial_part > 2 * SETTINGS.partial_every_frames


def test_a_gap_closes_the_piece() -> None:
    endpointer = Endpointer(SETTINGS)
    made = frames("V" * 20)
    made[10].after_gap = True
    steps = [step for frame in made for step in endpointer.feed(frame)]
    assert [type(step) for step in steps if not isinstance(step, Grew)] == [Opened, Closed, Opened]


def test_flush_closes_what_is_open() -> None:
    endpointer = Endpointer(SETTINGS)
    for frame in frames("V" * 10):
        endpointer.feed(frame)
    assert [type(step) for step in endpointer.flush()] == [Closed]
    assert endpointer.flush() == []


def test_state_is_taken_up_exactly() -> None:
    rng = np.random.default_rng(3)
    pattern = "".join("V" if voiced else "." for voiced in np.repeat(rng.random(80) < 0.6, 13))
    straight = [(n, type(s), getattr(s, "frames", None) and s.frames[-1].index) for n, s in run(pattern)]  # type: ignore[union-attr]
    endpointer, restored = Endpointer(SETTINGS), []
    for number, frame in enumerate(frames(pattern)):
        if rng.random() < 0.2:
            endpointer = Endpointer.load(SETTINGS, endpointer.dump())
        for step in endpointer.feed(frame):
            last = step.frames[-1].index if not isinstance(step, Resumed | Dropped) else None
            restored.append((number, type(step), last))
    assert restored == straight


def test_hysteresis() -> None:
    endpointer = Endpointer(SETTINGS)
    found = [endpointer.voiced(p, own=True) for p in (0.4, 0.6, 0.4, 0.3, 0.4)]
    assert found == [False, True, True, False, False]
    assert not endpointer.voiced(0.9, own=False)


def test_settings_refuse_what_loses_speech() -> None:
    with pytest.raises(ValueError, match="tail_frames"):
        EndpointSettings(tail_frames=0)
    with pytest.raises(ValueError, match="cut_window_frames"):
        EndpointSettings(max_frames=50)


def asked(
    pattern: str,
    answer: int | None,
    *,
    shared: bool = True,
    reload: bool = False,
    settings: EndpointSettings = SETTINGS,
) -> list[tuple[int, Step]]:
    """Steps of a shared microphone; every question is answered at once: the end that was asked for, plus `answer`."""
    endpointer, steps = Endpointer(settings, shared=shared), []
    for number, frame in enumerate(frames(pattern)):
        found = endpointer.feed(frame)
        while endpointer.asking:
            if reload:
                endpointer = Endpointer.load(settings, endpointer.dump())
            found += endpointer.go_on(None if answer is None else endpointer.asking + answer)
        steps += [(number, step) for step in found]
    return steps


def paused(shared: bool) -> str:
    """Speech with the shortest pause at which it is asked, in the shortest piece."""
    pause, length = SETTINGS.asks_after(shared)
    return "V" * length + "." * pause + "V" * 20 + "." * 26


PAUSED = paused(shared=True)


@pytest.mark.parametrize("shared", [True, False])
def test_a_short_pause_ends_a_piece_where_a_sentence_ends(shared: bool) -> None:
    pattern = paused(shared)
    steps = asked(pattern, 0, shared=shared)
    pieces = [step for _, step in steps if isinstance(step, Closed)]
    (question,) = (step for _, step in steps if isinstance(step, Asked))
    assert question.pause
    assert [f.index for f in question.frames] == [f.index for f in pieces[0].frames]
    assert pieces[0].last_voiced.index == (SETTINGS.asks_after(shared)[1] - 1) * 512
    assert pieces[1].frames[0].index == pieces[0].frames[-1].index + 512
    assert pieces[1].last_voiced.index == (pattern.rindex("V")) * 512


def test_nobody_asks_at_a_shorter_pause_or_in_a_shorter_piece() -> None:
    own = paused(shared=False)
    short = (
        (PAUSED.replace("V.", "V", 1), True),
        (PAUSED[1:], True),
        (own.replace("V.", "V", 1), False),
        (own[1:], False),
    )
    for pattern, shared in (*short, (PAUSED, False)):
        steps = names(asked(pattern, 0, shared=shared))
        assert "Asked" not in steps
        assert steps.count("Closed") == 1


def test_where_no_sentence_ends_everything_is_as_if_nobody_had_asked() -> None:
    rng = np.random.default_rng(5)
    pattern = "".join("V" if voiced else "." for voiced in np.repeat(rng.random(60) < 0.75, 7))
    alike = EndpointSettings(shared_pauses=SETTINGS.shorter_pauses)
    silent = EndpointSettings(sentence_after_frames=10**6)
    straight, questioned = run(pattern, silent), asked(pattern, None, reload=True, settings=alike)
    kept = (Opened, Proposed, Closed, Dropped)
    assert sum(isinstance(step, Asked) for _, step in questioned) > 3

    def ranges(steps: list[tuple[int, Step]]) -> list[tuple[int, type[Step], int]]:
        return [
            (n, type(s), 0 if isinstance(s, Dropped) else s.frames[-1].index)
            for n, s in steps
            if isinstance(s, kept)
        ]

    assert ranges(straight) == ranges(questioned)


def test_speech_without_a_pause_is_looked_through_and_cut_where_it_is_told() -> None:
    steps = asked("V" * 300 + "." * 26, -40)
    questions = [number for number, step in steps if isinstance(step, Asked)]
    assert questions[0] == SETTINGS.look_after_frames - 1
    pieces = [step for _, step in steps if isinstance(step, Closed)]
    assert len(pieces[0].frames) == SETTINGS.look_after_frames - 40
    # Nothing is lost and nothing is there twice.
    indices = [frame.index for piece in pieces for frame in piece.frames if frame.voiced]
    assert indices == [n * 512 for n in range(300)]
