"""The everyday snippets: they load, are for training alone, and their owners and dates fit the words."""

import datetime as dt
import json
import re
from pathlib import Path

from models.everyday_meetings import load_everyday

FOLDER = Path(__file__).parents[2] / "models" / "everyday_snippets"
SNIPPETS = load_everyday(folder=FOLDER)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
LETTERS = re.compile(r"[^a-z0-9]+")


def plain(text: str) -> str:
    """Lower case, one space between words, nothing else."""
    return LETTERS.sub(" ", text.lower()).strip()


def test_all_are_for_training_and_named_after_their_files() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {snippet.meeting for snippet in SNIPPETS}
    for snippet in SNIPPETS:
        assert snippet.split == "train", snippet.meeting
        assert {u.speaker for u in snippet.utterances} == {p.name for p in snippet.attendees}, snippet.meeting


def test_no_snippet_is_there_twice_and_none_is_a_part_of_a_whole_meeting() -> None:
    first_words = {snippet.meeting: plain(snippet.utterances[0].text) for snippet in SNIPPETS}
    assert len(set(first_words.values())) == len(first_words)
    whole = load_everyday()
    assert not {s.meeting for s in SNIPPETS} & {m.meeting for m in whole}
    said = {plain(u.text) for m in whole for u in m.utterances if len(u.text.split()) > 9}
    for snippet in SNIPPETS:
        for turn in snippet.utterances:
            assert plain(turn.text) not in said, (snippet.meeting, turn.id)


def test_owners_are_attendees_or_marked_and_fit_their_kind() -> None:
    for snippet in SNIPPETS:
        names = {person.name for person in snippet.attendees}
        said = {u.id: u for u in snippet.utterances}
        for action in snippet.truth.action_items:
            place = (snippet.meeting, action.text)
            assert action.external == (action.owner is not None and action.owner not in names), place
            assert (action.owner is None) == (action.owner_kind in {"group", "none", "ambiguous"}), place
            if action.owner_kind in {"self", "accepted"}:
                assert action.owner in {said[one].speaker for one in action.evidence}, place


def test_dates_stand_in_the_words_and_are_the_weekday_they_name() -> None:
    for snippet in SNIPPETS:
        said = {u.id: u.text for u in snippet.utterances}
        for action in snippet.truth.action_items:
            place = (snippet.meeting, action.text)
            if action.due_text is None:
                assert action.due is None, place
                continue
            spoken = plain(" ".join(said[one] for one in action.evidence))
            assert plain(action.due_text) in spoken, place
            if action.due is None:
                continue
            assert snippet.date <= action.due <= snippet.date + dt.timedelta(days=366), place
            named = {DAYS.index(day) for day in DAYS if re.search(rf"\b{day}\b", action.due_text.lower())}
            assert not named or action.due.weekday() in named, place


def test_evidence_is_in_order() -> None:
    for snippet in SNIPPETS:
        for entry in snippet.truth.entries():
            assert list(entry.evidence) == sorted(set(entry.evidence)), (snippet.meeting, entry)


def test_the_files_hold_the_fields_of_the_schema_alone() -> None:
    for path in FOLDER.glob("*.json"):
        document = json.loads(path.read_bytes())
        assert set(document["truth"]) == {
            "decisions",
            "action_items",
            "open_questions",
            "withdrawn",
            "traps",
        }, path.name
