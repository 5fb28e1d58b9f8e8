"""``minuted audit`` on files, and what ``minuted review`` shows, asks and sends, without a broker."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flows.review_command as command
from contracts.messages import Correction, NameCorrected
from contracts.minutes import Evidence, ReviewRequest
from contracts.topics import AUDIT, MINUTES, REVIEW, STATE
from flows import audit
from flows.cli import main
from flows.review import Cases, Outcome, ReviewProblem, Wanted, correction, purged
from flows.topic_reader import Found
from operators.deliver.keys import KeyStore
from operators.settings import load_settings

TALK = (
    (1, 4, "Anna", "We decided that the stall opens on Saturday."),
    (5, 8, "Ben", "Someone needs to update the price list."),
    (9, 12, "Ben", "I will order the cups by Friday."),
)


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    code = ended.value.code
    return code if isinstance(code, int) else 0


@pytest.fixture(scope="module")
def minutes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("minutes")
    told = [dict(zip(("start_s", "end_s", "speaker", "text"), line, strict=True)) for line in TALK]
    (folder / "talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
    assert run("run", str(folder / "talk.jsonl"), "--date", "2026-05-27", "--out", str(folder / "out")) == 0
    return folder / "out"


def test_an_audit_of_files_is_whole_and_shown(minutes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("audit", "verify", str(minutes)) == 0
    assert "whole" in capsys.readouterr().out
    tasks = json.loads((minutes / "minutes.json").read_text())["action_items"]
    (cups,) = [task["id"] for task in tasks if "cups" in task["text"]]
    assert run("audit", "show", cups, str(minutes)) == 0
    shown = capsys.readouterr().out
    for part in (
        "by the model",
        "“I will order the cups by Friday.”",
        "owner_stated",
        "known owner",
        "due 2026-05-29",
        "default/",
    ):
        assert part in shown
    assert run("audit", "show", cups, str(minutes), "--json") == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert json.loads(first)["item_id"] == cups


def test_the_same_log_gives_the_same_audit(minutes: Path, tmp_path: Path) -> None:
    assert run("run", str(minutes / "timeline.jsonl"), "--out", str(tmp_path)) == 0
    for name in ("audit.jsonl", "minutes.json"):
        assert (tmp_path / name).read_bytes() == (minutes / name).read_bytes()


@pytest.mark.parametrize("harm", ["cut", "first", "swapped", "changed", "garbage"])
def test_a_harmed_audit_is_told_in_one_line(
    minutes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    lines = (minutes / "audit.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "minutes.json").write_bytes((minutes / "minutes.json").read_bytes())
    harmed = {
        "cut": lines[:-1], "first": lines[1:], "swapped": [lines[1], lines[0], *lines[2:]],
        "changed": [lines[0].replace(b'"ciphertext":"', b'"ciphertext":"AAAA'), *lines[1:]],
        "garbage": [*lines, b"{}\n"],
    }[harm]  # fmt: skip
    (tmp_path / "audit.jsonl").write_bytes(b"".join(harmed))
    assert run("audit", "verify", str(tmp_path)) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_cannot_be_found_is_told(
    minutes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (
        ("verify", str(tmp_path)), ("show", "nothing", str(minutes)), ("verify", str(minutes), "--meeting", "other"),
    ):  # fmt: skip
        assert run("audit", *arguments) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_keys_that_need_a_master_key_are_told_in_one_line(
    minutes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    KeyStore(tmp_path / "keys", bytes(32))
    monkeypatch.setenv("MINUTED_KEYS", str(tmp_path / "keys"))
    assert run("audit", "show", "meeting", str(minutes)) == 2
    told = capsys.readouterr().err
    assert "needs the master key" in told and told.count("\n") == 1


FOREIGN = (b"", b"{}", b"\xff\xfe", b"null", b'{"type": "final"}', b'{"schema": "minuted.minutes/1"}')


def test_foreign_messages_on_the_topics_prove_nothing_and_stop_nothing(
    minutes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = (minutes / "audit.jsonl").read_bytes().splitlines()
    state = (minutes / "minutes.json").read_bytes()
    told = [Found(t.name, 0, n, b"", v) for t in (STATE, MINUTES) for n, v in enumerate((*FOREIGN, None))]
    told += [Found(AUDIT.name, 0, n, b"", value) for n, value in enumerate(entries)]

    class Reader:
        def __init__(self, *_: object, **__: object) -> None: ...
        def __enter__(self) -> Reader:
            return self

        def __exit__(self, *_: object) -> None: ...
        def to_end(self) -> list[Found]:
            return told

    monkeypatch.setattr(audit, "TopicReader", Reader)
    (report,) = audit.proof_of_topics(load_settings(), None, 1.0).reports()
    assert report.holds and report.proven == 0
    told.append(Found(STATE.name, 0, 9, b"", state))
    (report,) = audit.proof_of_topics(load_settings(), None, 1.0).reports()
    assert report.holds and report.proven == report.entries == len(entries)
    assert not purged(told, "talk")


SAID = Evidence(
    kind="speech", start_s=65.0, end_s=68.0, device="mic", speaker="Ben\x1b[31m", quote="Someone \u202eneeds it",
    error_ms=0, sampling_ms=0, boundary_ms=0,
)  # fmt: skip


def case(**changes: Any) -> ReviewRequest:
    fields: dict[str, Any] = {
        "meeting_id": "m", "generation": 0, "request_id": "3f2a9c81d04e", "item_id": "a1", "section": "action_items",
        "reason": "owner named: does not hold", "text": "Update the list", "withheld": False, "evidence": (SAID,),
        "item_sha256": "0" * 64,
    }  # fmt: skip
    return ReviewRequest.model_validate(fields | changes)


def cases(*requests: ReviewRequest) -> Cases:
    known = Cases()
    for request in requests:
        known.feed(Found(REVIEW.name, 0, 0, b"", request.to_bytes()))
    return known


def test_the_newest_version_of_a_case_counts_in_any_order() -> None:
    closed = case(version=1, state="closed", text="", evidence=())
    assert cases(case(), closed).open() == cases(closed, case()).open() == []
    again = case(version=2)
    assert cases(again, closed, case()).open() == [again]
    assert cases(again).open("other") == []
    assert cases(again, case(meeting_id="n")).find("3f2a", "m") == ("m", "a1", "0" * 64)
    with pytest.raises(ReviewProblem, match="2 items"):
        cases(again, case(meeting_id="n")).find("3f2a", None)
    with pytest.raises(ReviewProblem, match="no such"):
        cases().find("3f2a", None)


def test_a_case_is_shown_without_what_could_harm_a_terminal() -> None:
    text = "\n".join(command.case_lines(case(owner="Ben", due=dt.date(2026, 3, 18))))
    assert "01:05 Ben: “Someone needs it”" in text
    assert "Update the list → Ben, due Wednesday 18 March 2026" in text
    assert text.replace("\n", "").isprintable()
    assert "not in the minutes" in command.case_lines(case(withheld=True))[0]


def test_answers_that_say_nothing_are_refused() -> None:
    with pytest.raises(ReviewProblem, match="a change needs"):
        correction("m", "a1", None, "change", Wanted(), "Anna")
    with pytest.raises(ReviewProblem, match="set and cleared"):
        correction("m", "a1", None, "change", Wanted(owner="Ben", clear=("owner",)), "Anna")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Correction | NameCorrected]]:
    """What the command sends, with topics that hold two open cases."""
    found: list[Correction | NameCorrected] = []

    def send(_: object, answer: Correction | NameCorrected, **__: object) -> Outcome:
        found.append(answer)
        return Outcome(
            answer.by != "Nobody", "applied: revision 7" if answer.by != "Nobody" else "not applied: no"
        )

    known = cases(case(), case(request_id="77aa77aa77aa", item_id="d1", section="decisions", evidence=()))
    monkeypatch.setattr(command, "send_and_follow", send)
    monkeypatch.setattr(command, "read_cases", lambda *_, **__: known)
    yield found


def test_answers_by_options(
    sent: list[Correction | NameCorrected], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("review", "--list") == 0
    assert "2 cases wait" in capsys.readouterr().out
    assert run("review", "--list", "--json") == 0
    assert [c["item_id"] for c in json.loads(capsys.readouterr().out)] == ["d1", "a1"]
    change = ("review", "--answer", "3f2a9c", "change", "--owner", "Ben", "--clear", "due", "--by", "Anna")
    assert run(*change) == 0
    assert (
        run("review", "--meeting", "m", "--name", "Brightwater", "--heard", "bright water", "--by", "Anna")
        == 0
    )
    first, second = sent
    assert isinstance(first, Correction) and isinstance(second, NameCorrected)
    assert (first.item_id, first.owner, first.clear, first.expected_sha256) == (
        "a1",
        "Ben",
        ("due",),
        "0" * 64,
    )
    assert (second.name, second.heard) == ("Brightwater", ("bright water",))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--answer", "3f2a9c", "perhaps"), ("--answer", "3f2a9c", "change"), ("--answer", "none", "accept"),
        ("--answer", "3f2a9c", "change", "--due", "tomorrow"), ("--answer", "3f2a9c", "change", "--clear", "text"),
        ("--add", "decision", "--text", "x"), ("--name", "Ben"), ("--answer", "3f2a9c", "accept", "--by", "Nobody"),
    ],
)  # fmt: skip
def test_wrong_answers_end_with_one_line(
    sent: list[Correction | NameCorrected], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert run("review", *arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_answers_in_the_terminal(
    sent: list[Correction | NameCorrected], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Skip the decision; change owner and date of the task, keep its text."""
    given = iter(["s", "c", "", "-", "2026-03-18"])
    monkeypatch.setattr("rich.prompt.Prompt.get_input", lambda *_, **__: next(given))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert run("review", "--by", "Anna") == 0
    (only,) = sent
    assert isinstance(only, Correction)
    assert (only.item_id, only.text, only.owner, only.due, only.clear) == (
        "a1", None, None, dt.date(2026, 3, 18), ("owner",),
    )  # fmt: skip


@pytest.mark.parametrize("meeting", ["", "*", "x" * 300])
def test_a_purge_of_what_is_no_meeting_is_refused_in_one_line(
    meeting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("purge", "--meeting", meeting, "--yes") == 2
    told = capsys.readouterr().err
    assert told.startswith("minuted: ") and told.count("\n") == 1
