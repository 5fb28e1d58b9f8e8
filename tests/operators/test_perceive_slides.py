"""Slides of a meeting over restarts, and words that wait for slides: what is heard depends on no one's speed."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from contracts.packet import ClockKind, Codec, Modality, Packet
from models.slide_reader import TextLine
from operators.media.client import DecodedPictures, DecodeFailed, Frame, FullFrame
from operators.perceive.people import People, Seen
from operators.perceive.pictures import (
    DecodePicture,
    FetchFrame,
    MeetingPictures,
    PictureStep,
    ReadSlide,
    SlideShown,
)
from operators.pictures.picture import small_luma, volume
from operators.pictures.slides import SlideSettings

S = 1_000_000_000
STREAM = "slides/video"


def packet(number: int, *, key: bool, codec: Codec = Codec.H264, size: int = 100) -> Packet:
    """The picture of each fifth of a second."""
    return Packet(
        meeting_id="m", device_id="slides", modality=Modality.VIDEO, codec=codec, clock_kind=ClockKind.PTP,
        stream_epoch=1, sequence=number, timestamp_ns=S + number * S // 5, duration_ns=S // 5, payload=bytes(size),
        width=320, height=180, key_frame=key,
    )  # fmt: skip


def frame(packet: Packet, text: str) -> Frame:
    """What a decoder tells of a picture with this text."""
    picture = np.full((720, 1280), 245, np.uint8)
    cv2.putText(picture, text, (80, 300), cv2.FONT_HERSHEY_SIMPLEX, 3.0, 20, 5, cv2.LINE_AA)
    luma = small_luma(picture)
    return Frame(
        packet.timestamp_ns, packet.key_frame, 1280, 720, 100.0, luma, volume(luma, None, 0, None), None
    )


class Decoder:
    """Decodes by hand: what it keeps is lost when it begins anew."""

    def __init__(self, pictures: MeetingPictures) -> None:
        self.pictures = pictures
        self.kept: set[int] = set()

    def take(self, steps: list[PictureStep], texts: dict[int, str]) -> list[PictureStep]:
        """Answer all decoding and fetching; what is left are readings and slides."""
        left: list[PictureStep] = []
        waiting = list(steps)
        while waiting:
            step = waiting.pop(0)
            if isinstance(step, DecodePicture):
                self.kept.add(step.packet.timestamp_ns)
                shown = frame(step.packet, texts[step.packet.timestamp_ns])
                result = DecodedPictures(STREAM, step.packet.timestamp_ns, None, (shown,), ())
                waiting += self.pictures.decoded(result)
            elif isinstance(step, FetchFrame) and step.frame_ns in self.kept:
                waiting += self.pictures.fetched(FullFrame(STREAM, step.frame_ns, None, b"jpeg"))
            elif isinstance(step, FetchFrame):
                failed = DecodeFailed(STREAM, step.frame_ns, None, "the frame is no longer kept", False)
                waiting += self.pictures.failed(failed)
            else:
                left.append(step)
        return left


def restarted(pictures: MeetingPictures) -> tuple[Decoder, list[PictureStep]]:
    again = MeetingPictures(SlideSettings())
    again.load(pictures.state())
    return Decoder(again), again.repeat()


@pytest.mark.parametrize("codec", [Codec.H264, Codec.JPEG])
def test_a_slide_is_read_however_often_the_flow_is_killed_before(codec: Codec) -> None:
    """Key frames come each second, and each life ends with the slide asked for and not read."""
    decoder = Decoder(MeetingPictures(SlideSettings()))
    texts: dict[int, str] = {}
    left: list[PictureStep] = []
    asked = 0
    for number in range(30):
        one = packet(number, key=number % 5 == 0, codec=codec)
        # After three seconds another slide follows: the first is no longer to be seen.
        texts[one.timestamp_ns] = "Launch" if number < 15 else "Budget 1,500"
        left += decoder.take(decoder.pictures.push(STREAM, one, "slides"), texts)
        if number % 6 == 5:
            decoder, steps = restarted(decoder.pictures)
            asked += sum(isinstance(step, ReadSlide) for step in left)
            left = decoder.take(steps, texts)
    assert asked >= 3, "the test kills while a reading is under way"
    shown: list[tuple[int, str]] = []
    for step in left:
        if isinstance(step, ReadSlide):
            text = TextLine(texts[step.frame_ns], (0.1, 0.1, 0.9, 0.3), 0.99)
            found = decoder.pictures.read(STREAM, step.frame_ns, [text])
            shown += [(s.slide.start_ns, s.slide.text) for s in found if isinstance(s, SlideShown)]
    assert shown == [(S, "Launch"), (S + 15 * S // 5, "Budget 1,500")]


@pytest.mark.parametrize("back_s", [60, 3600, -7200, 0])
@pytest.mark.parametrize("epoch", [1, 2])
@pytest.mark.parametrize("killed", [False, True])
def test_slides_are_seen_after_stamps_began_anew(back_s: int, epoch: int, killed: bool) -> None:
    """The publisher was started again, or its clock was set: by an hour, by two ahead, or not at all."""
    decoder = Decoder(MeetingPictures(SlideSettings()))
    texts: dict[int, str] = {}
    shown: list[str] = []
    for number in range(60):
        one = packet(number, key=number % 5 == 0)
        one = replace(one, timestamp_ns=one.timestamp_ns + 10_000 * S)
        if number >= 30:
            one = replace(one, timestamp_ns=one.timestamp_ns - back_s * S, stream_epoch=epoch)
        texts[one.timestamp_ns] = "Launch" if number < 30 else "Budget 1,500"
        steps = decoder.pictures.push(STREAM, one, "slides")
        if killed and number in (30, 34):
            decoder, steps = restarted(decoder.pictures)
        for step in decoder.take(steps, texts):
            if isinstance(step, ReadSlide):
                text = TextLine(texts[step.frame_ns], (0.1, 0.1, 0.9, 0.3), 0.99)
                found = decoder.pictures.read(STREAM, step.frame_ns, [text])
                shown += [s.slide.text for s in found if isinstance(s, SlideShown)]
    assert shown == ["Launch", "Budget 1,500"]


def test_what_is_kept_for_a_restart_is_bounded_and_let_go_once_it_is_read() -> None:
    decoder = Decoder(MeetingPictures(SlideSettings()))
    texts: dict[int, str] = {}
    left: list[PictureStep] = []
    for number in range(100):
        one = packet(number, key=number % 5 == 0, size=100_000)
        texts[one.timestamp_ns] = "Launch"
        left += decoder.take(decoder.pictures.push(STREAM, one, "slides"), texts)
    kept = decoder.pictures.recent(STREAM)
    assert sum(len(p.payload) for p in kept) <= 4 * 1024 * 1024
    assert len(kept) > 30, "the slide is not read yet"
    (ask,) = [step for step in left if isinstance(step, ReadSlide)]
    assert ask.frame_ns not in [p.timestamp_ns for p in kept]
    # Its frame had to be let go: it is asked for once more, and not given up as a slide without text.
    decoder, steps = restarted(decoder.pictures)
    for number in range(100, 105):
        one = packet(number, key=number % 5 == 0)
        texts[one.timestamp_ns] = "Launch"
        steps += decoder.pictures.push(STREAM, one, "slides")
    (again,) = [step for step in decoder.take(steps, texts) if isinstance(step, ReadSlide)]
    found = decoder.pictures.read(STREAM, again.frame_ns, [TextLine("Launch", (0.1, 0.1, 0.9, 0.3), 0.99)])
    assert [(s.slide.start_ns, s.slide.text) for s in found if isinstance(s, SlideShown)] == [(S, "Launch")]
    decoder.take(decoder.pictures.push(STREAM, packet(105, key=True), "slides"), {S + 105 * S // 5: "Launch"})
    assert len(decoder.pictures.recent(STREAM)) == 1


def test_pictures_say_what_is_not_done() -> None:
    pictures = MeetingPictures(SlideSettings())
    assert pictures.undone_ns(STREAM) is None
    (step, later) = (pictures.push(STREAM, packet(n, key=n == 0), "slides")[0] for n in (0, 4))
    assert pictures.undone_ns(STREAM) == S
    decoder, texts = Decoder(pictures), {packet(n, key=False).timestamp_ns: "Launch" for n in (0, 4)}
    left = decoder.take([step], texts)
    assert (left, pictures.undone_ns(STREAM)) == ([], S + 4 * S // 5)
    (ask,) = decoder.take([later], texts)
    assert isinstance(ask, ReadSlide)
    assert pictures.undone_ns(STREAM) == S, "it stands since its first frame, and is being read"
    pictures.read(STREAM, ask.frame_ns, [])
    assert pictures.undone_ns(STREAM) is None


def test_a_camera_is_waited_for_by_nobody() -> None:
    pictures = MeetingPictures(SlideSettings())
    pictures.push("camera/video", replace(packet(0, key=True), device_id="camera"), "camera")
    assert pictures.undone_ns("camera/video") is None


def test_terms_do_not_depend_on_slides_that_were_read_later() -> None:
    people = People()
    told = []
    for number in range(20):
        people.saw_slide(Seen("slides", 0, number * 20 * S), (f"Term {number}",))
        told.append(people.terms(31 * S, lambda seen: seen.raw_ns))
    assert told[0] == ("Term 0",)
    assert set(told[1:]) == {("Term 0", "Term 1")}
