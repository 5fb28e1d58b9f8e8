"""Truth of annotated meetings as labels: what is known, from when on, and what must not be learned."""

import datetime as dt
from typing import Any

from models.everyday_meetings import EverydayMeeting
from models.minutes.corpora import UNKNOWN, Annotated, everyday
from models.minutes.examples import Example, Meeting, targets_of
from models.minutes.inputs import WINDOW, Window
from models.minutes.noise import noisy
from models.minutes.scores import ELSEWHERE, HEADS, NOBODY
from tests.models.minutes.test_minutes_inputs import told

ACTION, DECISION, QUESTION = HEADS.index("action"), HEADS.index("decision"), HEADS.index("question")
WITHDRAWN, SUMMARY = HEADS.index("withdrawn"), HEADS.index("summary")
LINES = (
    ("Ann", "Could you ring the hall, Ben?"),
    ("Cy", "It was cold last time."),
    ("Ben", "Sure, by Friday."),
    ("Ann", "And I'll bake something."),
    ("Cy", "The tent is settled then."),
    ("Ann", "Actually no, scrap the baking."),
    ("Cy", "Who has the key?"),
    ("Ben", "Hands up for the raffle."),
)


def script(**changes: Any) -> dict[str, Any]:
    """A tiny meeting: a request accepted two turns later, a promise taken back, a decision, a question, a vote."""
    made: dict[str, Any] = {
        "meeting": "tiny", "title": "Fete", "date": "2026-03-02", "start_time": "10:00", "split": "train",
        "attendees": [{"name": n} for n in ("Ann", "Ben", "Cy")], "agenda": [], "key_topics": [],
        "utterances": [
            {"id": f"u{i}", "start_s": float(2 * i), "end_s": 2 * i + 1.5, "speaker": who, "text": text}
            for i, (who, text) in enumerate(LINES)
        ],
        "truth": {
            "decisions": [
                {"text": "The tent is taken.", "evidence": ["u4"]},
                {"text": "There is a raffle.", "evidence": ["u7"], "needs": "picture"},
            ],
            "action_items": [
                {
                    "text": "Ring the hall.", "evidence": ["u0", "u2"], "owner": "Ben", "owner_kind": "accepted",
                    "due": dt.date(2026, 3, 6).isoformat(), "due_text": "by Friday",
                }
            ],
            "open_questions": [{"text": "Who has the key?", "evidence": ["u6"]}],
            "withdrawn": [{"text": "Baking.", "evidence": ["u3", "u5"]}],
            "traps": [{"why": "past", "evidence": ["u1"]}],
        },
    }  # fmt: skip
    return made | changes


def annotated() -> Annotated:
    return everyday(EverydayMeeting.model_validate(script()), "everyday")


def example(newest: int) -> Example:
    truth = annotated()
    lines = tuple(told(n) for n in range(len(LINES)))
    return Example(Meeting(truth, lines, {newest: Window(lines[: newest + 1])}), newest)


def test_labels_say_what_is_known_and_what_is_not() -> None:
    truth = annotated()
    assert [i for i, row in enumerate(truth.labels) if row[ACTION] == 1] == [0, 2]
    assert truth.labels[4, DECISION] == 1 and truth.labels[6, QUESTION] == 1
    assert truth.labels[5, WITHDRAWN] == 1 and truth.labels[3, WITHDRAWN] == 0
    assert truth.labels[7, DECISION] == UNKNOWN, "only the hands tell"
    assert (truth.labels[:, SUMMARY] == UNKNOWN).all(), "everyday scripts have no summary"
    assert truth.weights[1] > truth.weights[6], "what sounds like an item counts more"


def test_what_comes_later_is_unknown_until_it_was_heard() -> None:
    def labels(newest: int, line: int, head: int) -> float:
        found: float = targets_of([example(newest)]).labels[line, head]
        return found

    assert labels(1, 0, ACTION) == UNKNOWN and labels(2, 0, ACTION) == 1
    assert labels(4, 3, ACTION) == UNKNOWN and labels(5, 3, ACTION) == 0


def test_pointers_name_the_owner_by_any_of_his_turns_and_the_item_by_its_earlier_lines() -> None:
    targets = targets_of([example(7)])
    assert [at for at in range(WINDOW + 2) if targets.owner[0, at]] == [0, 5], "Ben speaks last and five back"
    assert not targets.owner[4].any(), "nothing known of an owner"
    assert [at for at in range(WINDOW + 1) if targets.joins[2, at]] == [7], (
        "the request, seven back from the end"
    )
    assert targets.joins[0, WINDOW] == 1, "nothing of this item before"
    before = targets_of([example(1)])
    assert before.owner[0, WINDOW + 1] == 1, "he has not spoken yet"


def test_owners_beyond_the_room_and_owners_that_are_nobody_are_told_apart() -> None:
    action = script()["truth"]["action_items"][0]
    for owner, kind, external, expected in (
        (None, "group", False, NOBODY),
        ("Zoe", "named", True, ELSEWHERE),
    ):
        one = script()
        one["truth"]["action_items"] = [action | {"owner": owner, "owner_kind": kind, "external": external}]
        assert everyday(EverydayMeeting.model_validate(one), "everyday").owners[0] == expected


def test_noise_is_seeded_keeps_ids_and_never_turns_a_refusal_round() -> None:
    text = "I won't send it to them, I can't, and we can do it by Friday at two for the board. " * 20
    one = script(utterances=[script()["utterances"][0] | {"text": text}])
    assert noisy(one, 3) == noisy(one, 3) != noisy(one, 4)
    said = noisy(one, 3)["utterances"][0]["text"].lower()
    assert said.count("won't") >= 20 and said.count("can't") >= 20, "a word said twice is one more"
    assert said != text.lower() and noisy(one, 3)["utterances"][0]["id"] == "u0"
