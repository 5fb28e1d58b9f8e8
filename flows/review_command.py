"""The ``minuted review`` and ``minuted purge`` commands: what is shown, what is asked, what is sent."""

from __future__ import annotations

import datetime
import getpass
import json
import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Final, Literal, cast, get_args

import typer
from rich.console import Console
from rich.prompt import Prompt
from rich.text import Text

from contracts.messages import Correction, NameCorrected
from contracts.minutes import ReviewRequest, Section
from operators.broker.kafka_link import BrokerLink
from operators.deliver.keys import KeyProblem, KeyStore, master_key
from operators.deliver.render import clock_text, date_text
from operators.plain_text import plain
from operators.settings import SettingsProblem

from .command_settings import PATIENCE_S, settings_of
from .purge import purge, remains
from .review import (
    Choice,
    Outcome,
    ReviewProblem,
    Wanted,
    addition,
    correction,
    read_cases,
    renaming,
    send_and_follow,
    spoken_at,
)

_KINDS: Final = {
    "decision": "decisions", "action": "action_items", "question": "open_questions",
    "answered": "answered_questions",
}  # fmt: skip
_TITLES: Final = {
    "decisions": "decision", "action_items": "action item", "open_questions": "open question",
    "answered_questions": "answered question", "meeting": "the minutes as a whole",
}  # fmt: skip
Meeting = Annotated[str | None, typer.Option(help="meeting id; without it all meetings")]
Brokers = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="broker")]


def review(
    meeting: Meeting = None,
    brokers: Brokers = None,
    list_only: Annotated[bool, typer.Option("--list", help="list the open cases and ask nothing")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="with --list: one JSON array")] = False,
    answer: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="CASE accept|change|reject", help="answer a case, or speak of any item by its id"
        ),
    ] = None,
    text: Annotated[str | None, typer.Option(help="the text as it should read")] = None,
    owner: Annotated[str | None, typer.Option(help="who does it")] = None,
    due: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="by when")] = None,
    clear: Annotated[list[str] | None, typer.Option(metavar="owner|due", help="leave it empty")] = None,
    add: Annotated[
        str | None, typer.Option(metavar="decision|action|question", help="add what was missed")
    ] = None,
    at: Annotated[str | None, typer.Option(metavar="MM:SS", help="with --add: when it was said")] = None,
    name: Annotated[str | None, typer.Option(help="how somebody or something is really called")] = None,
    heard: Annotated[list[str] | None, typer.Option(help="with --name: what was written instead")] = None,
    by: Annotated[str | None, typer.Option(help="who answers; default the login name")] = None,
    wait: Annotated[float, typer.Option(min=0, help="seconds to wait for the minutes to change")] = 15.0,
) -> None:
    """Doubtful places of the minutes with what was said; answers change the minutes."""
    link = settings_of(brokers).link()
    who = by or _login()
    wanted = Wanted(text, owner, _day(due), _cleared(clear))
    message: Correction | NameCorrected
    if answer is not None:
        case, choice = answer
        if choice not in get_args(Choice):
            raise ReviewProblem(f"--answer {case} {choice}: the choices are accept, change and reject")
        of, item_id, sha256 = read_cases(link, meeting, wait_s=PATIENCE_S).find(case, meeting)
        message = correction(of, item_id, sha256, cast(Choice, choice), wanted, who)
    elif add is not None:
        if add not in _KINDS or meeting is None or at is None or text is None:
            raise ReviewProblem("--add decision|action|question needs --meeting, --at and --text")
        spoken = spoken_at(link, meeting, _seconds(at), wait_s=PATIENCE_S)
        message = addition(meeting, cast(Section, _KINDS[add]), wanted, [s.id for s in spoken], who)
    elif name is not None:
        if meeting is None or not heard:
            raise ReviewProblem("--name needs --meeting and --heard")
        message = renaming(meeting, name, heard, who)
    else:
        cases = read_cases(link, meeting, wait_s=PATIENCE_S).open(meeting)
        if as_json:
            print(json.dumps([c.model_dump(mode="json") for c in cases], ensure_ascii=False, indent=1))
        elif list_only or not sys.stdin.isatty():
            _list(cases)
        else:
            _ask_all(link, cases, who, wait)
        return
    _tell(send_and_follow(link, message, wait_s=wait, patience_s=PATIENCE_S))


def _login() -> str:
    """The name of who runs this; containers may run as a number that has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def _tell(outcome: Outcome) -> None:
    if outcome.done is False:
        raise ReviewProblem(plain(outcome.told))
    print(plain(outcome.told))


def _day(given: str | None) -> datetime.date | None:
    if given is None:
        return None
    try:
        return datetime.date.fromisoformat(given)
    except ValueError as error:
        raise ReviewProblem(f"{given}: not a day of the form YYYY-MM-DD") from error


def _cleared(given: Sequence[str] | None) -> tuple[Literal["owner", "due"], ...]:
    if wrong := [c for c in given or () if c not in ("owner", "due")]:
        raise ReviewProblem(f"--clear {wrong[0]}: only owner and due can be cleared")
    return tuple(cast(Literal["owner", "due"], c) for c in dict.fromkeys(given or ()))


def _seconds(given: str) -> float:
    if not re.fullmatch(r"(\d+:)?\d{1,3}:\d{2}(\.\d+)?|\d+(\.\d+)?", given):
        raise ReviewProblem(f"--at {given}: use MM:SS")
    total = 0.0
    for part in given.split(":"):
        total = total * 60 + float(part)
    return total


# Showing


def case_lines(case: ReviewRequest) -> list[str]:
    """A case as plain lines: what is doubtful, why, and what was said."""
    kind = _TITLES[case.section]
    left_out = ", not in the minutes" if case.withheld else ""
    lines = [f"{case.request_id}  {plain(case.meeting_id)}, {kind}{left_out}"]
    if case.text:
        owner = f" → {plain(case.owner)}" if case.owner else ""
        due = f", due {date_text(case.due)}" if case.due else ""
        lines.append(f"  {plain(case.text)}{owner}{due}")
    lines.append(f"  why: {plain(case.reason)}")
    lines += [
        f"  {clock_text(e.start_s)} {plain(e.speaker) if e.speaker else e.kind}: “{plain(e.quote)}”"
        for e in case.evidence
    ]
    return lines


def _list(cases: Sequence[ReviewRequest]) -> None:
    print(f"{len(cases)} {'case waits' if len(cases) == 1 else 'cases wait'} for a person")
    for case in cases:
        print()
        print("\n".join(case_lines(case)))


def _ask_all(link: BrokerLink, cases: Sequence[ReviewRequest], who: str, wait_s: float) -> None:
    console = Console()
    console.print(f"{len(cases)} {'case waits' if len(cases) == 1 else 'cases wait'} for a person")
    for number, case in enumerate(cases, 1):
        console.rule(f"{number} of {len(cases)}")
        first, *rest = case_lines(case)
        console.print(Text(first, style="bold"))
        for line in rest:
            console.print(Text(line))
        choice = Prompt.ask("[b]a[/b]ccept, [b]c[/b]hange, [b]r[/b]eject, [b]s[/b]kip, [b]q[/b]uit",
                            console=console, choices=["a", "c", "r", "s", "q"], show_choices=False)  # fmt: skip
        if choice == "q":
            return
        if choice == "s":
            continue
        try:
            message = _answer_of(case, choice, who, console)
            outcome = send_and_follow(link, message, wait_s=wait_s, patience_s=PATIENCE_S)
        except ReviewProblem as problem:
            outcome = Outcome(False, str(problem))
        console.print(Text(plain(outcome.told), style="red" if outcome.done is False else "green"))


def _answer_of(case: ReviewRequest, choice: str, who: str, console: Console) -> Correction:
    choices: dict[str, Choice] = {"a": "accept", "c": "change", "r": "reject"}
    wanted = Wanted()
    if choice == "c":
        console.print("Enter keeps a line as it is, - leaves it empty.")
        text = Prompt.ask("text", console=console, default=plain(case.text))
        owner, due = "", ""
        if case.section == "action_items":
            owner = Prompt.ask("owner", console=console, default=plain(case.owner or ""))
            due = Prompt.ask("due (YYYY-MM-DD)", console=console, default=str(case.due or ""))
        fields = {"owner": owner, "due": due}
        clear = _cleared([name for name, given in fields.items() if given.strip() == "-"])
        wanted = Wanted(
            text if text != plain(case.text) else None,
            owner if owner.strip() not in ("", "-", plain(case.owner or "")) else None,
            _day(due) if due.strip() not in ("", "-", str(case.due or "")) else None,
            clear,
        )
    return correction(case.meeting_id, case.item_id, case.item_sha256, choices[choice], wanted, who)


def purge_meeting(
    meeting: Annotated[str, typer.Option(help="meeting id")],
    brokers: Brokers = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask")] = False,
    wait: Annotated[float, typer.Option(min=0, help="seconds to wait for the flows")] = 30.0,
) -> None:
    """Remove a meeting: state of the flows, minutes, and the key of its audit. Cannot be undone."""
    settings = settings_of(brokers)
    if sys.stdin.isatty() and not yes:
        typer.confirm(f"Remove everything of {plain(meeting)} for good?", abort=True)
    keys: KeyStore | None = None
    try:
        if settings.keys.is_dir():
            keys = KeyStore(settings.keys, master_key(settings.master_key_file), create=False)
    except KeyProblem as problem:
        raise SettingsProblem(f"MINUTED_KEYS: {problem}") from problem
    report = purge(settings.link(), meeting, keys, wait_s=wait)
    print("the flows have forgotten the meeting" if report.told else
          f"no flow has said so within {wait:g} s; it is done as soon as flows.perceive and flows.minutes run")  # fmt: skip
    key = {
        True: "its key is destroyed",
        False: "its key is not destroyed yet; run this again while flows.minutes runs",
        None: "MINUTED_KEYS is not on this machine: whether its key is destroyed cannot be seen from here",
    }[report.key_destroyed]
    print(f"{key}; {report.erased} control messages erased")
    print("What remains on the topics:")
    for line in remains():
        print(f"  {line}")
    if report.key_destroyed is False or not report.told:
        raise typer.Exit(1)
