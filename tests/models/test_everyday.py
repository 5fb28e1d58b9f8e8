"""The everyday meetings: exact ids, owners and dates, fair splits, no text twice; and their loader."""

import calendar
import collections
import datetime as dt
import json
import re
from pathlib import Path

import pytest

from models.everyday_meetings import FOLDER, EverydayError, EverydayMeeting, load_everyday

MEETINGS = load_everyday()
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = tuple(name.lower() for name in calendar.month_name)
ORDINALS = re.findall(
    r"\S+",
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second "
    "twenty-third twenty-fourth twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth "
    "thirty-first",
)
TODAY = re.compile(
    r"\b(today|tonight|now|this (morning|afternoon|evening)|(straight|right) after|before nine|at ten sharp"
    r"|(at|by|before|after|over) (noon|lunch|the breakfast)|in (one|an|half an) hour|in ten minutes|the minute we"
    r"|when (we've eaten|we're out of here)|before (i|we) go home)\b"
)

TIME_OF_DAY = re.compile(r"\b(o'clock|five-fifteen|by six|before seven|after nine|at (four|eleven))\b")

each_meeting = pytest.mark.parametrize("meeting", MEETINGS, ids=lambda m: m.meeting)


def next_day(date: dt.date, weekday: int) -> dt.date:
    """The first such weekday after `date`."""
    return date + dt.timedelta(days=(weekday - date.weekday() - 1) % 7 + 1)


def day_of_month(date: dt.date, day: int, month: int | None) -> dt.date | None:
    """The first such day on or after `date`, in `month` if one is named."""
    for ahead in range(13):
        year, place = divmod(date.year * 12 + date.month - 1 + ahead, 12)
        if day <= calendar.monthrange(year, place + 1)[1] and month in (None, place + 1):
            found = dt.date(year, place + 1, day)
            if found >= date:
                return found
    return None


def due_as_said(text: str, date: dt.date) -> dt.date | None:
    """Reads the words of a due date by itself, apart from the product's reader; None: no single date in them."""
    said = (
        re.sub(r"first thing|this second", "now", text.lower())
        .replace("twenty ", "twenty-")
        .replace("thirty ", "thirty-")
    )
    words = re.findall(r"[a-z'-]+|\d+", said)
    day = next((ORDINALS.index(w) for w in words if w in ORDINALS), None)
    day = day or next((int(w) for w in words if w.isdigit() and int(w) <= 31), None)
    month = next((MONTHS.index(w) for w in words if w in MONTHS and w), None)
    weekdays = [DAYS.index(w.removesuffix("'s")) for w in words if w.removesuffix("'s") in DAYS]
    if len(set(weekdays)) > 1 or re.search(r"\bevery\b|mornings\b", said):
        return None
    weekday = weekdays[0] if weekdays else None
    if day is not None and not (day <= 2 and weekday is not None):
        found = day_of_month(date, day, month)
        assert weekday is None or found is None or found.weekday() == weekday, f"{text!r} is no such weekday"
        return found
    if "end of" in said and (month or "the month" in said):
        last = calendar.monthrange(date.year, month or date.month)[1]
        return dt.date(date.year, month or date.month, last)
    if weekday is not None and "next week" in said:
        return date + dt.timedelta(days=7 + weekday - date.weekday())
    if weekday is not None:
        # "next Friday" is said of either of two.
        if f"next {DAYS[weekday]}" in said and weekday != date.weekday():
            return None
        week = f"{DAYS[weekday]} week" in said or f"a week on {DAYS[weekday]}" in said
        return next_day(date, weekday) + dt.timedelta(days=7 * week)
    if "day after tomorrow" in said:
        return date + dt.timedelta(days=2)
    if re.search(r"\btomorrow|in the morning\b", said):
        return date + dt.timedelta(days=1)
    weeks = {"a week": 1, "two weeks": 2, "a fortnight": 2, "three weeks": 3}
    if ahead := re.search(r"\b(a week|two weeks|a fortnight|three weeks) (from )?today\b", said):
        return date + dt.timedelta(weeks=weeks[ahead[1]])
    return date if TODAY.search(said) else None


@each_meeting
def test_a_meeting_is_as_long_as_a_meeting_and_its_times_are_possible(meeting: EverydayMeeting) -> None:
    assert (FOLDER / f"{meeting.meeting}.json").exists()
    assert (30 if meeting.style in ("long-turns", "rambling") else 50) <= len(meeting.utterances) <= 105
    assert 2 <= len(meeting.attendees) <= 9
    assert meeting.style and meeting.split
    assert [u.id for u in meeting.utterances] == [f"u{n:03d}" for n in range(1, len(meeting.utterances) + 1)]
    assert {u.speaker for u in meeting.utterances} == {person.name for person in meeting.attendees}
    own_end = dict.fromkeys((u.speaker for u in meeting.utterances), 0.0)
    for said in meeting.utterances:
        assert said.start_s >= own_end[said.speaker], f"{said.speaker} speaks twice at once at {said.id}"
        own_end[said.speaker] = said.end_s
        assert 0.8 <= len(said.text.split()) / (said.end_s - said.start_s) <= 6.0, said.id
    end_s = max(own_end.values())
    assert all(shown.start_s < end_s for shown in (*meeting.slides, *meeting.gestures))


@each_meeting
def test_owners_are_attendees_or_marked_and_fit_their_kind(meeting: EverydayMeeting) -> None:
    names = {person.name for person in meeting.attendees}
    said = {u.id: u for u in meeting.utterances}
    for action in meeting.truth.action_items:
        assert action.external == (action.owner is not None and action.owner not in names), action.text
        assert (action.owner is None) == (action.owner_kind in {"group", "none", "ambiguous"}), action.text
        agreeing = {said[place].speaker for place in action.evidence}
        if action.needs == "picture":
            spans = [(said[place].start_s, said[place].end_s + 10.0) for place in action.evidence]
            agreeing |= {
                g.who
                for g in meeting.gestures
                if g.kind == "nod" and any(a <= g.start_s <= b for a, b in spans)
            }
        if action.owner_kind in {"self", "accepted"}:
            assert action.owner in agreeing, f"{action.owner} never says so: {action.text}"
        if action.owner_kind == "named":
            words = " ".join(said[place].text for place in action.evidence)
            if action.needs == "slide":
                words += " ".join(slide.text for slide in meeting.slides)
            assert str(action.owner).split()[-1].lower() in words.lower(), action.text


@each_meeting
def test_due_dates_follow_from_the_words_and_the_day_of_the_meeting(meeting: EverydayMeeting) -> None:
    said = {u.id: u.text for u in meeting.utterances}
    for action in meeting.truth.action_items:
        if action.due_text is None:
            assert action.due is None, action.text
            continue
        spoken = " ".join(said[place] for place in action.evidence)
        letters = re.compile(r"[^a-z0-9]+")
        for part in action.due_text.lower().split(","):
            assert letters.sub(" ", part).strip() in letters.sub(" ", spoken.lower()), action.text
        if action.needs == "slide" and action.due and due_as_said(action.due_text, meeting.date) is None:
            shown = " ".join(slide.text for slide in meeting.slides)
            assert re.search(rf"\b{action.due.day} {calendar.month_name[action.due.month][:3]}", shown)
            continue
        if TIME_OF_DAY.search(action.due_text.lower()):
            # Said late in the evening, it is a time of the next morning.
            assert action.due in (meeting.date, meeting.date + dt.timedelta(days=1)), action.text
            continue
        assert action.due == due_as_said(action.due_text, meeting.date), (action.text, action.due_text)


@each_meeting
def test_what_only_a_slide_a_movement_or_a_tone_tells_is_there(meeting: EverydayMeeting) -> None:
    said = {u.id: u for u in meeting.utterances}
    for entry in meeting.truth.entries():
        if entry.needs == "slide":
            first = min(said[place].start_s for place in entry.evidence)
            assert any(slide.start_s <= first + 30.0 and first <= slide.end_s for slide in meeting.slides), (
                entry
            )
        if entry.needs == "picture":
            spans = [(said[place].start_s - 20.0, said[place].end_s + 20.0) for place in entry.evidence]
            moved = [g for g in meeting.gestures if any(a <= g.start_s <= b for a, b in spans)]
            # A vote in which no hand goes up is a trap that only the picture tells.
            assert moved or entry in meeting.truth.traps, entry
        if entry.needs == "sound":
            assert any(said[place].intonation for place in entry.evidence), entry


@each_meeting
def test_truth_does_not_contradict_itself(meeting: EverydayMeeting) -> None:
    truth = meeting.truth
    alive = {
        p
        for kind in (truth.decisions, truth.action_items, truth.open_questions)
        for e in kind
        for p in e.evidence
    }
    for entry in truth.entries():
        assert list(entry.evidence) == sorted(set(entry.evidence)), entry
    for gone in truth.withdrawn:
        # In a long turn somebody may say and take back at once.
        assert len(gone.evidence) >= (1 if meeting.style == "long-turns" else 2), "said and taken back"
    for trap in truth.traps:
        assert not set(trap.evidence) <= alive or len(trap.evidence) == 1, trap
    assert len(truth.traps) >= (4 if meeting.style == "long-turns" else 5)


def test_a_third_is_kept_for_testing_in_every_style_and_kinds_are_many() -> None:
    splits = collections.Counter(m.split for m in MEETINGS)
    assert len(MEETINGS) >= 24
    assert abs(splits["test"] * 3 - len(MEETINGS)) <= 4
    by_style: dict[str | None, collections.Counter[str | None]] = collections.defaultdict(collections.Counter)
    for meeting in MEETINGS:
        by_style[meeting.style][meeting.split] += 1
    assert len(by_style) >= 6
    assert all(counts["test"] and counts["train"] for counts in by_style.values()), by_style
    for split in ("train", "test"):
        needs = {e.needs for m in MEETINGS if m.split == split for e in m.truth.entries()}
        assert needs >= {"slide", "picture", "sound"}, split
    assert len({m.title for m in MEETINGS}) == len(MEETINGS)
    assert load_everyday(split="test") == tuple(m for m in MEETINGS if m.split == "test")


def test_no_six_words_stand_in_two_meetings() -> None:
    found: dict[tuple[str, ...], set[str]] = collections.defaultdict(set)
    for meeting in MEETINGS:
        for said in meeting.utterances:
            words = re.findall(r"[a-z0-9']+", said.text.lower())
            for place in range(len(words) - 5):
                found[tuple(words[place : place + 6])].add(meeting.meeting)
    assert {" ".join(words): where for words, where in found.items() if len(where) > 1} == {}


def test_openings_of_turns_are_many() -> None:
    openings = collections.Counter(
        " ".join(u.text.lower().split()[:2]) for m in MEETINGS for u in m.utterances
    )
    total = sum(openings.values())
    assert len(openings) > 0.5 * total
    assert openings.most_common(1)[0][1] < 0.02 * total


def broken(name: str) -> dict[str, object]:
    document: dict[str, object] = json.loads((FOLDER / f"{name}.json").read_bytes())
    return document


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"evidence": ["u999"]}, "u999"),
        ({"evidence": []}, "evidence"),
        ({"due": "2026-02-30"}, "due"),
        ({"needs": "smell"}, "needs"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(
    tmp_path: Path, change: dict[str, object], complaint: str
) -> None:
    document = broken("release-call")
    truth = document["truth"]
    assert isinstance(truth, dict)
    truth["action_items"][0] |= change
    (tmp_path / "odd.json").write_text(json.dumps(document))
    with pytest.raises(EverydayError, match=rf"(?s)odd\.json.*{complaint}"):
        load_everyday(tmp_path)


def test_empty_folders_and_meetings_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EverydayError, match="no meetings"):
        load_everyday(tmp_path)
    for copy in ("a.json", "b.json"):
        (tmp_path / copy).write_text(json.dumps(broken("release-call")))
    with pytest.raises(EverydayError, match=r"b\.json.*release-call"):
        load_everyday(tmp_path)


def test_the_reader_of_dates_here_knows_weekdays_ordinals_and_what_is_open() -> None:
    tuesday = dt.date(2026, 3, 17)
    cases = {
        "by Thursday": dt.date(2026, 3, 19),
        "next Friday": None,
        "on Tuesday": dt.date(2026, 3, 24),
        "on the fifth": dt.date(2026, 4, 5),
        "by the end of the month": dt.date(2026, 3, 31),
        "friday week": dt.date(2026, 3, 27),
        "before dinner some time": None,
        "tonight": tuesday,
        "the day after tomorrow": dt.date(2026, 3, 19),
        "a fortnight from today": dt.date(2026, 3, 31),
        "by Wednesday of next week": dt.date(2026, 3, 25),
    }
    assert {text: due_as_said(text, tuesday) for text in cases} == cases
