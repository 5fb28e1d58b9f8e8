"""``minuted audit``: prove that a meeting's audit is whole, and show how an item came to be."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import ValidationError

from contracts.audit import AuditProof, ChainReport, SealedEntry
from contracts.consumer import read_event, read_state
from contracts.minutes import AuditEntry, Evidence, MeetingFinal, MinutesState
from contracts.topics import AUDIT, MINUTES, STATE
from operators.deliver.keys import KeyProblem, Keys, KeyStore, MeetingKey, OpenKeys, master_key
from operators.deliver.render import clock_text
from operators.deliver.trail import opened
from operators.plain_text import plain
from operators.settings import Settings, load_settings

from .command_settings import PATIENCE_S, settings_of
from .topic_reader import Found, TopicReader

app = typer.Typer(help="The audit of a meeting: every verdict and every answer.", no_args_is_help=True)
PathArgument = Annotated[
    Path | None,
    typer.Argument(metavar="PATH", help="folder of minutes or audit.jsonl; without it the topics"),
]
Meeting = Annotated[str | None, typer.Option(help="meeting id; without it all meetings")]
Brokers = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="broker")]
_AUDIT_FILE: Final = "audit.jsonl"
_MINUTES_FILE: Final = "minutes.json"


class AuditProblem(Exception):
    """The audit does not hold, or cannot be read; the message is one line."""


# What is read


def proof_of_path(path: Path) -> AuditProof:
    """The audit in a file, with the heads of the minutes beside it.

    Raises:
        AuditProblem: a file is missing or cannot be read.
    """
    file = path / _AUDIT_FILE if path.is_dir() else path
    proof = AuditProof()
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    proof.add(line, f"{file}, line {number}")
        minutes = file.with_name(_MINUTES_FILE)
        if minutes.exists():
            state = MinutesState.model_validate_json(minutes.read_bytes())
            proof.add_head(state.meeting_id, state.generation, state.audit)
    except OSError as error:
        raise AuditProblem(f"{error.filename}: cannot be read ({error.strerror})") from error
    except ValidationError as error:
        raise AuditProblem(f"{file.with_name(_MINUTES_FILE)}: is no minutes document") from error
    return proof


def proof_of_topics(settings: Settings, meeting_id: str | None, wait_s: float) -> AuditProof:
    """The audit on the topic, with the heads that minutes documents and final events carry."""
    proof = AuditProof()
    with TopicReader(settings.link(), (AUDIT, STATE, MINUTES), meeting_id, wait_s=wait_s) as reader:
        for message in reader.to_end():
            if message.value is None:
                continue
            if message.topic == AUDIT.name:
                proof.add(message.value, f"{message.topic}/{message.partition}/{message.offset}")
            else:
                _add_head(proof, message)
    return proof


def _add_head(proof: AuditProof, message: Found) -> None:
    """The head that minutes on the topics carry. What is none of ours names no head, and proves nothing."""
    value = message.value or b""
    try:
        told = read_state(value) if message.topic == STATE.name else read_event(value)
    except ValidationError:
        return
    if isinstance(told, MinutesState | MeetingFinal):
        proof.add_head(told.meeting_id, told.generation, told.audit)


def entries_of(proof: AuditProof, meeting_id: str, keys: Sequence[Keys]) -> list[AuditEntry]:
    """What the entries of a meeting say.

    Raises:
        KeyProblem: no key opens them.
    """
    having = [key for store in keys if (key := store.key_of(meeting_id)) is not None]
    return [_opened(sealed, having) for sealed in proof.entries(meeting_id)]


def _opened(sealed: SealedEntry, keys: Sequence[MeetingKey]) -> AuditEntry:
    for key in keys:
        try:
            return opened(sealed, key)
        except KeyProblem:
            continue
    raise KeyProblem(
        f"no key opens the audit of {plain(sealed.meeting_id)}: it was purged, or MINUTED_KEYS is another folder"
    )


class _FoundKeys:
    """Keys of a store that must not make any."""

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self.destroy = store.destroy
        self.key_of = store.find


def keys_for_reading(settings: Settings) -> list[Keys]:
    """Keys that may open entries: those of files, and the store's where there is one."""
    keys: list[Keys] = [OpenKeys()]
    if settings.keys.is_dir():
        keys.append(_FoundKeys(KeyStore(settings.keys, master_key(settings.master_key_file), create=False)))
    return keys


# What is said


def report_line(report: ChainReport) -> str:
    """One chain on one line."""
    name = plain(report.meeting_id) + (f" (generation {report.generation})" if report.generation else "")
    if not report.holds:
        return f"{name}: DOES NOT HOLD: {'; '.join(report.problems[:20])}"
    count = f"{report.entries} {'entry' if report.entries == 1 else 'entries'}"
    again = f", {report.repeated} written again" if report.repeated else ""
    if report.closed:
        return f"{name}: {count}{again}, whole; the meeting was purged and its key destroyed"
    if report.proven == report.entries:
        return f"{name}: {count}{again}, whole"
    rest = report.entries - report.proven
    return (
        f"{name}: {count}{again}; whole up to entry {report.proven}, {rest} since the last minutes document"
    )


def item_lines(entries: Iterable[AuditEntry]) -> Iterator[str]:
    """The history of an item, for people."""
    for entry in entries:
        who = f"by {entry.by}" if entry.by else f"by {'rules' if entry.origin == 'rules' else 'the model'}"
        at = f"revision {entry.revision}, {entry.stage}"
        yield f"{entry.sequence}  {entry.verdict}, {who} ({at})"
        if entry.text is not None:
            due = f", due {entry.due or entry.due_text}" if entry.due or entry.due_text else ""
            owner = f" → {plain(entry.owner)}" if entry.owner else ""
            yield f"     {entry.section}: {plain(entry.text)}{owner}{due}"
        yield from (f"     rests on {_words(e)}" for e in entry.evidence)
        yield from (f"     because {plain(reason)}" for reason in entry.reasons)
        yield from (f"     done: {plain(action)}" for action in entry.actions)
        failed = [name for name, held in entry.checks.items() if not held] + list(entry.failed)
        passed = [name for name, held in entry.checks.items() if held] + list(entry.passed)
        if passed:
            yield f"     passed: {', '.join(map(plain, passed))}"
        if failed:
            yield f"     failed: {', '.join(map(plain, failed))}"
        if entry.probability is not None:
            yield f"     the verifier gave {entry.probability:.4f}"
        v = entry.versions
        rules = f"{v.rules}" + (f", {v.assertions}" if v.assertions else "")
        yield f"     versions: {v.product}, model {v.model or 'none'}, rules {rules}, contract {v.contract}"


def _words(evidence: Evidence) -> str:
    who = f"{plain(evidence.speaker)}: " if evidence.speaker else f"{evidence.kind}: "
    return f"{clock_text(evidence.start_s)} {who}“{plain(evidence.quote)}”"


# Commands


@app.command("verify")
def verify(path: PathArgument = None, meeting: Meeting = None, brokers: Brokers = None) -> None:
    """Prove that no entry is missing, changed or out of order; needs no key."""
    proof = _proof(path, meeting, brokers)
    reports = proof.reports(meeting)
    for report in reports:
        print(report_line(report))
    broken = [r for r in reports if not r.holds]
    if proof.unreadable:
        raise AuditProblem(f"{proof.unreadable[0]} ({len(proof.unreadable)} such messages)")
    if not reports:
        raise AuditProblem(f"no audit of {plain(meeting) if meeting else 'any meeting'} was found")
    if broken:
        raise AuditProblem(f"the audit of {len(broken)} of {len(reports)} meetings does not hold")


@app.command("show")
def show(
    item: Annotated[
        str, typer.Argument(metavar="ITEM", help="id of an item, or its beginning; summary; meeting")
    ],
    path: PathArgument = None,
    meeting: Meeting = None,
    brokers: Brokers = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a line")] = False,
) -> None:
    """Which words an item rests on, which rules it passed, who or what wrote it."""
    proof = _proof(path, meeting, brokers)
    names = dict.fromkeys(report.meeting_id for report in proof.reports(meeting))
    try:
        keys = keys_for_reading(load_settings())
        found = [e for name in names for e in entries_of(proof, name, keys) if _is_meant(e, item)]
    except KeyProblem as problem:
        raise AuditProblem(str(problem)) from problem
    if not found:
        raise AuditProblem(f"the audit holds nothing about {plain(item)}")
    for name in dict.fromkeys((e.meeting_id, e.item_id) for e in found):
        of_item = [e for e in found if (e.meeting_id, e.item_id) == name]
        if as_json:
            for entry in of_item:
                print(json.dumps(entry.model_dump(mode="json"), ensure_ascii=False))
            continue
        print(f"{plain(name[0])}, item {plain(name[1])}")
        for line in item_lines(of_item):
            print(line)


def _is_meant(entry: AuditEntry, item: str) -> bool:
    return entry.item_id == item or (len(item) >= 4 and entry.item_id.startswith(item))


def _proof(path: Path | None, meeting: str | None, brokers: str | None) -> AuditProof:
    if path is not None:
        return proof_of_path(path)
    return proof_of_topics(settings_of(brokers), meeting, PATIENCE_S)
