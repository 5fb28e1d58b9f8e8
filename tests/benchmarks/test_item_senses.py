"""Cases that only another sense can tell, and whether they are found with it and without."""

import json
from pathlib import Path

from benchmarks.item_senses import KINDS, cases_of, found_in, made_cases, room_cases
from operators.understand.engine import RuleEngine


def test_each_kind_is_found_with_its_sense_and_never_under_its_opposite() -> None:
    told = made_cases(RuleEngine(), (3,), 6, 0.0)
    assert set(told) == set(KINDS)
    for kind, shares in told.items():
        assert shares["with"][0] >= 0.8, kind
        assert shares["opposite"][0] <= shares["without"][0] < shares["with"][0], kind


def test_the_same_seed_makes_the_same_cases() -> None:
    assert cases_of(1, 2) == cases_of(1, 2) != cases_of(2, 2)
    case = cases_of(1, 1)[0]
    assert found_in(RuleEngine(), case, case.seen)
    assert not found_in(RuleEngine(), case, case.opposite)


def test_items_of_a_room_that_take_the_camera_are_counted_with_it_and_without(tmp_path: Path) -> None:
    lines = [
        ("Mira", "Tom, could you print the flyers?"),
        ("Mira", "It rained a lot."),
        ("Tom", "My tea is cold."),
    ]
    utterances = [
        {"id": f"u{n}", "speaker": who, "start_s": 5.0 * n, "end_s": 5.0 * n + 3, "text": text}
        for n, (who, text) in enumerate(lines)
    ]
    entry: dict[str, object] = {
        "text": "Print the flyers", "evidence": ["u0"], "from_slide": {}, "from_camera": ["owner"], "owner": "Tom",
        "owner_kind": "accepted", "due": None, "due_text": None,
    }  # fmt: skip
    truth = {
        "meeting_id": "room", "title": "Room", "date": "2026-03-09", "attendees": [{"name": "Mira"}, {"name": "Tom"}],
        "utterances": utterances, "decisions": [], "action_items": [entry], "open_questions": [], "withdrawn": [],
        "traps": [], "slides": [], "gestures": [{"who": "Tom", "kind": "nod", "start_s": 3.2, "end_s": 4.2}],
    }  # fmt: skip
    (tmp_path / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    counts = room_cases(RuleEngine(), [tmp_path])["camera: owner"]
    assert counts["items"] == counts["right, all"] == counts["right, without slides"] == 1
    assert counts["right, without camera"] == counts["right, words alone"] == 0
