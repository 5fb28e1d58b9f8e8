"""The pieces of a meeting: what is asked of the recogniser for each, and what its answers make of it.

What is decided depends on the sound and on what was heard in it, never on when an answer came.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from models.speech_recogniser import SAMPLE_RATE_HZ, Recognition, Word
from models.speech_sentences import ended_words, ends_sentence, settled_words, spoken_words
from operators.speech.echo import is_echo
from operators.speech.endpointing import Asked, Closed, Dropped, Grew, Opened, Proposed, Resumed, Step
from operators.speech.events import (
    Kind,
    PieceWithdrawn,
    RecognitionRequest,
    SpeechEvent,
    SpeechResumed,
)
from operators.speech.piece import (
    Piece,
    echo_margin_db,
    mean_level_db,
    mean_margin_db,
    mean_voice,
    quietest_after,
    range_end_ns,
    sound,
)
from operators.speech.spoken import Spoken
from operators.speech.stream import FRAME_NS, Frame
from operators.speech.told import beginning, decided, open_text
from operators.speech.track import Track

_PRIORITY: dict[Kind, int] = {"final": 0, "speculative": 1, "partial": 2}


@dataclass(frozen=True)
class Verdict:
    """Before which of its frames the open piece ends; None where it goes on."""

    end: int | None


class Pieces:
    """All pieces that are not forgotten, and the events that wait to be taken.

    `offsets_ns` (raw minus timeline, by device) is set by the owner.
    """

    def __init__(self, *, partials: bool, speculative: bool) -> None:
        self._partials = partials
        self._speculative = speculative
        self._pieces: dict[str, Piece] = {}
        self._spoken: dict[str, Spoken] = {}
        self._newest: dict[str, str] = {}
        self._events: list[SpeechEvent] = []
        self.offsets_ns: dict[str, int] = {}

    def take(self) -> list[SpeechEvent]:
        """Events since the last call, in order."""
        events, self._events = self._events, []
        return events

    def tell(self, event: SpeechEvent) -> None:
        """Put an event of another kind in its place among those of the pieces."""
        self._events.append(event)

    def result(self, piece_id: str, version: int, recognition: Recognition) -> None:
        """The answer to a request. Unknown and superseded ones are ignored."""
        piece = self._pieces.get(piece_id)
        if piece is None:
            return
        if version == piece.settled and piece.heard is None:
            piece.heard = recognition
            if piece.closed:
                self._tell_next(piece)
        if piece.done:
            return
        if version == piece.settled:
            if piece.recognition is None:
                piece.recognition = recognition
                self._settle(piece)
        elif not piece.closed and version > max(piece.shown, piece.settled):
            self._show(piece, version, "partial", recognition)
            if version == piece.voided and ends_sentence(recognition.words):
                # Too late to end the piece here, and still what was said so far.
                self._begins_with(piece, version, recognition, len(recognition.words))

    def held_ns(self, key: str) -> list[int]:
        """Raw starts of a microphone's pieces that are not decided."""
        return [p.samples_start_ns for p in self._pieces.values() if p.stream == key and not p.done]

    def held(self, key: str) -> list[int]:
        """First samples of a microphone's pieces that are not decided."""
        return [p.start_index for p in self._pieces.values() if p.stream == key and not p.done]

    def unanswered(self, key: str) -> int:
        """How many of a microphone's pieces wait for the answer that decides them."""
        return sum(
            p.stream == key and p.settled > 0 and p.recognition is None and not p.done
            for p in self._pieces.values()
        )

    def follow(self, track: Track, steps: Sequence[Step]) -> None:
        """Do what the endpointer of a microphone says."""
        for step in steps:
            match step:
                case Opened(frames):
                    self._opened(track, frames)
                case Grew(frames):
                    if self._partials:
                        self._request(track, self._open_piece(track), frames, "partial")
                case Proposed(frames):
                    if self._speculative:
                        self._request(track, self._open_piece(track), frames, "speculative")
                case Asked(frames, pause):
                    self._asked(track, frames, pause)
                case Resumed():
                    self._resumed(self._open_piece(track))
                case Closed():
                    self._closed(track, step)
                case Dropped():
                    piece = self._open_piece(track)
                    piece.closed = True
                    self._drop(piece, "too short")
                    self._decide()
                    track.piece_id = None

    def verdict(self, track: Track) -> Verdict | None:
        """What the endpointer of a microphone is to be told that asked where a sentence ends; None: not known yet."""
        piece = self._open_piece(track)
        if piece.done or not piece.settled:
            return Verdict(None)
        found = piece.heard
        if found is None:
            return None
        if not piece.look:
            return Verdict(track.endpointer.asking if ends_sentence(found.words) else None)
        frames = track.endpointer.frames
        count = settled_words(found.words, len(frames) * FRAME_NS / 1e9)
        end = quietest_after(frames, found.words[count - 1]) if count else None
        if end is None:
            begun = spoken_words(found.words[: ended_words(found.words)])
            piece.sentences += [begun] if begun else []
        else:
            self._keep_sentences(track, piece, frames[:end], found.words[:count])
        return Verdict(end)

    def forget(self, horizon_ns: int) -> None:
        """Let go of decided pieces that ended before this timeline time.

        A piece may be decided (as another microphone's echo) while its own microphone still adds to it.
        """
        for piece in list(self._pieces.values()):
            if piece.done and piece.closed and self._span(piece)[1] < horizon_ns:
                del self._pieces[piece.piece_id]

    def dump(self) -> dict[str, Any]:
        """State as plain values."""
        return {
            "pieces": [piece.dump() for piece in self._pieces.values()],
            "spoken": [spoken.dump() for spoken in self._spoken.values()],
            "newest": dict(self._newest),
        }

    def load(self, raw: dict[str, Any]) -> None:
        """Take up what `dump` wrote, and ask again for decisive answers that had not come."""
        self._pieces = {piece.piece_id: piece for piece in map(Piece.load, raw["pieces"])}
        self._spoken = {spoken.piece_id: spoken for spoken in map(Spoken.load, raw["spoken"])}
        self._newest = dict(raw["newest"])
        for piece in self._pieces.values():
            self._repeat(piece)

    def _open_piece(self, track: Track) -> Piece:
        assert track.piece_id is not None, "the endpointer opens a piece before anything else"
        return self._pieces[track.piece_id]

    def _opened(self, track: Track, frames: list[Frame]) -> None:
        name = track.stream.name
        piece = Piece(
            piece_id=name.piece_id(frames[0].index),
            stream=track.key,
            device=name.device,
            speaker=track.stream.speaker or None,
            start_index=frames[0].index,
            samples_start_ns=frames[0].start_ns,
            start_ns=frames[-1].start_ns,
            end_ns=frames[-1].end_ns,
            shared=track.endpointer.shared,
        )
        track.piece_id = piece.piece_id
        self._pieces[piece.piece_id] = piece
        self._look_back(track, piece, frames[0])

    def _look_back(self, track: Track, piece: Piece, first: Frame) -> None:
        """Let a piece that follows after a short pause be told what was said before it, now or when that is known."""
        spoken = self._spoken.get(self._newest.get(track.key, ""))
        count = None if spoken is None else spoken.follows(piece.piece_id, first)
        pause = None if count is None else track.just_before(first, count)
        if spoken is None or pause is None:
            return
        piece.pause = sound(pause).tobytes() if pause else b""
        if spoken.words is None:
            piece.waits_for = spoken.piece_id
        else:
            piece.before = spoken.before(piece.pause)

    def _remember(self, piece: Piece, last: Frame) -> None:
        """Keep what the next piece of the stream is told of this one, which ends with this frame."""
        earlier = self._spoken.get(self._newest.get(piece.stream, ""))
        if earlier is not None and earlier.words is not None:
            del self._spoken[earlier.piece_id]
        self._newest[piece.stream] = piece.piece_id
        self._spoken[piece.piece_id] = Spoken.of(piece.piece_id, last, piece.pcm)
        self._tell_next(piece)

    def _tell_next(self, piece: Piece) -> None:
        """The answer for a closed piece is there: whatever becomes of it, those that wait for it may go."""
        spoken = self._spoken.get(piece.piece_id)
        if spoken is None or piece.heard is None:
            return
        spoken.words = piece.heard.words
        for later in list(self._pieces.values()):
            if later.waits_for == piece.piece_id:
                later.waits_for, later.before = None, spoken.before(later.pause)
                self._repeat(later)
        if self._newest.get(piece.stream) != piece.piece_id:
            del self._spoken[piece.piece_id]

    def _request(
        self,
        track: Track,
        piece: Piece,
        frames: list[Frame],
        kind: Kind,
        *,
        holds: bool = False,
        look: bool = False,
    ) -> None:
        piece.version += 1
        pcm = sound(frames)
        if kind != "partial":
            piece.settled, piece.settled_end = piece.version, frames[-1].index
            piece.recognition = piece.heard = None
            piece.pcm = pcm.tobytes()
            piece.look = look
        self._measure(track, piece, frames)
        self._ask(piece, piece.version, kind, pcm, range_end_ns(frames), holds)

    def _measure(self, track: Track, piece: Piece, frames: list[Frame]) -> None:
        """Where the voice in these frames ends, how loud and how clearly it is the speaker's, and who that is."""
        voiced = [frame for frame in frames if frame.voiced]
        piece.end_ns = voiced[-1].end_ns if voiced else frames[-1].end_ns
        piece.margin_db, piece.level_db = mean_margin_db(frames), mean_level_db(frames)
        piece.voice = mean_voice(frames)
        piece.speaker = track.speaker(frames)

    def _asked(self, track: Track, frames: list[Frame], pause: bool) -> None:
        """Hear what decides whether a sentence ends; at a pause that has mostly been asked for when it began."""
        piece = self._open_piece(track)
        if piece.done:
            return
        if not pause or piece.settled_end != frames[-1].index or not piece.settled:
            self._request(track, piece, frames, "speculative", holds=True, look=not pause)

    def _keep_sentences(
        self, track: Track, piece: Piece, frames: list[Frame], words: tuple[Word, ...]
    ) -> None:
        """What was heard in a piece that is looked through is cut down to whole sentences and their sound."""
        assert piece.heard is not None
        kept = replace(piece.heard, words=words, text=" ".join(word.text for word in words))
        piece.heard = piece.recognition = kept
        piece.look = False
        piece.settled_end = frames[-1].index
        piece.pcm = sound(frames).tobytes()
        self._measure(track, piece, frames)

    def _ask(
        self,
        piece: Piece,
        version: int,
        kind: Kind,
        pcm: "np.ndarray[tuple[int, ...], np.dtype[np.int16]]",
        end_ns: int,
        holds: bool = False,
    ) -> None:
        if kind != "partial" and piece.waits_for is not None:
            return
        self._events.append(
            RecognitionRequest(
                piece_id=piece.piece_id,
                version=version,
                kind=kind,
                device=piece.device,
                samples=pcm.astype(np.float32) / 32768.0,
                start_ns=piece.samples_start_ns,
                end_ns=end_ns,
                priority=_PRIORITY[kind],
                before=None if kind == "partial" else piece.before,
                voice=piece.voice,
                # Where nothing is heard before a piece ends, the next one may have to wait for it.
                holds=holds or (piece.shared and not self._speculative),
            )
        )

    def _resumed(self, piece: Piece) -> None:
        if piece.settled:
            piece.voided = piece.settled
            piece.settled, piece.recognition, piece.heard, piece.pcm = 0, None, None, b""
            if piece.look:
                piece.look = False
                return
            self._events.append(SpeechResumed(piece.piece_id, piece.version, piece.device))

    def _closed(self, track: Track, step: Closed) -> None:
        piece = self._open_piece(track)
        track.piece_id = None
        # What was only looked through may stand on the log in part.
        if not piece.settled or piece.settled_end != step.frames[-1].index or piece.look:
            piece.look = False
            self._request(track, piece, step.frames, "final")
        piece.closed = True
        self._remember(piece, step.frames[-1])
        piece.start_ns, piece.end_ns = step.first_voiced.start_ns, step.last_voiced.end_ns
        piece.gaps = [
            (start, end)
            for start, end in track.stream.gaps
            if start < piece.end_ns and end > piece.samples_start_ns
        ]
        self._settle(piece)

    def _settle(self, piece: Piece) -> None:
        """Show or close a piece whose decisive answer is there."""
        found = piece.recognition
        if found is None:
            return
        if not found.text:
            if piece.closed:
                self._drop(piece, found.suppressed or "no speech")
                self._decide()
        elif piece.closed:
            self._decide()
        elif piece.look:
            self._show(piece, piece.settled, "partial", found)
            if not settled_words(found.words, len(piece.pcm) / 2 / SAMPLE_RATE_HZ):
                self._begins_with(piece, piece.settled, found, ended_words(found.words))
        elif not any(self._repeats(piece, other) for other in self._pieces.values()):
            self._show(piece, piece.settled, "tentative", found)

    def _decide(self) -> None:
        """Close pieces whose final text is there, and drop those that repeat what another microphone heard better.

        Only final texts decide, and only what is kept lets others be dropped, so that the outcome hangs neither on when
        an answer came nor can take a sentence from all microphones. Where it looks as if a piece repeated what somebody
        is still saying, or what may yet turn out to be a repetition itself, it waits.
        """
        heard = [p for p in self._pieces.values() if p.closed and not p.dropped and p.heard and p.heard.text]
        heard.sort(key=lambda p: (-p.margin_db, -p.level_db, p.piece_id))
        louder = {p.piece_id: [o for o in heard if self._repeats(p, o)] for p in heard}
        unheard = [
            p for p in self._pieces.values() if not p.dropped and not (p.closed and p.heard is not None)
        ]
        kept: set[str] = set()
        while heard:
            # After all that it may repeat; where three repeat each other in a circle, the clearest first.
            left = {p.piece_id for p in heard}
            piece = next(
                (p for p in heard if left.isdisjoint(o.piece_id for o in louder[p.piece_id])), heard[0]
            )
            heard.remove(piece)
            witness = next((other for other in louder[piece.piece_id] if other.piece_id in kept), None)
            if witness is None:
                kept.add(piece.piece_id)
                if not piece.done and not any(self._repeats(piece, other) for other in unheard):
                    self._close(piece)
            elif not any(self._at_once(witness, other) for other in unheard):
                self._drop(piece, f"cross-talk of {witness.piece_id}")

    def _close(self, piece: Piece) -> None:
        found = piece.recognition
        assert found is not None, "a piece is closed with the text that was heard in it"
        told = decided(piece, found)
        if len(told) > 1:
            # The answer to the request is more than stands in any of them: the log must not pass one off as it, and
            # has to know it, for a restart.
            if piece.logged != piece.settled:
                self._show(piece, piece.settled, "tentative", found)
            piece.version += 1
            told = [replace(part, version=piece.version) for part in told]
        piece.parts = [part.piece_id for part in told[1:]]
        piece.done, piece.shown = True, piece.version
        _let_go(piece)
        self._events += told

    def _show(
        self, piece: Piece, version: int, state: Literal["partial", "tentative"], found: Recognition
    ) -> None:
        if found.text:
            piece.shown = version
            piece.logged = version if state == "tentative" else piece.logged
            self._events.append(open_text(piece, version, state, found))

    def _begins_with(self, piece: Piece, version: int, found: Recognition, count: int) -> None:
        """Put on the log what seems to be said, while speech goes on: mostly it stays as it is."""
        begun = spoken_words(found.words[:count])
        if piece.shared and begun and begun != piece.told:
            piece.told, piece.shown = begun, version
            self._events.append(beginning(piece, version, found, count))

    def _drop(self, piece: Piece, reason: str) -> None:
        """End a piece without text; said aloud only where something of it had been shown."""
        piece.done, piece.recognition = True, None
        if piece.closed:
            _let_go(piece)
        if piece.shown:
            for told in (piece.piece_id, *piece.parts):
                self._events.append(PieceWithdrawn(told, piece.version, piece.device, reason))

    def _repeats(self, piece: Piece, other: Piece) -> bool:
        """Whether a piece repeats what another microphone heard at the same time, and heard better."""
        if piece.heard is None or other.heard is None or other.dropped or not self._at_once(piece, other):
            return False
        margin_db = echo_margin_db(piece, other)
        spans = (self._span(piece), self._span(other))
        return margin_db is not None and is_echo(piece.heard.text, other.heard.text, *spans, margin_db)

    def _at_once(self, piece: Piece, other: Piece) -> bool:
        """Whether something was said at another microphone while this was said."""
        (start, end), (other_start, other_end) = self._span(piece), self._span(other)
        return piece.stream != other.stream and other_start < end and (not other.closed or start < other_end)

    def _span(self, piece: Piece) -> tuple[int, int]:
        offset = self.offsets_ns.get(piece.device, 0)
        return piece.start_ns - offset, piece.end_ns - offset

    def _repeat(self, piece: Piece) -> None:
        """Ask again for a decisive answer that was outstanding."""
        if not piece.settled or piece.heard is not None or not piece.pcm:
            return
        pcm = np.frombuffer(piece.pcm, dtype=np.int16)
        kind: Kind = "final" if piece.closed else "speculative"
        end_ns = piece.samples_start_ns + len(pcm) * 62_500
        self._ask(piece, piece.settled, kind, pcm, end_ns, holds=piece.look)


def _let_go(piece: Piece) -> None:
    """Forget the sound of a piece that is decided."""
    piece.pcm, piece.pause, piece.before = b"", b"", None
