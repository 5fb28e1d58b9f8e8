"""What hands, heads, slides and tones of voice mean for items; each with a twin that goes the other way."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from contracts.minutes import Evidence
from models.minutes.senses import PICTURE, SENSES, SLIDE, SOUND, sense_vector
from operators.understand.engine import RuleEngine
from operators.understand.screen import dates_in
from operators.understand.sensed import Gesture, GestureKind, Senses, Shown, Tone
from operators.understand.senses import figures_of
from operators.understand.types import Attendee, DraftItem, MeetingContext, Spoken
from operators.verify.check import verify
from operators.verify.types import Draft, VerifiedItem

S = 1_000_000_000
NAMES = ("Ada", "Ben", "Cleo", "Dov", "Eve")
CONTEXT = MeetingContext("Board", dt.date(2026, 3, 2), tuple(Attendee(n, n) for n in NAMES))
SLIDE_LINES = ("Job 4471 catalogue", "Proof signed 19 Oct", "Deliver 27 Oct, Kiel")
Line = tuple[str, str, Senses | None]


def seen(*kinds: GestureKind, at: int = 0, who: str | None = None) -> Senses:
    """Gestures that begin just before the end of the utterance at place ``at``."""
    moves = tuple(
        Gesture(kind, (10 * at + 4) * S + n, (10 * at + 5) * S, "camera", n / 8, who, 0.9, 2.0, 200.0, 200.0)
        for n, kind in enumerate(kinds)
    )
    return Senses(moves, watched=True)


def hands_up(count: int, at: int) -> Senses:
    up: list[GestureKind] = ["raise_hand"] * count
    return seen(*up, at=at)


def shown(*lines: str) -> Senses:
    return Senses(shown=(Shown("s1", "laptop", lines, 2.0, 200.0),))


def voice(rise_st: float, voiced_share: float = 0.8) -> Senses:
    return Senses(tone=Tone(rise_st, 4.0 * rise_st, voiced_share, -25.0))


def said(lines: Sequence[Line]) -> list[Spoken]:
    return [
        Spoken(f"u{n}", 10 * n * S, (10 * n + 4) * S, speaker, text, "mic", senses=senses)
        for n, (speaker, text, senses) in enumerate(lines)
    ]


def items_of(lines: Sequence[Line]) -> tuple[DraftItem, ...]:
    engine = RuleEngine()
    state = engine.start(CONTEXT)
    for spoken in said(lines):
        state = engine.step(state, spoken)
    return engine.items(engine.finish(state))


def published(lines: Sequence[Line]) -> dict[str, list[VerifiedItem]]:
    """Items that the verifier lets through, by section."""
    spoken = said(lines)
    draft = Draft(
        "m", "final", CONTEXT, spoken[-1].end_ns, items_of(lines), {s.id: s for s in spoken}, speakers=NAMES
    )
    found: dict[str, list[VerifiedItem]] = {}
    for item in verify(draft).items:
        if item.verdict not in ("withheld", "withdrawn"):
            found.setdefault(item.section, []).append(item)
    return found


def pictures(item: VerifiedItem) -> list[Evidence]:
    return [e for e in item.evidence if e.kind == "picture"]


def motion(hands: int, against: int | None = None) -> list[Line]:
    lines: list[Line] = [
        ("Ben", "I propose that the monthly rent be raised by two percent from July.", None),
        ("Cleo", "The lift has cost us dearly this year.", None),
        ("Ada", "Those in favour, please show.", hands_up(hands, 2)),
    ]
    if against is not None:
        lines.append(("Ada", "And against?", hands_up(against, 3)))
    return [*lines, ("Ada", "Thank you. Next.", None), ("Dov", "The cellar is wet again.", None)]


@pytest.mark.parametrize("against", [None, 0, 1])
def test_hands_carry_a_motion(against: int | None) -> None:
    (decision,) = published(motion(4, against))["decisions"]
    assert "rent be raised by two percent" in decision.text
    (picture,) = pictures(decision)
    assert (picture.quote, picture.device, picture.start_s) == ("4 raised hands", "camera", 24.0)
    assert (picture.error_ms, picture.sampling_ms, picture.boundary_ms) == (2.0, 200.0, 200.0)


@pytest.mark.parametrize(("hands", "against"), [(2, 3), (2, 2), (0, 3), (0, None), (1, None)])
def test_hands_that_stay_down_or_go_up_against_carry_nothing(hands: int, against: int | None) -> None:
    assert "decisions" not in published(motion(hands, against))


def test_a_vote_that_no_camera_saw_carries_nothing() -> None:
    call = "One hive, top end, behind the hedge, for a year. Hands, please."
    assert "decisions" not in published([("Ada", call, None), ("Ben", "Well.", None)])
    watched = [d for d in items_of(motion(4)) if d.kind == "decision"]
    unseen = [d for d in items_of([(w, t, None) for w, t, _ in motion(4)]) if d.kind == "decision"]
    assert watched[0].confidence > max((d.confidence for d in unseen), default=0.0) + 0.1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("One hive, top end, behind the hedge, for a year. Hands, please.", "hive"),
        ("Hands for the sausage?", "sausage"),
        ("Vote: who is for leasing the tuba, hands up?", "tuba"),
        ("The motion is: the draft is refused, and six shifts are offered. Those in favour?", "refused"),
    ],
)
def test_what_is_voted_on_is_found(call: str, text: str) -> None:
    (decision,) = published([("Ada", call, hands_up(3, 0))])["decisions"]
    assert text in decision.text.lower()


def request(answer: Senses) -> list[Line]:
    return [
        ("Ada", "Ben, could you ask the organist about the piano?", answer),
        ("Ada", "The next thing.", None),
    ]


def test_a_nod_accepts_a_request() -> None:
    (task,) = published(request(seen("nod")))["action_items"]
    assert task.owner == "Ben" and [p.quote for p in pictures(task)] == ["a nod"]
    before = [i for i in items_of(request(Senses())) if i.kind == "action_item"]
    assert not before or before[0].confidence < task.confidence


def test_a_shake_of_the_head_refuses_it() -> None:
    assert "action_items" not in published(request(seen("shake")))


def test_a_nod_and_a_shake_together_say_nothing() -> None:
    both, none = items_of(request(seen("nod", "shake"))), items_of(request(Senses()))
    assert [(i.text, i.confidence) for i in both] == [(i.text, i.confidence) for i in none]


def test_the_nod_of_somebody_else_is_no_answer() -> None:
    other, none = items_of(request(seen("nod", who="Eve"))), items_of(request(Senses()))
    assert [(i.text, i.confidence) for i in other] == [(i.text, i.confidence) for i in none]


def test_whose_nod_is_known_owns_what_nobody_was_named_for() -> None:
    lines: list[Line] = [("Ada", "Could you please write to the mothers?", seen("nod", who="Cleo"))]
    (task,) = published(lines)["action_items"]
    assert task.owner == "Cleo" and dict(task.checks)["owner_stated"]


def by_then(senses: Senses | None) -> list[Line]:
    return [
        ("Ada", "The same date, the one that's up there.", senses),
        ("Ben", "I will get you the catalogue by then, Kiel and all.", senses),
    ]


def test_a_date_on_the_screen_is_taken_and_shown() -> None:
    (task,) = published(by_then(shown(*SLIDE_LINES)))["action_items"]
    assert (task.due, task.due_text) == (dt.date(2026, 10, 27), "by then")
    assert [e.quote for e in task.evidence if e.kind == "slide"] == ["Deliver 27 Oct, Kiel"]


@pytest.mark.parametrize(
    "senses",
    [None, shown("Job 4471"), shown("Proof 19 Oct", "Printed 20 Oct"), shown("Deliver next week, Kiel")],
)
def test_a_date_that_is_not_there_or_not_clear_is_not_taken(senses: Senses | None) -> None:
    for item in items_of(by_then(senses)):
        assert item.due is None


def test_a_name_on_the_screen_owns_the_task() -> None:
    slide = shown("Who does what", "Parking permits: Dov", "Plants: Eve")
    lines: list[Line] = [("Ada", "The name up there, please, get three parking permits.", slide)]
    (task,) = published(lines)["action_items"]
    assert task.owner == "Dov"


def test_a_voice_that_rises_asks_and_one_that_falls_does_not() -> None:
    def talk(tone: Senses, reply: str) -> list[Line]:
        return [
            ("Ada", "We're keeping the old poster.", tone),
            ("Ben", reply, None),
            ("Cleo", "The stage.", None),
        ]

    (question,) = published(talk(voice(4.0), "Hm."))["open_questions"]
    assert question.text == "We're keeping the old poster?"
    assert "decisions" not in published(talk(voice(4.0), "Hm."))
    assert "open_questions" not in published(talk(voice(4.0), "Yes, we are."))
    for flat in (voice(-3.0), voice(1.2), voice(4.0, voiced_share=0.1), Senses()):
        assert "open_questions" not in published(talk(flat, "Hm."))


def test_what_was_not_seen_is_dropped_and_what_rests_on_it_goes() -> None:
    lines = by_then(shown(*SLIDE_LINES))
    spoken = [replace(s, senses=None) for s in said(lines)]
    draft = Draft("m", "final", CONTEXT, 40 * S, items_of(lines), {s.id: s for s in spoken}, speakers=NAMES)
    (task,) = [i for i in verify(draft).items if i.section == "action_items"]
    assert task.due is None and all(e.kind == "speech" for e in task.evidence)
    assert dict(task.checks)["seen_or_shown"] is False


def test_dates_in_lines_of_slides() -> None:
    for line, words in (
        ("Mill House: viewing Wed 29 Apr 17:00", "wednesday 29 april"),
        ("Wired in by all teams: 17 April", "17 april"),
        ("Deliver 27 Oct, Kiel", "27 october"),
    ):
        assert [d.words for d in dates_in(line)] == [words]
    for line in (
        "Friday 17-20, visits per evening",
        "Northgate 41   Riverside 9",
        "Step 44  written report: May",
    ):
        assert dates_in(line) == ()


def test_figures_for_a_network_say_what_was_there() -> None:
    vector, present = figures_of(said([("Ada", "Hello.", None)])[0])
    assert not vector.any() and not present.any() and len(vector) == len(SENSES)
    senses = replace(
        seen("nod", "raise_hand"), tone=Tone(3.0, 10.0, 0.5, -15.0), shown=shown(*SLIDE_LINES).shown
    )
    vector, present = figures_of(said([("Ada", "By that date, up there.", senses)])[0])
    named = dict(zip(SENSES, vector.tolist(), strict=True))
    assert present.tolist() == [True, True, True]
    assert (named["rise"], named["nods"], named["hands"], named["dates"]) == pytest.approx(
        (0.5, 0.25, 0.125, 0.4)
    )
    assert named["pointed_at"] == 1.0 and np.abs(vector).max() <= 1.0
    _, present = figures_of(said([("Ada", "Hello.", replace(Senses(), watched=True))])[0])
    assert present.tolist() == [False, True, False]
    with pytest.raises(ValueError, match="sound takes 4"):
        sense_vector(sound=(1.0,))
    assert len(SOUND) + len(PICTURE) + len(SLIDE) == len(SENSES)
