"""Every message a person can see, collected from the sources: each stands here once and must read well.

``python -m tests.flows.test_messages`` prints the list, to be read by eye.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from flows import cli

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDERS: Final = ("contracts", "devices", "models", "operators", "flows")
REFUSALS: Final = frozenset(
    {"InputError", "Problem", "UserProblem", "SettingsProblem", "TopicProblem", "ModelError", "BrokerError",
     "BrokerUnreachable", "PublishError", "InstallationError", "StateError", "PictureError", "SoundError",
     "PacketError", "Misplaced", "KeyProblem", "RulesProblem", "AuditProblem", "CalibrationProblem",
     "ReviewProblem", "CaseError", "ScriptError", "VerifierUnusable"}
)  # fmt: skip
"""One line that ends a command, or the reason of a dead letter."""
REMARKS: Final = frozenset({"note", "_note", "_fail"})
"""Said of one file or packet while the rest goes on."""
NOTICES: Final = frozenset({"_notice", "notice", "NoticeRecord"})
"""Whole sentences in the minutes."""
LINES: Final = frozenset({"say", "print", "progress"})
"""What flows and commands say as they run."""
LIBRARY_WORDS: Final = re.compile(
    r"\b(?:errno|exception|traceback|nonetype|pydantic|ffmpeg|librdkafka|segfault|nan|stdin|stack|"
    r"tuple|dict|ndarray|codec can't|could not convert|unexpected|oops|please|successfully|failure)\b|!$",
    re.IGNORECASE,
)
_CODE: Final = re.compile(r"[a-z]+(?:_[a-z]+)*")
_NAMES: Final = re.compile(r"(?:[A-Z0-9_.]{2,}|Apache|Kafka)\b")


@dataclass(frozen=True, slots=True)
class Said:
    """A message as it stands in a source: ``…`` where something is filled in."""

    place: str
    by: str
    text: str
    filled: tuple[str, ...]


def collected() -> list[Said]:
    """All messages of the product."""
    found: list[Said] = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            place = str(path.relative_to(ROOT))
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    found += _of_call(node, place)
    return found


def _of_call(call: ast.Call, place: str) -> Iterator[Said]:
    function = call.func
    by = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    if by not in REFUSALS | REMARKS | NOTICES | LINES:
        return
    arguments = [
        *call.args,
        *(k.value for k in call.keywords if k.arg in {"text", "what", "reason", "detail"}),
    ]
    for argument in arguments:
        filled: list[str] = []
        text = _text(argument, filled)
        # Single words are codes for counters, not for people.
        if text is not None and " " in text.strip():
            yield Said(f"{place}:{argument.lineno}", by, text, tuple(filled))


def _text(node: ast.expr, filled: list[str]) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, filled) or "" for part in parts)
        case ast.FormattedValue(value=value):
            filled.append(ast.unparse(value))
            return "…"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (_text(left, filled) or "…") + (_text(right, filled) or "…")
        case ast.IfExp(body=body, orelse=other):
            return _text(body, filled) or _text(other, filled)
        case _:
            return None


MESSAGES: Final = collected()


def test_the_list_holds_the_messages_of_all_parts() -> None:
    assert len(MESSAGES) > 150
    for kind in (REFUSALS, REMARKS, NOTICES, LINES):
        assert any(message.by in kind for message in MESSAGES)


def test_every_error_that_ends_a_command_in_a_line_is_listed() -> None:
    assert {error.__name__ for error in cli._problems()} <= REFUSALS


@pytest.mark.parametrize("folder", FOLDERS)
def test_messages_are_in_our_words_and_one_line(folder: str) -> None:
    for message in (m for m in MESSAGES if m.place.startswith(folder)):
        about = f"{message.place}: {message.text!r}"
        assert not LIBRARY_WORDS.search(message.text), about
        assert message.by == "print" or "\n" not in message.text, about
        assert message.by == "print" or "  " not in message.text, about
        assert message.text.strip() == message.text or message.by == "print", about


def test_refusals_begin_small_and_end_without_a_stop() -> None:
    for message in (m for m in MESSAGES if m.by in REFUSALS | REMARKS):
        about = f"{message.place}: {message.text!r}"
        first = message.text[:1]
        assert first in "…“`-=" or first.islower() or first.isdigit() or _NAMES.match(message.text), about
        assert not message.text.endswith("."), about


def test_notices_are_sentences() -> None:
    for message in (m for m in MESSAGES if m.by in NOTICES):
        about = f"{message.place}: {message.text!r}"
        assert message.text[:1] == "…" or message.text[:1].isupper(), about
        assert message.text.endswith("."), about


OTHERS_WORDS: Final = frozenset(
    {
        # Of a minutes model that cannot be used our own errors are caught, and no others.
        "flows/minutes_model.py",
        # The broker's and the client's own words about a broker that refuses.
        "devices/publisher.py", "operators/broker/kafka_link.py", "operators/broker/sink.py", "flows/brokers.py",
        # What the data base and the networks' runtime say of files that are ours to know.
        "operators/store.py", "operators/shard.py", "models/slide_reader.py", "models/speech_recogniser.py",
        "models/voice_activity.py",
    }
)  # fmt: skip


def test_errors_of_libraries_are_not_passed_on() -> None:
    """Where a message holds an error's own text, that error is one of ours or is known to read well."""
    raw = re.compile(r"^(?:str\()?error\)?$")
    ours = {"flows/cli.py", "flows/build.py", "operators/language/rules.py", "devices/live.py"}
    ours |= {"devices/rooms/speak.py"}
    for message in MESSAGES:
        if any(raw.match(value) for value in message.filled):
            path = message.place.rpartition(":")[0]
            assert path in ours | OTHERS_WORDS, f"{message.place}: {message.text!r}"


if __name__ == "__main__":
    for message in MESSAGES:
        print(f"{message.place}: {message.text}")
