"""From a camera's features on the log to minutes: a vote by hands, its twin, a camera that was late, a cut step."""

import datetime
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from contracts.messages import AttendeeInfo, MeetingStarted
from contracts.minutes import Evidence, Item, MinutesDocument, Versions
from contracts.packet import ClockKind, Modality, Packet, encode
from contracts.timeline import (
    AnyRecord,
    ClockRecord,
    ControlRecord,
    EndedRecord,
    MarkRecord,
    Prosody,
    SlideRecord,
    StreamRecord,
    UtteranceRecord,
)
from devices.rooms.camera import HEIGHT, WIDTH, Figure, pictures
from devices.rooms.timing import FRAMES_PER_SECOND
from flows.files import MinutesOfLog, is_features, log_line
from operators.align.aligned import Aligned, Ended
from operators.align.grid import AlignSettings
from operators.align.step import Align
from operators.pictures.movement import Movement
from operators.pictures.picture import FeatureThinner, patches, small_luma, volume
from operators.store import Stores

S = 1_000_000_000
ZERO = 1_780_000_000 * S
VERSIONS = Versions(product="0", model=None, rules="0", contract="0")
SEATS = ("Ada", "Ben", "Cleo", "Dov", "Eve")
SECONDS = 19
TALK = (
    ("Ben", 1.0, 4.0, "I propose that the monthly rent be raised by two percent from July."),
    ("Cleo", 4.4, 6.0, "The lift has cost us dearly this year."),
    ("Ada", 6.3, 8.0, "Those in favour, please show."),
    ("Ada", 11.0, 11.8, "And against?"),
    ("Ada", 15.0, 15.8, "Thank you. Next."),
    ("Dov", 16.2, 17.4, "The cellar is wet again."),
)
Log = list[AnyRecord | Packet]


@lru_cache(maxsize=4)
def film(in_favour: tuple[int, ...], against: tuple[int, ...]) -> tuple[Packet, ...]:
    """What a camera sees of the vote, as packets of features: five people, sensor noise, nobody quite still."""
    count = SECONDS * FRAMES_PER_SECOND
    time = np.arange(count) / FRAMES_PER_SECOND

    def hand(seat: int) -> npt.NDArray[np.float64]:
        begins = [8.2 + 0.03 * seat] * (seat in in_favour) + [12.0 + 0.03 * seat] * (seat in against)
        up = [np.minimum((time - at) / 0.4, (2.2 - (time - at)) / 0.4) for at in begins]
        return np.asarray(np.clip(np.max([*up, np.zeros(count)], axis=0), 0.0, 1.0))

    still = np.zeros(count)
    people = [
        Figure(name, (WIDTH * (2 * n + 1) // 10, 118 + 26 * (n % 2)), still, 1.5 * np.sin(time + n), still, hand(n))
        for n, name in enumerate(SEATS)
    ]  # fmt: skip
    movement, thinner, found = Movement(), FeatureThinner(), list[Packet]()
    before, last_ns = None, -S
    for number, picture in enumerate(pictures(people, count, seed=3)):
        now_ns = math.floor(number * S / FRAMES_PER_SECOND)
        plane = np.ascontiguousarray(picture.planes[:HEIGHT])
        movement.see(now_ns, plane)
        if now_ns - last_ns < S // 5 - 1_000_000:
            continue
        luma = small_luma(plane)
        maps = volume(luma, before, now_ns - last_ns, movement.take())
        before, last_ns = luma, now_ns
        for block in thinner.take("camera/video", now_ns, maps, patches(plane)):
            found.append(
                Packet(
                    "m", "camera", Modality.PICTURE_FEATURES, block.codec, ClockKind.PTP, 0, len(found),
                    ZERO + block.timestamp_ns, block.duration_ns, block.payload, 0, block.width, block.height,
                    block.channels,
                )
            )  # fmt: skip
    return tuple(found)


def clock(device: str, number: int, offset_s: float = 0.0) -> ClockRecord:
    return ClockRecord(
        meeting_id="m", device=device, number=number, from_raw_ns=-(2**63), ref_ns=ZERO, offset_ns=round(offset_s * S),
        uncertainty_ns=3_000_000, method="online" if number else "stamped",
    )  # fmt: skip


def opened(stream: str) -> StreamRecord:
    return StreamRecord(
        meeting_id="m", stream=stream, state="opened", stream_epoch=1, sequence=0, raw_ns=ZERO
    )


def utterance(
    name: str, speaker: str, start: float, end: float, text: str, prosody: Prosody | None = None
) -> UtteranceRecord:
    begin, stop = ZERO + round(start * S), ZERO + round(end * S)
    return UtteranceRecord(
        meeting_id="m", id=name, version=1, state="closed", stream="mic/audio", device="mic", clock=0, raw_start_ns=begin,
        raw_end_ns=stop, mark_ns=begin, speaker=speaker, text=text, source="recogniser", sampling_ms=0.0, boundary_ms=20.0,
        prosody=prosody,
    )  # fmt: skip


STARTED = MeetingStarted(
    meeting_id="m",
    start_ns=ZERO,
    date=datetime.date(2026, 5, 28),
    attendees=tuple(AttendeeInfo(name=n, speaker=n) for n in SEATS),
)


def room(frames: Sequence[Packet], late_s: float = 0.0, talk: Sequence[UtteranceRecord] | None = None) -> Log:
    """The log of the vote. ``late_s``: the camera's clock is ahead by that much, found out near the end."""
    log: Log = [ControlRecord(meeting_id="m", control=STARTED, source="c/0/1")]
    log += [clock("mic", 0), clock("camera", 0), opened("mic/audio"), opened("camera/video")]
    spoken = [utterance(f"u{n}", *line) for n, line in enumerate(TALK)] if talk is None else list(talk)
    media: list[tuple[int, AnyRecord | Packet]] = [(u.raw_end_ns, u) for u in spoken]
    for frame in frames:
        shifted = Packet(**{
            name: getattr(frame, name) for name in Packet.__slots__
        } | {"timestamp_ns": frame.timestamp_ns + round(late_s * S)})  # fmt: skip
        media.append((frame.timestamp_ns, shifted))
        media.append(
            (
                frame.timestamp_ns,
                MarkRecord(meeting_id="m", stream="camera/video", raw_ns=shifted.timestamp_ns),
            )
        )
    for at_ns, record in sorted(media, key=lambda entry: entry[0]):
        if (
            late_s
            and at_ns > ZERO + 18 * S
            and not any(isinstance(r, ClockRecord) and r.number == 1 for r in log)
        ):
            log.append(clock("camera", 1, late_s))
        log.append(record)
    end_ns = ZERO + SECONDS * S
    log.append(MarkRecord(meeting_id="m", stream="mic/audio", raw_ns=end_ns))
    return [*log, EndedRecord(meeting_id="m", reason="control", end_ns=end_ns)]


def values(log: Log) -> Iterator[bytes]:
    for record in log:
        yield log_line(encode(record)) if isinstance(record, Packet) else record.to_bytes()


def minutes_of(log: Log) -> MinutesDocument:
    minutes = MinutesOfLog(VERSIONS)
    for value in values(log):
        minutes.read(value)
    document = minutes.document()
    assert document is not None
    return document


def seen(item: Item) -> list[Evidence]:
    return [e for e in item.evidence if e.kind == "picture"]


FOUR_TO_ONE = ((0, 1, 2, 3), (4,))
TWO_TO_THREE = ((1, 4), (0, 2, 3))


def test_hands_that_a_camera_saw_make_the_decision() -> None:
    (decision,) = minutes_of(room(film(*FOUR_TO_ONE))).decisions
    assert "rent be raised by two percent" in decision.text
    (picture,) = seen(decision)
    assert (picture.quote, picture.device, picture.speaker) == ("4 raised hands", "camera", None)
    assert picture.start_s == pytest.approx(8.2, abs=0.25) and picture.end_s == pytest.approx(10.5, abs=0.6)
    assert picture.error_ms == 3.0 and picture.sampling_ms == picture.boundary_ms == pytest.approx(
        200.0, abs=5.0
    )


def test_hands_against_undo_it() -> None:
    assert minutes_of(room(film(*TWO_TO_THREE))).decisions == ()


def test_minutes_differ_once_the_picture_part_of_alignment_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = minutes_of(room(film(*TWO_TO_THREE)))
    monkeypatch.setattr(Align, "features", lambda self, packet: None)
    for votes in (FOUR_TO_ONE, TWO_TO_THREE):
        document = minutes_of(room(film(*votes)))
        assert not any(seen(item) for item in document.decisions)
    assert document.decisions != whole.decisions


def test_a_camera_found_late_sees_the_vote_at_the_right_time() -> None:
    (clean,) = minutes_of(room(film(*FOUR_TO_ONE))).decisions
    (found,) = minutes_of(room(film(*FOUR_TO_ONE), late_s=3.2)).decisions
    assert seen(found) == seen(clean)
    unknown = room(film(*FOUR_TO_ONE), late_s=3.2)
    left_so = [r for r in unknown if not (isinstance(r, ClockRecord) and r.number == 1)]
    document = minutes_of(left_so)
    assert not any(
        e.quote == "4 raised hands" and e.start_s < 11.0 for d in document.decisions for e in seen(d)
    )


def test_the_log_as_a_file_holds_the_features() -> None:
    lines = list(values(room(film(*FOUR_TO_ONE))))
    held = [line for line in lines if is_features(line)]
    assert len(held) == len(film(*FOUR_TO_ONE)) and not any(b"\n" in line for line in lines)
    minutes = MinutesOfLog(VERSIONS)
    with pytest.raises(ValueError):
        minutes.read(held[0][:-20] + b'"}')


def read(step: Align, log: Log) -> list[Aligned]:
    out: list[Aligned] = []
    for record in log:
        if isinstance(record, Packet):
            step.features(record)
        else:
            out += step.read(record)
    return out


@pytest.mark.parametrize("second", [8.5, 10.9])
def test_what_was_seen_survives_a_kill(tmp_path: Path, second: float) -> None:
    log = room(film(*FOUR_TO_ONE))
    at = [
        n for n, r in enumerate(log) if isinstance(r, Packet) and r.timestamp_ns >= ZERO + round(second * S)
    ]
    stores = Stores(tmp_path, "minutes", ("align",))
    store = stores.step(0, "align")
    store.roll_back(None)
    first, again = Align(AlignSettings()), Align(AlignSettings())
    first.open(store)
    store.begin(proved=True)
    out = read(first, log[: at[0]])
    first.save(store)
    marker = store.marker()
    store.begin(proved=True)
    read(first, log[at[0] :])  # goes on, saves, and is killed
    first.save(store)
    store.roll_back(marker)
    again.open(store)
    out += read(again, log[at[0] :])
    assert out == read(Align(AlignSettings()), log)
    ended = next(o for o in out if isinstance(o, Ended))
    assert sum(len(s.senses.gestures) for s in ended.spoken if s.senses is not None) == 5
    stores.close()


def test_a_slide_and_a_rising_voice_reach_the_minutes() -> None:
    slide = SlideRecord(
        meeting_id="m", id="s1", stream="laptop/video", device="laptop", clock=0, raw_start_ns=ZERO, mark_ns=ZERO,
        text="Job 4471\nProof signed 19 Oct\nDeliver 27 Oct, Kiel", sampling_ms=200.0,
    )  # fmt: skip
    rising = Prosody(
        step_ns=16_000_000,
        pitch_hz=(*[120.0] * 20, *np.geomspace(120, 170, 20).tolist()),
        typical_hz=120.0,
        level_db=-25.0,
    )
    talk = [
        utterance("u0", "Ada", 1, 3, "The same date, the one that's up there."),
        utterance("u1", "Ben", 4, 7, "I will get you the catalogue by then, Kiel and all."),
        utterance("u2", "Cleo", 8, 10, "We're keeping the old poster.", rising),
        utterance("u3", "Dov", 11, 11.5, "Hm."),
        utterance("u4", "Eve", 12, 13, "The cellar is wet."),
    ]
    log: Log = room((), talk=talk)
    log[1:1] = [slide]
    document = minutes_of(log)
    (task,) = document.action_items
    assert (task.due, task.due_text) == (datetime.date(2026, 10, 27), "by then")
    assert [e.quote for e in task.evidence if e.kind == "slide"] == ["Deliver 27 Oct, Kiel"]
    assert [q.text for q in document.open_questions] == ["We're keeping the old poster?"]
