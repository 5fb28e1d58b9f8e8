"""Speech of a whole meeting: the sample's four microphones, and pieces of it put together otherwise.

A stand-in for the recogniser names the range that it was given, so that these tests are about what is cut, whose it
is, and when; what is heard is tested with the weights elsewhere.
"""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from models.speech_recogniser import Recognition, Word
from models.voice_activity import VoiceActivity
from operators.speech.events import (
    PieceClosed,
    PieceText,
    PieceWithdrawn,
    RecognitionRequest,
    SpeechEvent,
    SpeechResumed,
)
from operators.speech.recognise import MeetingSpeech, SpeechSettings

SAMPLE = Path(__file__).parents[2] / "devices" / "sample"
RATE_HZ = 16_000
BLOCK = 320
SECONDS = 32
START_NS = 1_700_000_000_000_000_000
SEATS = {"mic-1": "Anna", "mic-2": "Ben", "mic-3": "Mark", "mic-4": "David"}

Pcm = npt.NDArray[np.int16]
Truth = dict[str, Any]


@pytest.fixture(scope="module")
def activity() -> VoiceActivity:
    return VoiceActivity()


@pytest.fixture(scope="module")
def truth() -> Truth:
    loaded: Truth = json.loads((SAMPLE / "truth.json").read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="module")
def room() -> dict[str, Pcm]:
    """The first seconds of each microphone."""
    return {
        device: soundfile.read(SAMPLE / f"{device}.flac", frames=SECONDS * RATE_HZ, dtype="int16")[0]
        for device in SEATS
    }


def answer(request: RecognitionRequest) -> Recognition:
    """A text that only this range has; alike ranges of different microphones have unlike texts."""
    count = len(request.samples)
    text = f"heard {request.piece_id.replace('/', ' ')} with {count} samples"
    return Recognition(text=text, words=(Word(0.0, count / RATE_HZ, text, 0.9),))


@dataclass
class Player:
    """Pushes blocks in time order and answers requests at once."""

    meeting: MeetingSpeech
    events: list[SpeechEvent] = field(default_factory=list)
    marks: list[dict[str, int]] = field(default_factory=list)

    def drain(self) -> None:
        todo = self.meeting.advance()
        while todo:
            for event in todo:
                self.events.append(event)
                if isinstance(event, RecognitionRequest):
                    self.meeting.result(event.piece_id, event.version, answer(event))
            todo = self.meeting.advance()

    def play(
        self, sounds: dict[str, Pcm], first: int = 0, last: int | None = None, rate_hz: int = RATE_HZ
    ) -> None:
        block = rate_hz // 50
        longest = max(len(sound) for sound in sounds.values())
        for start in range(first, longest if last is None else last, block):
            stamp = START_NS + start * 1_000_000_000 // rate_hz
            for device, sound in sounds.items():
                if start < len(sound):
                    self.meeting.push(device, 1, stamp, sound[start : start + block, None])
            self.drain()

    def finish(self, sounds: dict[str, Pcm]) -> None:
        for device in sounds:
            self.meeting.end_of_stream(device)
        self.drain()

    def closed(self) -> list[PieceClosed]:
        return [event for event in self.events if isinstance(event, PieceClosed)]


def player(
    activity: VoiceActivity,
    sounds: dict[str, Pcm],
    seats: dict[str, str | None] | None = None,
    rate_hz: int = RATE_HZ,
) -> Player:
    meeting = MeetingSpeech(SpeechSettings(), activity)
    for device in sounds:
        speaker = SEATS.get(device) if seats is None else seats[device]
        meeting.open_stream(device, 0, speaker, rate_hz, 1)
    return Player(meeting)


def described(events: list[SpeechEvent]) -> list[tuple[object, ...]]:
    """What must not differ between two runs."""
    found: list[tuple[object, ...]] = []
    for event in events:
        match event:
            case RecognitionRequest():
                if event.kind != "partial":
                    found.append(
                        ("ask", event.piece_id, event.version, event.samples.tobytes(), event.start_ns)
                    )
            case PieceClosed():
                found.append(("closed", event))
            case PieceWithdrawn() | SpeechResumed():
                found.append((type(event).__name__, event.piece_id, event.version))
            case PieceText():
                pass
    return found


def overlapping(pieces: list[PieceClosed], utterance: dict[str, Any]) -> list[PieceClosed]:
    start = START_NS + utterance["start_sample"] * 62_500
    end = START_NS + utterance["end_sample"] * 62_500
    return [p for p in pieces if min(p.end_ns, end) - max(p.start_ns, start) > 0.5 * (end - start)]


@pytest.fixture(scope="module")
def straight(activity: VoiceActivity, room: dict[str, Pcm]) -> Player:
    played = player(activity, room)
    played.play(room)
    played.finish(room)
    return played


def test_every_utterance_is_one_piece_of_the_right_speaker(straight: Player, truth: Truth) -> None:
    pieces = straight.closed()
    said = [u for u in truth["utterances"] if u["end_s"] < SECONDS - 1]
    for utterance in said:
        if utterance["backchannel"]:
            continue
        found = overlapping(pieces, utterance)
        assert utterance["speaker"] in {piece.speaker for piece in found}, utterance["text"]
    # Cross-talk never appears: no more pieces than utterances, none of them where its speaker was silent.
    assert len(pieces) <= len(said) + 1
    for piece in pieces:
        own = [u for u in said if u["speaker"] == piece.speaker]
        if piece.end_ns > START_NS + (SECONDS - 1) * 1_000_000_000:
            continue
        assert any(overlapping([piece], u) for u in own) or piece.end_ns - piece.start_ns < 900_000_000, piece


@dataclass
class Late(Player):
    """Answers with sentences, and only now and then, at the end at the latest."""

    every: int = 1
    _drained: int = 0
    _due: list[RecognitionRequest] = field(default_factory=list)

    def drain(self) -> None:
        self._drained += 1
        while todo := self.meeting.advance():
            self.events += todo
            self._due += [event for event in todo if isinstance(event, RecognitionRequest)]
            if self._drained % self.every == 0:
                self._tell()

    def finish(self, sounds: dict[str, Pcm]) -> None:
        self.every = 1
        self._tell()
        super().finish(sounds)

    def _tell(self) -> None:
        due, self._due = self._due, []
        for request in due:
            heard = answer(request)
            ended = replace(heard.words[0], text=f"{heard.text}.")
            self.meeting.result(
                request.piece_id, request.version, replace(heard, text=ended.text, words=(ended,))
            )


def test_who_speaks_is_decided_the_same_however_long_the_sound_waits_for_an_answer(
    activity: VoiceActivity, room: dict[str, Pcm], straight: Player
) -> None:
    closed = []
    for every in (1, 10**6):
        played = Late(player(activity, room).meeting, every=every)
        played.play(room)
        played.finish(room)
        closed.append(sorted(played.closed(), key=lambda piece: piece.piece_id))
    assert closed[0] == closed[1]
    # Of the pieces of one person some are now two.
    assert len(straight.closed()) < len(closed[0]) < len(straight.closed()) + 5


def test_edges_are_close_to_the_truth(straight: Player, truth: Truth) -> None:
    for utterance in truth["utterances"][:12]:
        found = [p for p in overlapping(straight.closed(), utterance) if p.speaker == utterance["speaker"]]
        if utterance["backchannel"] or not found or utterance["end_s"] > SECONDS - 1:
            continue
        assert abs(found[0].start_ns - START_NS - utterance["start_sample"] * 62_500) < 250_000_000
        assert abs(found[-1].end_ns - START_NS - utterance["end_sample"] * 62_500) < 250_000_000


def test_the_text_of_a_closed_piece_is_of_its_range_and_recognised_once(straight: Player) -> None:
    asked = {
        (event.piece_id, event.version): event
        for event in straight.events
        if isinstance(event, RecognitionRequest)
    }
    for piece in straight.closed():
        request = asked[(piece.piece_id, piece.version)]
        assert piece.text == answer(request).text
        assert request.kind != "partial"
        assert request.start_ns <= piece.start_ns < piece.end_ns <= request.end_ns
        assert piece.samples_start_ns == request.start_ns
    # Everybody in the sample pauses long enough: the speculative pass is the final one.
    before_the_end = START_NS + (SECONDS - 1) * 1_000_000_000
    assert not [r for r in asked.values() if r.kind == "final" and r.end_ns < before_the_end]


def test_tentative_text_stands_before_the_pause_is_over(straight: Player) -> None:
    shown = {
        (e.piece_id, e.version)
        for e in straight.events
        if isinstance(e, PieceText) and e.state == "tentative"
    }
    before_the_end = START_NS + (SECONDS - 1) * 1_000_000_000
    assert all((p.piece_id, p.version) in shown for p in straight.closed() if p.end_ns < before_the_end)


def test_no_piece_starts_before_the_mark(activity: VoiceActivity, room: dict[str, Pcm]) -> None:
    played = player(activity, room)
    marks: dict[str, int] = {}
    seen = 0
    for start in range(0, 20 * RATE_HZ, BLOCK):
        played.play(room, start, start + BLOCK)
        for event in played.events[seen:]:
            if isinstance(event, PieceClosed):
                assert event.start_ns >= marks[event.device]
        seen = len(played.events)
        for device in room:
            mark = played.meeting.mark_ns(device)
            assert mark >= marks.get(device, 0), "a mark never falls"
            marks[device] = mark
    newest = START_NS + 20 * 1_000_000_000
    assert max(newest - mark for mark in marks.values()) < 8_500_000_000
    with pytest.raises(KeyError):
        played.meeting.mark_ns("unknown")


def test_restored_at_random_points_the_events_are_the_same(
    activity: VoiceActivity, room: dict[str, Pcm], straight: Player
) -> None:
    rng = np.random.default_rng(5)
    played = player(activity, room)
    sizes = []
    for start in range(0, SECONDS * RATE_HZ, BLOCK):
        played.play(room, start, start + BLOCK)
        if rng.random() < 0.02:
            state = played.meeting.state()
            sizes.append(size_of(state))
            played.meeting = MeetingSpeech.from_state(played.meeting.settings, activity, state)
    played.finish(room)
    assert described(played.events) == described(straight.events)
    assert max(sizes) < 4 * 300_000


def test_answers_that_were_outstanding_are_asked_for_again(
    activity: VoiceActivity, room: dict[str, Pcm]
) -> None:
    length = 8 * RATE_HZ + RATE_HZ // 2
    sounds = {"mic-1": room["mic-1"][:length]}
    meeting = player(activity, sounds).meeting
    newest: dict[str, RecognitionRequest] = {}
    for start in range(0, length, BLOCK):
        meeting.push("mic-1", 1, START_NS + start * 62_500, sounds["mic-1"][start : start + BLOCK, None])
        for event in meeting.advance():
            if isinstance(event, RecognitionRequest) and event.kind != "partial":
                newest[event.piece_id] = event
            elif isinstance(event, SpeechResumed):
                del newest[event.piece_id]
    assert newest
    state = json.loads(json.dumps(meeting.state(), default=lambda raw: {"hex": raw.hex()}), object_hook=unhex)
    meeting = MeetingSpeech.from_state(meeting.settings, activity, state)
    again = {e.piece_id: e for e in meeting.advance() if isinstance(e, RecognitionRequest)}
    assert again.keys() == newest.keys()
    for piece_id, request in again.items():
        assert np.array_equal(request.samples, newest[piece_id].samples)
        assert (request.version, request.start_ns) == (newest[piece_id].version, newest[piece_id].start_ns)
        meeting.result(piece_id, request.version, answer(request))
    shown = {e.piece_id for e in meeting.advance() if isinstance(e, PieceClosed | PieceText)}
    assert shown == again.keys()
    with pytest.raises(ValueError, match="format"):
        MeetingSpeech.from_state(meeting.settings, activity, {**state, "format": 0})


def unhex(value: dict[str, Any]) -> Any:
    return bytes.fromhex(value["hex"]) if value.keys() == {"hex"} else value


def size_of(value: Any) -> int:
    """Bytes that matter in a plain structure."""
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, dict):
        return sum(size_of(part) for part in value.values())
    if isinstance(value, list | tuple):
        return sum(size_of(part) for part in value)
    return 8


def test_two_people_at_once_are_both_kept(
    activity: VoiceActivity, room: dict[str, Pcm], truth: Truth
) -> None:
    """Two utterances laid over each other, with the leakage that the room had."""
    first, second = (
        u for u in truth["utterances"] if u["text"].startswith(("Good morning, everyone", "Ben, how many"))
    )
    shift = second["start_sample"] - first["start_sample"]
    sounds = {}
    for device, sound in room.items():
        one = sound[: 8 * RATE_HZ].astype(np.int32)
        two = np.roll(one, -shift)
        two[: first["start_sample"] - 1_600] = 0
        two[first["start_sample"] + 32_000 :] = 0
        mixed = one[: first["end_sample"] + 1_600] + two[: first["end_sample"] + 1_600]
        quiet = np.random.default_rng(0).normal(0, 12, 2 * RATE_HZ)
        sounds[device] = np.clip(np.concatenate((mixed, quiet)), -32768, 32767).astype(np.int16)
    played = player(activity, sounds)
    played.play(sounds)
    played.finish(sounds)
    span = {"start_sample": first["start_sample"], "end_sample": first["end_sample"]}
    assert {piece.speaker for piece in overlapping(played.closed(), span)} == {"Anna", "Ben"}


@pytest.mark.parametrize("gains", [(1.0, 0.3, 1.0, 1.0), (0.35, 1.0, 2.0, 1.0)])
def test_unequal_gains(
    activity: VoiceActivity, room: dict[str, Pcm], truth: Truth, gains: tuple[float, ...]
) -> None:
    sounds = {
        device: np.clip(sound * gain, -32768, 32767).astype(np.int16)
        for gain, (device, sound) in zip(gains, room.items(), strict=True)
    }
    played = player(activity, sounds)
    played.play(sounds)
    played.finish(sounds)
    for utterance in truth["utterances"]:
        if utterance["end_s"] > SECONDS - 1 or utterance["backchannel"]:
            continue
        found = overlapping(played.closed(), utterance)
        assert utterance["speaker"] in {piece.speaker for piece in found}, utterance["text"]
    others = [p for p in played.closed() if p.end_ns - p.start_ns > 1_500_000_000]
    for piece in others:
        assert (
            any(overlapping([piece], u) for u in truth["utterances"] if u["speaker"] == piece.speaker)
            or piece.end_ns > START_NS + (SECONDS - 2) * 1_000_000_000
        ), piece


@pytest.mark.parametrize("words", ["we launch the product on Thursday", "good morning all"])
def test_cross_talk_found_out_later_is_withdrawn(
    activity: VoiceActivity, room: dict[str, Pcm], words: str
) -> None:
    """The speaker's own microphone comes so late that its neighbour's piece is already closed."""
    own = np.concatenate((room["mic-1"][: int(3.8 * RATE_HZ)], np.zeros(RATE_HZ, np.int16)))
    late = 2 * RATE_HZ
    neighbour = np.concatenate((own // 5, np.zeros(late, np.int16)))
    meeting = player(activity, {"a": own, "b": own}, {"a": "Anna", "b": "Ben"}).meeting
    heard = Recognition(text=words, words=(Word(0.0, 1.0, words, 0.9),))
    events: list[SpeechEvent] = []
    for start in range(0, len(neighbour), BLOCK):
        meeting.push("b", 1, START_NS + start * 62_500, neighbour[start : start + BLOCK, None])
        if start >= late:
            block = own[start - late : start - late + BLOCK, None]
            meeting.push("a", 1, START_NS + (start - late) * 62_500, block)
        for event in meeting.advance():
            events.append(event)
            if isinstance(event, RecognitionRequest) and event.kind != "partial":
                meeting.result(event.piece_id, event.version, heard)
    events += meeting.advance()
    closed = [event for event in events if isinstance(event, PieceClosed)]
    assert [piece.device for piece in closed] == ["b", "a"]
    withdrawn = [event for event in events if isinstance(event, PieceWithdrawn)]
    assert [event.piece_id for event in withdrawn] == [closed[0].piece_id]
    assert withdrawn[0].reason == f"cross-talk of {closed[1].piece_id}"


def test_a_room_microphone_adds_nothing_where_seats_speak(
    activity: VoiceActivity, room: dict[str, Pcm]
) -> None:
    sounds = {device: sound[: 12 * RATE_HZ] for device, sound in room.items()}
    mixed = sum(sound.astype(np.int32) for sound in sounds.values())
    sounds["ceiling"] = np.clip(mixed, -32768, 32767).astype(np.int16)
    played = player(activity, sounds, {**SEATS, "ceiling": None})
    played.play(sounds)
    played.finish(sounds)
    assert {piece.device for piece in played.closed()} <= set(SEATS)


def test_one_microphone_without_a_seat_has_no_speaker(activity: VoiceActivity, room: dict[str, Pcm]) -> None:
    sounds = {"table": room["mic-1"][: 9 * RATE_HZ]}
    played = player(activity, sounds, {"table": None})
    played.play(sounds)
    played.finish(sounds)
    assert played.closed()
    assert {piece.speaker for piece in played.closed()} == {None}


def test_channels_of_one_device_are_seats_of_their_own(activity: VoiceActivity, room: dict[str, Pcm]) -> None:
    meeting = MeetingSpeech(SpeechSettings(), activity)
    meeting.open_stream("mixer", 0, "Anna", RATE_HZ, 1)
    meeting.open_stream("mixer", 1, "Ben", RATE_HZ, 1)
    played = Player(meeting)
    both = np.stack([room["mic-1"], room["mic-2"]], axis=1)[: 9 * RATE_HZ]
    for start in range(0, len(both), BLOCK):
        meeting.push("mixer", 1, START_NS + start * 62_500, both[start : start + BLOCK])
        played.drain()
    meeting.end_of_stream("mixer")
    played.drain()
    ids = {piece.speaker: piece.piece_id for piece in played.closed()}
    assert ids["Anna"].startswith("mixer/1/")
    assert ids["Ben"].startswith("mixer#1/1/")


def test_other_rates_give_the_same_pieces(activity: VoiceActivity, room: dict[str, Pcm]) -> None:
    plain = room["mic-1"][: 8 * RATE_HZ]
    fine = np.interp(np.arange(3 * len(plain)) / 3, np.arange(len(plain)), plain)
    raised = fine.astype(np.int16)
    found = []
    for sound, rate_hz in ((plain, RATE_HZ), (raised, 48_000)):
        played = player(activity, {"mic-1": sound}, rate_hz=rate_hz)
        played.play({"mic-1": sound}, rate_hz=rate_hz)
        played.finish({"mic-1": sound})
        found.append([(p.start_ns, p.end_ns) for p in played.closed()])
    assert len(found[0]) == len(found[1])
    for one, other in zip(*found, strict=True):
        assert one == pytest.approx(other, abs=100_000_000)


def test_a_long_gap_ends_the_piece_and_a_short_one_is_named(
    activity: VoiceActivity, room: dict[str, Pcm]
) -> None:
    sound = room["mic-1"][: 9 * RATE_HZ]
    lost = {2 * RATE_HZ, 6 * RATE_HZ}
    played = player(activity, {"mic-1": sound})
    for start in range(0, len(sound), BLOCK):
        away = 2 * RATE_HZ <= start < 2 * RATE_HZ + BLOCK or 6.5 * RATE_HZ <= start < 7 * RATE_HZ
        if not away:
            played.meeting.push("mic-1", 1, START_NS + start * 62_500, sound[start : start + BLOCK, None])
        played.drain()
    played.finish({"mic-1": sound})
    assert len(lost) == 2
    gaps = [gap for piece in played.closed() for gap in piece.gaps]
    assert gaps == [(START_NS + 2_000_000_000, START_NS + 2_020_000_000)]
    edge = START_NS + 6_500_000_000
    assert not [p for p in played.closed() if p.start_ns < edge < p.end_ns - 100_000_000]


def test_a_new_epoch_closes_what_the_old_one_left(activity: VoiceActivity, room: dict[str, Pcm]) -> None:
    sound = room["mic-1"][: 3 * RATE_HZ]
    played = player(activity, {"mic-1": sound})
    played.play({"mic-1": sound})
    played.meeting.open_stream("mic-1", 0, "Anna", RATE_HZ, 2)
    played.drain()
    assert [piece.piece_id.split("/")[1] for piece in played.closed()] == ["1"]
    played.meeting.push("mic-1", 2, START_NS + 9_000_000_000, sound[:BLOCK, None])
    with pytest.raises(KeyError):
        played.meeting.push("mic-1", 1, START_NS, sound[:BLOCK, None])


def test_a_silent_microphone_is_not_waited_for(activity: VoiceActivity, room: dict[str, Pcm]) -> None:
    quiet = np.random.default_rng(0).normal(0, 12, RATE_HZ).astype(np.int16)
    sounds = {
        "mic-1": np.concatenate((room["mic-1"][: 6 * RATE_HZ], quiet)),
        "mic-2": room["mic-2"][:RATE_HZ],
    }
    played = player(activity, sounds)
    played.play(sounds)
    assert played.closed()
    assert played.meeting.mark_ns("mic-1") > START_NS + 5 * 1_000_000_000


def test_nothing_said_nothing_shown(activity: VoiceActivity) -> None:
    rng = np.random.default_rng(9)
    sounds = {"a": rng.normal(0, 30, 10 * RATE_HZ).astype(np.int16), "b": np.zeros(10 * RATE_HZ, np.int16)}
    played = player(activity, sounds, {"a": "A", "b": "B"})
    played.play(sounds)
    played.finish(sounds)
    assert not played.closed()


def test_a_piece_without_text_goes_silently_or_is_withdrawn(
    activity: VoiceActivity, room: dict[str, Pcm]
) -> None:
    sound = np.concatenate((room["mic-1"][: int(3.8 * RATE_HZ)], np.zeros(RATE_HZ, np.int16)))
    meeting = player(activity, {"mic-1": sound}).meeting
    events: list[SpeechEvent] = []
    for start in range(0, len(sound), BLOCK):
        meeting.push("mic-1", 1, START_NS + start * 62_500, sound[start : start + BLOCK, None])
        for event in meeting.advance():
            events.append(event)
            if isinstance(event, RecognitionRequest):
                if event.kind == "partial":
                    meeting.result(event.piece_id, event.version, answer(event))
                else:
                    meeting.failed(event.piece_id, event.version)
    meeting.end_of_stream("mic-1")
    events += meeting.advance()
    withdrawn = [event for event in events if isinstance(event, PieceWithdrawn)]
    assert withdrawn and withdrawn[0].reason == "recognition failed"
    assert not [event for event in events if isinstance(event, PieceClosed)]


def test_settings_refuse_what_cannot_work() -> None:
    with pytest.raises(ValueError, match="forgotten"):
        SpeechSettings(wait_for_others_ns=5_000_000_000)
