"""Rules and a minutes model together: items that neither finds alone, and what changes them."""

import pickle
from collections.abc import Sequence
from dataclasses import replace

import pytest

from models.minutes.appraisal import Appraisal, Judgement
from models.minutes.scores import UtteranceScores
from operators.understand.apart import apart
from operators.understand.appraise import FIGURES
from operators.understand.birth import MOCKS
from operators.understand.engine import RuleEngine
from operators.understand.hybrid import HybridEngine
from operators.understand.types import DraftItem, Quote
from tests.operators.scored_talk import BY_SCORE, Says, read, said_by, standing

_UNUSUAL = "The newsletter is with me, out on Thursday."
_TALK = (
    ("Mira", "It rained on Sunday."),
    ("Tom", _UNUSUAL),
    ("Mira", "The hall was cold."),
    ("Tom", "Somebody left a window open."),
    ("Mira", "It was like that last year."),
)


def test_the_model_starts_an_item_in_the_words_that_were_said() -> None:
    spoken = said_by(*_TALK)
    assert not standing(RuleEngine(), RuleEngine().finish(read(RuleEngine(), spoken)), "action_item")
    sure = UtteranceScores(action=0.9, owner=(("Tom", 0.9),))
    engine = HybridEngine(scorer=Says({_UNUSUAL: sure}), appraisal=BY_SCORE)
    (item,) = standing(engine, engine.finish(read(engine, spoken)), "action_item")
    assert [q.utterance_id for q in item.evidence] == ["u1"]
    said = _UNUSUAL.lower()
    assert all(word.strip(",.").lower() in said for word in item.text.split())
    assert (item.owner, item.due_text) == ("Tom", "on Thursday")
    assert item.confidence > 0.5
    assert engine.origin == "model"


def test_what_is_said_afterwards_takes_an_unsure_item_out_again() -> None:
    spoken = said_by(*_TALK)
    sure, unsure = UtteranceScores(action=0.9), UtteranceScores(action=0.1)
    engine = HybridEngine(scorer=Says({_UNUSUAL: sure}, {_UNUSUAL: unsure}), appraisal=BY_SCORE)
    assert len(standing(engine, read(engine, spoken[:2]), "action_item")) == 1
    assert len(standing(engine, read(engine, spoken[:3]), "action_item")) == 1
    assert standing(engine, read(engine, spoken[:4]), "action_item") == []


def test_utterances_that_belong_together_are_one_item() -> None:
    spoken = said_by(*_TALK, ("Tom", "The newsletter also gets the photographs."))
    more = spoken[5].text
    first = UtteranceScores(action=0.9)
    alone, joined = UtteranceScores(action=0.9), UtteranceScores(action=0.9, joins=0.8, joins_to=((4, 0.8),))
    for second, count in ((alone, 2), (joined, 1)):
        engine = HybridEngine(scorer=Says({_UNUSUAL: first, more: second}), appraisal=BY_SCORE)
        items = standing(engine, read(engine, [*spoken[:5], replace(spoken[5], text=more)]), "action_item")
        assert len(items) == count or (count == 2 and "said again" in items[0].reasons)
    assert [q.utterance_id for q in items[0].evidence] == ["u1", "u5"]


@pytest.mark.parametrize("wordless", ["", "…", "?!", "🙂", "- -"])
def test_an_utterance_without_words_is_no_item_and_no_part_of_one(wordless: str) -> None:
    sure = UtteranceScores(action=0.9)
    joins = UtteranceScores(0.9, 0.9, 0.9, withdrawn=0.1, joins=0.9, joins_to=((1, 0.9),))
    engine = HybridEngine(scorer=Says({_UNUSUAL: sure, wordless: joins}), appraisal=BY_SCORE)
    spoken = said_by(*_TALK[:2], ("Mira", wordless), *_TALK[2:])
    items = [i for i in engine.items(engine.finish(read(engine, spoken))) if not i.withdrawn]
    assert [[q.utterance_id for q in i.evidence] for i in items] == [["u1"]]


def test_what_the_model_takes_for_taken_back_is_no_longer_published() -> None:
    spoken = said_by(*_TALK[:3], ("Tom", "On second thoughts I have no time this month."))
    scores = {
        _UNUSUAL: UtteranceScores(action=0.9),
        spoken[3].text: UtteranceScores(withdrawn=0.9, joins=0.9, joins_to=((2, 0.9),)),
    }
    engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
    assert len(standing(engine, read(engine, spoken[:3]), "action_item")) == 1
    assert standing(engine, read(engine, spoken), "action_item") == []


def test_what_only_rules_take_for_taken_back_stands_where_the_model_sees_nothing_of_the_kind() -> None:
    promised, doubtful, plain = "I'll paint the fence by Friday.", "Then no paint.", "Forget I said it."
    for words, sure, stands in ((doubtful, 0.02, True), (doubtful, 0.6, False), (plain, 0.02, False)):
        spoken = said_by(("Tom", promised), ("Mira", "It has to be green."), ("Tom", words))
        scores = {promised: UtteranceScores(action=0.9), words: UtteranceScores(withdrawn=sure)}
        engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
        assert len(standing(engine, read(engine, spoken), "action_item")) == stands
        assert standing(RuleEngine(), read(RuleEngine(), spoken), "action_item") == []


@pytest.mark.parametrize(
    ("said", "texts"),
    [
        # What was plainly given to two people, or is two works of one, are two items.
        ("I'll order the tent by Friday. And I'll call the baker on Tuesday.", ["Order the tent", "Call the baker"]),
        ("I'll order the tent by Friday, and Mira will call the baker on Tuesday.", ["Order the tent", "Call the baker"]),
        # Where rules alone would not believe both, one talk is one item.
        ("I'll order the tent by Friday. Maybe I could order it in green.", ["Order the tent"]),
    ],
)  # fmt: skip
def test_one_talk_gives_one_item_of_each_work(said: str, texts: list[str]) -> None:
    spoken = said_by(("Tom", said))
    scores = {spoken[0].text: UtteranceScores(action=0.9)}
    engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
    state = engine.finish(read(engine, spoken))
    assert [i.text for i in standing(engine, state, "action_item")] == texts


def test_a_repeated_commitment_is_no_less_sure() -> None:
    again = "The newsletter is with me."
    spoken = said_by(*_TALK, ("Tom", again))
    scores = {_UNUSUAL: UtteranceScores(action=0.8), again: UtteranceScores(action=0.3)}
    engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
    (before,) = standing(engine, read(engine, spoken[:5]), "action_item")
    (after,) = standing(engine, read(engine, spoken), "action_item")
    assert after.confidence >= before.confidence


def test_a_state_that_was_stored_goes_on_the_same_way() -> None:
    spoken = said_by(*_TALK, ("Mira", "I'll order the heater tomorrow."), ("Tom", "Thanks."))
    scores = {_UNUSUAL: UtteranceScores(action=0.9), spoken[5].text: UtteranceScores(action=0.7)}
    engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
    whole = engine.finish(read(engine, spoken))
    for cut in range(len(spoken)):
        state = pickle.loads(pickle.dumps(read(engine, spoken[:cut])))
        other = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
        for one in spoken[cut:]:
            state = other.step(state, one)
        state = other.finish(state)
        assert other.items(state) == engine.items(whole)
        assert state.memory is not None and whole.memory is not None
        assert state.memory.digest == whole.memory.digest


def test_without_a_model_it_is_the_rule_engine() -> None:
    spoken = said_by(*_TALK, ("Mira", "I'll order the heater tomorrow."), ("Tom", "Thanks."))
    rules, engine = RuleEngine(), HybridEngine()
    assert engine.items(engine.finish(read(engine, spoken))) == rules.items(rules.finish(read(rules, spoken)))


def test_a_long_meeting_keeps_little() -> None:
    lines = [
        ("Mira" if n % 2 else "Tom", f"Number {n} of the shelf goes to the east wing.") for n in range(700)
    ]
    scores = {text: UtteranceScores(action=0.04, decision=0.04) for _, text in lines}
    scorer = Says(scores)
    engine = HybridEngine(scorer=scorer, appraisal=BY_SCORE)
    state = read(engine, said_by(*lines))
    assert len(state.drafts) < 200
    assert state.memory is not None
    assert len(state.memory.hints) <= 13
    assert len(pickle.dumps(state)) < 600_000
    assert max(map(len, scorer.windows)) <= 20


def test_no_statement_is_written_down_as_a_question() -> None:
    spoken = said_by(
        ("Mira", "I don't know."), ("Tom", "The new rules hold for new halls."), ("Ana", "who has the key")
    )
    sure = UtteranceScores(question=0.9)
    engine = HybridEngine(scorer=Says({s.text: sure for s in spoken}), appraisal=BY_SCORE)
    items = standing(engine, engine.finish(read(engine, spoken)), "open_question")
    assert [i.text for i in items] == ["Who has the key?"]


def test_what_the_model_started_can_be_taken_back_by_rules() -> None:
    spoken = said_by(*_TALK[:3], ("Tom", "Forget I said that, the newsletter is not with me."))
    engine = HybridEngine(scorer=Says({_UNUSUAL: UtteranceScores(action=0.9)}), appraisal=BY_SCORE)
    assert len(standing(engine, read(engine, spoken[:3]), "action_item")) == 1
    assert standing(engine, read(engine, spoken), "action_item") == []


@pytest.mark.parametrize(
    ("wish", "reply", "mocks"),
    [
        (
            "If we had more people, we could print it in colour.",
            "Sure, and I will juggle on the stage.",
            True,
        ),
        (
            "If we had more people, we could print it in colour.",
            "Sure, and I will print it by Friday.",
            False,
        ),
        ("We need it in colour.", "Sure, and I will print the second list.", False),
    ],
)
def test_a_promise_that_mocks_a_wish_is_doubted(wish: str, reply: str, mocks: bool) -> None:
    engine = RuleEngine()
    drafts = read(engine, said_by(("Mira", wish), ("Tom", reply))).drafts
    found = [d for d in drafts if d.family == "action" and d.last_index == 1]
    assert found and all((MOCKS in d.reasons) is mocks for d in found)
    wished = read(engine, said_by(("Mira", wish), ("Mira", reply))).drafts
    assert not any(MOCKS in d.reasons for d in wished)


def test_what_was_firmly_agreed_needs_no_model() -> None:
    engine = HybridEngine(scorer=Says({}), appraisal=BY_SCORE)
    plan = ("Mira", "I suggest we paint the hall on Thursday, the sixth of May.")
    agreed = read(
        engine, said_by(plan, ("Tom", "Agreed, that works for me."), ("Mira", "It rained on Sunday."))
    )
    assert [i.text for i in standing(engine, agreed, "decision")] == [
        "We paint the hall on Thursday, the sixth of May"
    ]
    alone = read(engine, said_by(plan, ("Tom", "It rained on Sunday."), ("Mira", "The hall was cold.")))
    assert not standing(engine, alone, "decision")


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        (("We decided to paint the hall green.", "It rained on Sunday."), "decision"),
        (("So the decision is that we close at five.", "It rained on Sunday."), "decision"),
        (("Who is going to pay for the tent?", "No idea."), "open_question"),
        (("They decided to paint the hall green.", "It rained on Sunday."), None),
        (("I thought we decided to paint the hall last year.", "It rained on Sunday."), None),
    ],
)
def test_what_is_called_by_its_name_needs_no_model(lines: tuple[str, str], kind: str | None) -> None:
    engine = HybridEngine(scorer=Says({}), appraisal=BY_SCORE)
    state = read(engine, said_by(("Mira", lines[0]), ("Tom", lines[1]), ("Mira", "The hall was cold.")))
    assert [i.kind for i in engine.items(state)] == ([kind] if kind else [])


def test_a_shade_of_certainty_is_no_change() -> None:
    def item(likely: float) -> DraftItem:
        engine = HybridEngine(scorer=Says({_UNUSUAL: UtteranceScores(action=likely)}), appraisal=BY_SCORE)
        (only,) = standing(engine, read(engine, said_by(*_TALK)), "action_item")
        return only

    assert item(0.7) == item(0.71)
    assert item(0.7).confidence < item(0.8).confidence <= item(0.999).confidence < 1.0


def test_what_somebody_once_meant_to_do_is_no_task() -> None:
    said = "I was going to go down there on Monday with photographs."
    spoken = said_by(("Mira", "Hm."), ("Tom", said), ("Mira", "Better not."))
    engine = HybridEngine(scorer=Says({said: UtteranceScores(action=0.9)}), appraisal=BY_SCORE)
    assert not standing(engine, engine.finish(read(engine, spoken)), "action_item")


def test_a_promise_stays_beside_another_that_rests_on_it() -> None:
    first, second = "I will send the report tomorrow.", "I will check it the day after tomorrow."
    scores = {first: UtteranceScores(action=0.8), second: UtteranceScores(action=0.9)}
    engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
    state = engine.finish(read(engine, said_by(("Mira", first), ("Tom", second))))
    assert [i.owner for i in standing(engine, state, "action_item")] == ["Mira", "Tom"]


@pytest.mark.parametrize(("kind", "spans"), [("action_item", [1, 1, 1]), ("decision", [3])])
def test_in_sparse_talk_each_task_rests_on_its_own_words_alone(kind: str, spans: list[int]) -> None:
    told = (
        "Buttons and layout for the designer.",
        "The casing for our engineer.",
        "Prices and shops for Mira.",
    )
    rain = [("Tom", "It rained on Sunday.")]
    spoken = said_by(*rain * 150, *[("Mira", line) for line in told], *rain * 3)
    likely = zip(told, (0.8, 0.9, 0.7), strict=True)
    task = kind == "action_item"
    scores = {line: UtteranceScores(action=p) if task else UtteranceScores(decision=p) for line, p in likely}
    engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
    items = standing(engine, engine.finish(read(engine, spoken)), kind)
    assert [len(item.evidence) for item in items] == spans


_LATER = ("The terrace is swept.", "It rained on Sunday.", "The hall was cold.")
_CONSIDERED = "The big tent for the party, the one from the school."
_ECHO = "The school tent, and nothing smaller."
_STOOLS = "The stools from the church."
_PLAIN_TWO = ("We decided to move the launch to May.", "We also decided to hire a second tester.")


@pytest.mark.parametrize(
    ("lines", "likely", "texts"),
    [
        ((_CONSIDERED, _ECHO), (0.8, 0.9), 1),
        ((_CONSIDERED, _ECHO), (0.9, 0.8), 1),
        ((_CONSIDERED, _STOOLS), (0.9, 0.8), 1),
        ((_CONSIDERED, *_LATER, _STOOLS), (0.9, 0.0, 0.0, 0.0, 0.8), 2),
        (_PLAIN_TWO, (0.9, 0.8), 2),
        (_PLAIN_TWO, (0.8, 0.9), 2),
        ((_PLAIN_TWO[0], "The launch in May, as decided."), (0.9, 0.8), 1),
    ],
)
def test_turns_that_follow_each_other_are_one_decision_but_where_words_plainly_put_two(
    lines: tuple[str, ...], likely: tuple[float, ...], texts: int
) -> None:
    people = ("Mira", "Tom")
    spoken = said_by(*((people[n % 2], line) for n, line in enumerate(lines)), ("Tom", "It was like that."))
    scores = {line: UtteranceScores(decision=p) for line, p in zip(lines, likely, strict=True)}
    engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
    items = standing(engine, engine.finish(read(engine, spoken)), "decision")
    assert len(items) == texts, [i.text for i in items]


def test_a_decision_rests_on_what_was_said_around_it_in_the_same_talk() -> None:
    lines = (_LATER[0], "What about the tent?", _CONSIDERED, _LATER[1], _LATER[2], "Stools too.", _LATER[0])
    likely = (0.0, 0.35, 0.9, 0.1, 0.0, 0.4, 0.0)
    spoken = said_by(*(("Mira", line) for line in lines), *[("Tom", "It was like that last year.")] * 3)
    scores = {line: UtteranceScores(decision=p) for line, p in zip(lines, likely, strict=True)}
    engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
    state = engine.finish(read(engine, spoken))
    (item,) = standing(engine, state, "decision")
    assert [q.utterance_id for q in item.evidence] == ["u1", "u2", "u5"]
    assert item.text == "The big tent for the party, the one from the school"
    (made,) = [m for d, m in engine.in_the_making(state) if d.id == item.id]
    assert made.evidence == item.evidence


@pytest.mark.parametrize(("common", "kept"), [(0, 2), (1, 2), (2, 1), (3, 1)])
def test_a_decision_that_shares_half_of_its_evidence_with_a_surer_one_is_none(common: int, kept: int) -> None:
    spoken = said_by(*(("Mira", line) for line in (_CONSIDERED, *_LATER, _LATER[0], _STOOLS)))
    scores = {line: UtteranceScores(decision=0.9) for line in (_CONSIDERED, _STOOLS)}
    engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
    (first, one), (second, other) = [
        pair for pair in engine.in_the_making(read(engine, spoken)) if pair[1].kind == "decision"
    ]
    around = [Quote(f"x{n}", 0, 9) for n in range(3)]
    more = [Quote(f"y{n}", 0, 9) for n in range(3 - common)]
    one = replace(one, evidence=(*one.evidence, *around))
    other = replace(other, evidence=(*other.evidence, *around[:common], *more))
    sure = {first.id: 0.9, second.id: 0.8}
    assert len(apart([(first, one), (second, other)], sure)) == kept


_SETTLING = ("We looked at the red paint.", "I had a red shed once. Blue stays, red goes to the school.")


def _decided(lines: Sequence[str], likely: Sequence[float], joins: bool = False) -> list[str]:
    """Texts of the decisions where the model says how likely each line is part of one."""
    people, told = ("Mira", "Tom"), ((1, 0.9),) if joins else ()
    spoken = said_by(*((people[n % 2], line) for n, line in enumerate(lines)), *[("Tom", _TALK[4][1])] * 3)
    scores = {
        line: UtteranceScores(decision=p, joins=0.9 if joins and n else 0.0, joins_to=told if n else ())
        for n, (line, p) in enumerate(zip(lines, likely, strict=True))
    }
    engine = HybridEngine(scorer=Says(scores), appraisal=BY_SCORE)
    return [i.text for i in standing(engine, engine.finish(read(engine, spoken)), "decision")]


@pytest.mark.parametrize("joins", [True, False])
def test_a_decision_has_the_words_of_the_surest_line_of_it(joins: bool) -> None:
    assert _decided(_SETTLING, (0.6, 0.9), joins) == ["Blue stays, red goes to the school"]
    assert _decided(_SETTLING, (0.9, 0.6), joins) == ["We looked at the red paint"]


@pytest.mark.parametrize(
    "beside",
    ["Would the red paint cover it?", "I had a red shed once.", "Could you buy red paint, Mira?", "Oh, lovely.",
     "Because red paint is cheaper."],
)  # fmt: skip
def test_a_question_a_reason_or_ones_own_affair_does_not_say_what_was_decided(beside: str) -> None:
    assert _decided(("Red paint for the shed.", beside), (0.6, 0.9), joins=True) == ["Red paint for the shed"]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("I had to borrow a pound for the trolley. Blue trolleys.", "Blue trolleys"),
        ("Tom, you can take the line off the price list. Free for members.", "Free for members"),
        ("Six hundred each it is. If it were more the cleaner would get a rise as well.", "Six hundred each it is"),
        ("The north hall on Friday. Because the south hall has no heating.", "The north hall on Friday"),
    ],
)  # fmt: skip
def test_of_several_clauses_the_one_that_settles_is_the_decision(said: str, text: str) -> None:
    assert _decided((said,), (0.9,)) == [text]


@pytest.mark.parametrize(
    ("lines", "stands"),
    [
        ((("Tom", "I'll paint the fence by Friday."),), "action_item"),
        ((("Mira", "We've decided to keep the green fence."), ("Tom", "Agreed.")), "decision"),
        ((("Mira", "Who has the key to the shed?"), ("Tom", "Nobody knows.")), "open_question"),
        ((("Mira", "And maybe the fence could be green one day."),), None),
    ],
)  # fmt: skip
def test_no_threshold_takes_out_what_words_bear_out(
    lines: tuple[tuple[str, str], ...], stands: str | None
) -> None:
    never = Judgement((0.0,) * len(FIGURES), -6.0, 0.99, 0.99)
    appraisal = Appraisal(FIGURES, "table", dict.fromkeys(("action", "decision", "question"), never))
    engine = HybridEngine(scorer=Says({}), appraisal=appraisal)
    state = engine.finish(read(engine, said_by(*lines)))
    found = [kind for kind in ("action_item", "decision", "open_question") if standing(engine, state, kind)]
    assert found == ([] if stands is None else [stands])
