"""What deliver publishes, folded by the contract's consumer, is the document that deliver publishes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from contracts.consumer import SECTIONS, MinutesFold, read_event, read_state
from contracts.minutes import Evidence, SummarySentence, Versions
from contracts.topics import MINUTES, STATE
from operators.broker.sink import Outgoing
from operators.deliver.keys import OpenKeys
from operators.deliver.ledger import MeetingLedger
from operators.understand.types import MeetingContext
from operators.verify.types import Draft, SummaryVerdict, Verified, VerifiedItem

VERSIONS = Versions(product="0", model=None, rules="0", contract="0")
SECOND = 1_000_000_000


def evidence(start_s: int) -> Evidence:
    return Evidence(
        kind="speech", start_s=float(start_s), end_s=start_s + 1.0, device="seat-1", speaker=None,
        quote="said", error_ms=0.0, sampling_ms=0.0, boundary_ms=0.0,
    )  # fmt: skip


@st.composite
def verified_items(draw: st.DrawFn) -> tuple[VerifiedItem, ...]:
    items = []
    for name in sorted(draw(st.sets(st.sampled_from("abcd")))):
        start_s = draw(st.integers(0, 3))
        item = VerifiedItem(
            item_id=name, section=draw(st.sampled_from(SECTIONS)),
            text=draw(st.sampled_from(["Do it.", "Do."])),
            confidence=0.5, owner=draw(st.sampled_from([None, "Anna"])), due=None, due_text=None,
            verdict=draw(st.sampled_from(["pass", "pass", "repaired", "review", "withheld", "withdrawn"])),
            origin="rules", checks=(("evidence", True),), actions=(), doubts=(),
            evidence=(evidence(start_s),), first_ns=start_s * SECOND,
        )  # fmt: skip
        items.append(replace(item, digest=repr(item).encode()))
    return tuple(items)


@st.composite
def drafts(draw: st.DrawFn) -> Verified:
    draft = Draft(
        meeting_id="m", stage=draw(st.sampled_from(["provisional", "settled", "final"])),
        context=MeetingContext(), until_ns=draw(st.integers(0, 5)) * SECOND, items=(), utterances={},
    )  # fmt: skip
    told = draw(st.sampled_from(["", "One thing.", "Another."]))
    summary = (SummarySentence(text=told, evidence=(evidence(0),)),) if told else ()
    return Verified(draft, draw(verified_items()), summary, SummaryVerdict((), ()), ())


def is_state(message: Outgoing) -> bool:
    return message.topic is STATE


@given(st.lists(drafts(), min_size=1, max_size=6), st.data())
def test_events_and_documents_fold_to_the_document(told: list[Verified], data: st.DataObject) -> None:
    ledger = MeetingLedger("m", VERSIONS, OpenKeys().key_of("m"))
    sent = [message for verified in told for message in ledger.apply(verified)]
    start = data.draw(st.integers(0, sum(map(is_state, sent))), label="documents that were compacted away")
    documents = [message for message in sent if is_state(message)][start:]
    fold = MinutesFold()
    for message in data.draw(st.permutations(sent)):
        if message in documents:
            fold.load(read_state(message.value))
        elif message.topic is MINUTES:
            fold.apply(read_event(message.value))
    state = ledger.state()
    if state.revision == 0:
        assert not fold.meetings
        return
    known = fold.meetings["m"]
    assert known.missing == ()
    assert known.revision == state.revision
    assert known.summary == state.summary
    for section in SECTIONS:
        assert known.section(section) == getattr(state, section)
