"""Who speaks at a table device, by the delay between its microphones; dead, shared and swapped microphones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from contracts.messages import ChannelSpeaker, MeetingStarted, MicrophonePlace, SeatPlace
from models.speech_recogniser import Recognition
from models.voice_activity import VoiceActivity
from operators.perceive.people import SHARED, People
from operators.speech.delay import Arrangement, DelayScores, clear_seat
from operators.speech.events import MicrophoneDead, PieceClosed, RecognitionRequest, SpeechEvent
from operators.speech.recognise import MeetingSpeech, SpeechSettings

SAMPLE = Path(__file__).parents[2] / "devices" / "sample"
RATE_HZ = 16_000
MICROPHONES = ((3.0, 2.3, 0.8), (3.3, 2.3, 0.8))
SEATS = (("Anna", (2.0, 1.5, 1.2)), ("Ben", (4.2, 1.4, 1.2)), ("Carla", (3.0, 3.2, 1.2)))

Pcm = npt.NDArray[np.int16]


@pytest.fixture(scope="module")
def activity() -> VoiceActivity:
    return VoiceActivity()


@pytest.fixture(scope="module")
def arrangement() -> Arrangement:
    return Arrangement.of(MICROPHONES, SEATS)


def spoken(number: str) -> npt.NDArray[np.float64]:
    truth = json.loads((SAMPLE / "truth.json").read_text(encoding="utf-8"))
    one = next(u for u in truth["utterances"] if u["id"] == number)
    sound: npt.NDArray[np.float64] = soundfile.read(
        SAMPLE / f"{one['device']}.flac", start=one["start_sample"], stop=one["end_sample"]
    )[0]
    return sound


def at_table(sound: npt.NDArray[np.float64], travel_s: tuple[float, ...], seed: int) -> Pcm:
    """What the microphones of the device hear, shape (n, channels): delays to a fraction of a sample, an echo, noise."""
    spectrum = np.fft.rfft(sound, 2 * len(sound))
    turns = -2j * np.pi * np.fft.rfftfreq(2 * len(sound), 1.0 / RATE_HZ)
    chance = np.random.default_rng(seed)
    heard = []
    for seconds in travel_s:
        room = chance.standard_normal(4_000) * np.exp(-np.arange(4_000) / 700.0) * 0.02
        direct = np.fft.irfft(spectrum * np.exp(turns * seconds), 2 * len(sound))[: len(sound)]
        echoes = np.convolve(direct, room)[: len(sound)]
        heard.append(direct + echoes + chance.normal(0.0, 2e-4, len(sound)))
    return np.asarray(np.clip(np.rint(np.stack(heard, axis=1) * 32768.0), -32768, 32767), dtype=np.int16)


def scores_of(arrangement: Arrangement, pcm: Pcm) -> list[list[float]]:
    frames = pcm[: len(pcm) // 512 * 512].reshape(-1, 512, pcm.shape[1])
    return [list(map(float, row)) for row in DelayScores(arrangement).of_frames(frames)]


@pytest.mark.parametrize("seat", range(len(SEATS)))
def test_the_seat_that_speaks_is_found_through_echoes(arrangement: Arrangement, seat: int) -> None:
    pcm = at_table(spoken("u08"), arrangement.travel_s[seat], seat)
    assert clear_seat(scores_of(arrangement, pcm)) == seat


def test_nobody_is_named_where_it_is_not_clear(arrangement: Arrangement) -> None:
    chance = np.random.default_rng(0)
    apart = np.asarray(chance.normal(0.0, 2_000.0, (RATE_HZ, 2)), dtype=np.int16)
    assert clear_seat(scores_of(arrangement, apart)) is None
    # Seats that are mirror images of each other to the microphones cannot be told apart.
    mirrored = Arrangement.of(MICROPHONES, (("Anna", (2.0, 1.5, 1.2)), ("Ben", (2.0, 3.1, 1.2))))
    pcm = at_table(spoken("u08"), mirrored.travel_s[0], 1)
    assert clear_seat(scores_of(mirrored, pcm)) is None
    # Somebody who stands where no seat is.
    elsewhere = Arrangement.of(MICROPHONES, (("Guest", (3.15, 0.3, 1.6)),))
    pcm = at_table(spoken("u08"), elsewhere.travel_s[0], 2)
    assert clear_seat(scores_of(Arrangement.of(MICROPHONES, SEATS[:2]), pcm)) is None
    assert clear_seat([]) is None


def test_an_arrangement_needs_microphones_and_seats() -> None:
    with pytest.raises(ValueError, match="two microphones"):
        Arrangement.of(MICROPHONES[:1], SEATS)
    with pytest.raises(ValueError, match="a seat"):
        Arrangement.of(MICROPHONES, ())


def play(meeting: MeetingSpeech, sounds: dict[str, Pcm], *, restore: bool = False) -> list[SpeechEvent]:
    events: list[SpeechEvent] = []

    def drain() -> None:
        todo = meeting.advance()
        while todo:
            for event in todo:
                events.append(event)
                if isinstance(event, RecognitionRequest):
                    meeting.result(event.piece_id, event.version, Recognition(text=event.piece_id))
            todo = meeting.advance()

    for number, start in enumerate(range(0, max(map(len, sounds.values())), 1_600)):
        for device, sound in sounds.items():
            meeting.push(device, 1, start * 62_500, sound[start : start + 1_600])
        drain()
        if restore and number % 7 == 3:
            meeting = MeetingSpeech.from_state(meeting.settings, meeting._voice, meeting.state())
    for device in sounds:
        meeting.end_of_stream(device)
    drain()
    return events


@pytest.mark.parametrize("restore", [False, True])
def test_a_piece_ends_where_another_person_goes_on(
    activity: VoiceActivity, arrangement: Arrangement, restore: bool
) -> None:
    """Two people without a pause between them, then the first again: three pieces, each with its speaker."""
    turns = [(0, "u08"), (1, "u13"), (0, "u10")]
    parts = [at_table(spoken(number), arrangement.travel_s[seat], seat) for seat, number in turns]
    quiet = np.asarray(np.random.default_rng(3).normal(0.0, 6.0, (RATE_HZ, 2)), dtype=np.int16)
    meeting = MeetingSpeech(SpeechSettings(partials=False), activity)
    meeting.open_stream("table", 0, None, RATE_HZ, 1, arrangement)
    events = play(meeting, {"table": np.concatenate((quiet, *parts, quiet))}, restore=restore)
    closed = [event for event in events if isinstance(event, PieceClosed)]
    border_s = 1.0
    for (seat, _), part in zip(turns, parts, strict=True):
        end_s = border_s + len(part) / RATE_HZ
        own = [p for p in closed if border_s <= (p.start_ns + p.end_ns) / 2e9 < end_s]
        assert {piece.speaker for piece in own} == {arrangement.speakers[seat]}
        border_s = end_s
    assert len(closed) >= 3


def test_a_seat_that_gives_no_sound_is_noticed_once(activity: VoiceActivity) -> None:
    voice = np.asarray(np.rint(np.tile(spoken("u24"), 4) * 32768.0), dtype=np.int16)[:, None]
    sounds = {"mic-1": voice, "mic-2": np.zeros_like(voice), "mic-3": voice // 6}
    meeting = MeetingSpeech(SpeechSettings(partials=False), activity)
    for device, speaker in (("mic-1", "Anna"), ("mic-2", "Ben"), ("mic-3", "Mark")):
        meeting.open_stream(device, 0, speaker, RATE_HZ, 1)
    dead = [event for event in play(meeting, sounds, restore=True) if isinstance(event, MicrophoneDead)]
    assert dead == [MicrophoneDead("mic-2", 0, "Ben")]


def test_a_room_without_speech_has_no_dead_microphones(activity: VoiceActivity) -> None:
    sounds = {device: np.zeros((15 * RATE_HZ, 1), dtype=np.int16) for device in ("mic-1", "mic-2")}
    meeting = MeetingSpeech(SpeechSettings(partials=False), activity)
    for device, speaker in (("mic-1", "Anna"), ("mic-2", "Ben")):
        meeting.open_stream(device, 0, speaker, RATE_HZ, 1)
    assert not [event for event in play(meeting, sounds) if isinstance(event, MicrophoneDead)]


def started(**fields: Any) -> MeetingStarted:
    return MeetingStarted(meeting_id="m", **fields)


def test_places_make_an_arrangement() -> None:
    people = People()
    microphones = [
        MicrophonePlace(device="table", channel=channel, position_m=place)
        for channel, place in enumerate(MICROPHONES)
    ]
    seats = [SeatPlace(speaker=speaker, position_m=place) for speaker, place in SEATS]
    people.apply(started(seats=seats, microphones=microphones))
    assert people.arrangement("table", 2) == Arrangement.of(MICROPHONES, SEATS)
    assert people.arrangement("table", 3) is None
    assert people.arrangement("other", 2) is None
    people.apply(started(seats=(), microphones=microphones))
    assert people.arrangement("table", 2) is None


def test_a_microphone_that_two_people_share_names_nobody(activity: VoiceActivity) -> None:
    people = People()
    shared = [ChannelSpeaker(device="mic-1", speaker=speaker) for speaker in ("Anna", "Ben")]
    people.apply(started(channel_map=[*shared, ChannelSpeaker(device="mic-2", speaker="Mark")]))
    assert people.speakers == {("mic-1", 0): SHARED, ("mic-2", 0): "Mark"}
    voice = np.asarray(np.rint(spoken("u08") * 32768.0), dtype=np.int16)[:, None]
    quiet = np.zeros((RATE_HZ, 1), dtype=np.int16)
    meeting = MeetingSpeech(SpeechSettings(partials=False), activity)
    meeting.open_stream("mic-1", 0, SHARED, RATE_HZ, 1)
    closed = [
        event
        for event in play(meeting, {"mic-1": np.concatenate((quiet, voice, quiet))})
        if isinstance(event, PieceClosed)
    ]
    assert closed
    assert {piece.speaker for piece in closed} == {None}


def test_a_name_given_at_the_wrong_microphone_is_noticed() -> None:
    people = People()
    named = (("mic-1", "Anna"), ("mic-2", "Ben Hart"))
    people.apply(started(channel_map=[ChannelSpeaker(device=d, speaker=s) for d, s in named]))
    assert people.claimed_seat("Anna", "Hello, I'm Ben and I test things.") == "Ben Hart"
    assert people.claimed_seat("Anna", "My name is Ben Hart.") == "Ben Hart"
    for text in ("I'm Anna.", "I am with Ben on this.", "This is Ben.", "I'm sure Ben knows."):
        assert people.claimed_seat("Anna", text) is None, text
    assert people.claimed_seat(None, "I'm Ben.") is None
