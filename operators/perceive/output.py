"""What one meeting puts out: records for the log, each once, and requests for slow work."""

from typing import Literal

from contracts.timeline import AnyRecord, GapRecord, NoticeRecord, StreamRecord, UtteranceRecord
from operators.perceive.types import Emission, Stream

StreamState = Literal["opened", "ended", "given_up", "shed", "resumed"]
Gap = Literal["lost", "undecodable", "shed", "silent_device"]


class Output:
    """Collects emissions. What an earlier run wrote holds, and is not written again."""

    def __init__(self, meeting_id: str) -> None:
        self.meeting_id = meeting_id
        self._out: list[Emission] = []
        self._decided: dict[str, AnyRecord] = {}
        self._texts: dict[tuple[str, int], UtteranceRecord] = {}

    def decide(self, record: AnyRecord) -> None:
        """A record of an earlier run that stands on the log: it holds."""
        self._decided[record.identity] = record
        if isinstance(record, UtteranceRecord) and record.state != "withdrawn":
            self._texts[record.id, record.version] = record

    def decided(self, identity: str) -> AnyRecord | None:
        """The record that an earlier run wrote under this name."""
        return self._decided.get(identity)

    def decided_text(self, piece_id: str, version: int) -> UtteranceRecord | None:
        """What an earlier run wrote of this answer of the recogniser."""
        return self._texts.get((piece_id, version))

    def forget(self) -> None:
        """The meeting is over: nothing of it will be written again."""
        self._decided.clear()
        self._texts.clear()

    def ask(self, emission: Emission) -> None:
        """Anything that is no record of the log."""
        self._out.append(emission)

    def record(self, record: AnyRecord) -> None:
        """A record for the log."""
        if record.identity not in self._decided:
            self._out.append(record)

    def notice(self, code: str, text: str) -> None:
        """Something that readers of the minutes are told."""
        self.record(NoticeRecord(meeting_id=self.meeting_id, code=code, text=text))

    def gap(self, stream: Stream, start_ns: int, end_ns: int, what: Gap, *, clock: int | None = None) -> None:
        """A stretch of a stream of which nothing is known.

        Raw times; ``clock``: number of the clock record that they refer to, None for the stream's newest.
        """
        self.record(
            GapRecord(
                meeting_id=self.meeting_id, stream=stream.name, device=stream.device,
                clock=stream.clock if clock is None else clock, raw_start_ns=start_ns,
                raw_end_ns=max(start_ns, end_ns), what=what,
            )
        )  # fmt: skip

    def stream(self, stream: Stream, state: StreamState, raw_ns: int, epoch: int) -> None:
        """What becomes of a stream."""
        self.record(
            StreamRecord(
                meeting_id=self.meeting_id, stream=stream.name, state=state, stream_epoch=epoch,
                sequence=stream.sequence, raw_ns=raw_ns,
            )
        )  # fmt: skip

    def take(self) -> list[Emission]:
        """All since the last call, in order."""
        out, self._out = self._out, []
        return out
