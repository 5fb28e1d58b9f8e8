"""Which messages travel on which topic."""

import re
from typing import Final, get_args

from . import topics
from .audit import SealedEntry
from .base import Message
from .messages import AnyControl, DeadLetter, EndOfStream, OcrMessage, PartialText, TranscriptMessage
from .minutes import AnyEvent, AuditEntry, MinutesDocument, MinutesState, ReviewRequest
from .timeline import AnyRecord, Fence
from .topics import Topic

CARRIED: Final[dict[Topic, tuple[type[Message], ...]]] = {
    topics.VIDEO: (EndOfStream,),
    topics.AUDIO: (EndOfStream,),
    topics.OCR: (OcrMessage, EndOfStream),
    topics.TRANSCRIPT: (TranscriptMessage, EndOfStream),
    topics.CONTROL: get_args(AnyControl),
    topics.TIMELINE: (*get_args(AnyRecord), Fence),
    topics.PARTIALS: (PartialText,),
    topics.MINUTES: get_args(AnyEvent),
    topics.STATE: (MinutesState,),
    topics.REVIEW: (ReviewRequest,),
    topics.AUDIT: (SealedEntry,),
    topics.DEADLETTER: (DeadLetter,),
}
"""JSON messages of each topic; where the topic's format says so, packets travel beside them."""


def name_of(model: type[Message]) -> str:
    """Name of a message: its ``type``, or the class name in lower case where the message has none."""
    kind = model.model_fields.get("type")
    if kind is not None and isinstance(kind.default, str):
        return kind.default
    return re.sub(r"(?<!^)(?=[A-Z])", "_", model.__name__).lower()


MODELS: Final[dict[str, type[Message]]] = {
    name_of(model): model for carried in CARRIED.values() for model in carried
} | {name_of(model): model for model in (MinutesDocument, AuditEntry)}
"""Every message by its name, the document that is written to a file, and what sealed audit entries hold."""
