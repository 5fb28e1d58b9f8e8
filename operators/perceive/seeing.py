"""What the cameras and screens of one meeting show: steps of their pictures turned into records and requests."""

from collections.abc import Iterable, Mapping
from typing import Literal

from contracts.messages import OcrMessage, TextLine
from operators.perceive.output import Output
from operators.perceive.people import People, Seen
from operators.perceive.pictures import (
    DecodePicture,
    FetchFrame,
    MeetingPictures,
    PictureFeatures,
    PictureLost,
    PictureStep,
    ReadSlide,
)
from operators.perceive.records import features_packet, slide_record
from operators.perceive.types import Stream
from operators.pictures.slides import Slide


class Seeing:
    """All pictures of one meeting. Streams and people are the meeting's; people are told what slides say."""

    def __init__(
        self, pictures: MeetingPictures, output: Output, streams: Mapping[str, Stream], people: People
    ) -> None:
        self._pictures = pictures
        self._output = output
        self._streams = streams
        self._people = people

    def take(self, steps: Iterable[PictureStep]) -> None:
        """What a packet or an answer brought about."""
        for step in steps:
            if isinstance(step, DecodePicture | FetchFrame | ReadSlide):
                self._output.ask(step)
                continue
            stream = self._streams[step.stream]
            if isinstance(step, PictureLost):
                what: Literal["shed", "undecodable"] = "shed" if step.shed else "undecodable"
                self._output.gap(stream, step.raw_ns, step.raw_ns + 1, what)
            elif isinstance(step, PictureFeatures):
                stream.features += 1
                self._output.ask(features_packet(self._output.meeting_id, stream, step.block))
            else:
                self._shown(stream, step.slide)

    def told(self, stream: Stream, message: OcrMessage) -> None:
        """The text of a slide that a device has read itself."""
        lines = tuple(line for line in message.lines if line.text.strip())
        self._record(
            stream, message.timestamp_ns, lines, known=False, sampling_ms=0.0, mark_ns=stream.told_mark_ns
        )

    def _shown(self, stream: Stream, slide: Slide) -> None:
        lines = tuple(
            TextLine(text=line.text, box=line.box, confidence=line.confidence) for line in slide.lines
        )
        self._record(
            stream, slide.start_ns, lines, known=slide.known,
            sampling_ms=self._pictures.sampling_ns(stream.name) / 1e6, mark_ns=self._pictures.mark_ns(stream.name),
        )  # fmt: skip

    def _record(
        self, stream: Stream, raw_ns: int, lines: tuple[TextLine, ...], *, known: bool, sampling_ms: float,
        mark_ns: int | None,
    ) -> None:  # fmt: skip
        self._output.record(
            slide_record(
                self._output.meeting_id, stream, raw_ns, lines, known=known, sampling_ms=sampling_ms, mark_ns=mark_ns
            )
        )  # fmt: skip
        self._people.saw_slide(Seen(stream.device, stream.clock, raw_ns), tuple(line.text for line in lines))
