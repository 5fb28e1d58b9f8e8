"""People and the whole chain: answers, names, additions, other rules and a purge, with kills in between."""

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from contracts.messages import RuleFile
from contracts.minutes import MinutesState, ReviewRequest
from contracts.topics import AUDIT, MINUTES, STATE
from flows.audit import entries_of, keys_for_reading, proof_of_topics
from flows.installation import Installation
from flows.purge import purge
from flows.review import (
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
from flows.run_files import minutes_by
from operators.deliver.keys import KeyStore
from operators.settings import Settings
from tests.flows.live_chain import Chain

pytestmark = pytest.mark.slow
LINES = [
    (1.0, 4.0, "Anna", "Good morning, let us plan the stall."),
    (5.0, 8.0, "Anna", "We decided that the stall opens on Saturday at nine."),
    (9.0, 11.0, "Ben", "Someone needs to update the price list."),
    (12.0, 14.0, "Ben", "I will order the bright water bottles by Friday."),
    (15.0, 17.0, "Anna", "The cups are in the blue box behind the door."),
    (30.0, 31.0, "Anna", "That is all, thank you."),
]
WAIT_S = 60.0


def folder(path: Path, meeting_id: str) -> Path:
    path.mkdir(parents=True)
    told = [dict(zip(("start_s", "end_s", "speaker", "text"), line, strict=True)) for line in LINES]
    (path / "talk.jsonl").write_text("".join(json.dumps(line) + "\n" for line in told))
    people = [{"name": name} for name in ("Anna", "Ben")]
    about = {
        "title": "Stall",
        "date": "2026-05-27",
        "attendees": people,
        "key_topics": ["Brightwater bottles"],
    }
    (path / "room.json").write_text(json.dumps(about | {"meeting_id": meeting_id}))
    return path


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    where = tmp_path_factory.mktemp("people")
    with Installation(
        where / "installation",
        settings={"MINUTED_PARTIALS": "false", "MINUTED_MODEL": "rules", "MINUTED_SHED_AFTER_S": "86400"},
    ) as installation:
        chain = Chain(installation)
        for name in ("m", "other"):
            chain.publish(folder(where / name, name), name)
            chain.minutes(name)
        yield chain
        chain.close()


def restarted(chain: Chain, *names: str) -> None:
    flows = [chain.installation.flows[name] for name in names]
    for flow in flows:
        flow.kill()
    for flow in flows:
        flow.start()
    for flow in flows:
        flow.wait_ready()


def settings_of(chain: Chain) -> Settings:
    names = chain.link.names
    return Settings(
        bootstrap_servers=chain.link.bootstrap, shards=names.shards, keys=chain.installation.keys,
        fetch_wait_max_ms=int(chain.link.overrides["fetch.wait.max.ms"]), model="rules",
    )  # fmt: skip


def answered(chain: Chain, case: ReviewRequest, wanted: Wanted) -> Outcome:
    message = correction("m", case.item_id, case.item_sha256, "change", wanted, "Carla")
    return send_and_follow(chain.link, message, wait_s=WAIT_S)


def state(
    chain: Chain, meeting_id: str = "m", wanted: Callable[[MinutesState], bool] = lambda _: True
) -> MinutesState:
    """The minutes once they are as wanted; events and documents agree, no revision is contradicted."""

    def documents() -> list[MinutesState]:
        states = [MinutesState.model_validate_json(m.value) for m in chain.reader.of(STATE) if m.value]
        return [s for s in states if s.meeting_id == meeting_id and wanted(s)]

    chain.wait(lambda: bool(documents()), f"the minutes of {meeting_id} as wanted")
    return chain.minutes(meeting_id)


def test_answers_change_the_minutes_once_and_for_good(chain: Chain) -> None:
    """A kill right after an answer, one that no longer fits, a name, something missed; then all is replayed."""
    cases = read_cases(chain.link, None, wait_s=WAIT_S)
    (bottles, prices) = sorted(cases.open("m"), key=lambda c: c.reason)[::-1]
    assert "owner named" in prices.reason and "Brightwater" in bottles.reason
    assert state(chain).review.waiting == 2

    message = correction("m", prices.item_id, prices.item_sha256, "change", Wanted(owner="Anna"), "Carla")
    chain.control(message)
    restarted(chain, "minutes")
    chain.wait(
        lambda: any(b'"origin":"person"' in m.value for m in chain.reader.of(MINUTES, "m")), "the answer"
    )
    again = answered(chain, prices, Wanted(owner="Ben"))
    assert again.done is False and "the item has changed" in again.told
    assert send_and_follow(
        chain.link, renaming("m", "Brightwater", ["bright water"], "Carla"), wait_s=WAIT_S
    ).done
    with pytest.raises(ReviewProblem, match="nothing was said"):
        spoken_at(chain.link, "m", 24.0, wait_s=WAIT_S)
    said = [s.id for s in spoken_at(chain.link, "m", 16.0, wait_s=WAIT_S)]
    missed = addition("m", "decisions", Wanted("The cups stay in the blue box"), said, "Carla")
    assert send_and_follow(chain.link, missed, wait_s=WAIT_S).done
    restarted(chain, "perceive", "minutes")
    outcome = answered(chain, read_cases(chain.link, "m", wait_s=WAIT_S).newest["m", prices.request_id],
                       Wanted(clear=("owner",), text="Update the prices"))  # fmt: skip
    assert outcome.done, outcome

    minutes = state(chain, "m", lambda s: any(i.text == "Update the prices" for i in s.action_items))
    tasks = {i.text: (i.owner, i.origin) for i in minutes.action_items}
    assert tasks["Update the prices"] == (None, "person")
    assert ("Order the Brightwater bottles", ("Ben", "person")) in tasks.items()
    assert [(i.text, i.origin) for i in minutes.decisions][-1] == ("The cups stay in the blue box", "person")
    assert "bright water" in next(i for i in minutes.action_items if "Order" in i.text).evidence[0].quote
    assert minutes.review.waiting == 0
    assert {i.origin for i in state(chain, "other").action_items} == {"rules"}


def test_the_audit_is_whole_and_tells_who_decided(chain: Chain) -> None:
    settings = settings_of(chain)
    proof = proof_of_topics(settings, None, WAIT_S)
    reports = {r.meeting_id: r for r in proof.reports()}
    assert reports["m"].holds and reports["m"].proven == reports["m"].entries > 8
    assert reports["other"].holds
    entries = entries_of(proof, "m", keys_for_reading(settings))
    by_people = [(e.verdict, e.by) for e in entries if e.by]
    assert by_people.count(("person", "Carla")) == 4 and by_people.count(("void", "Carla")) == 1
    assert all(b"price" not in m.value and b"Anna" not in m.value for m in chain.reader.of(AUDIT))


def _stands(chain: Chain, name: str, document: bytes, audit: list[bytes]) -> bool:
    """Whether these are the newest document and all audit entries on the topics."""
    documents = [m.value for m in chain.reader.of(STATE) if m.key == f"{name}/minutes/".encode()]
    entries = list(dict.fromkeys(m.value for m in chain.reader.of(AUDIT, name)))
    return documents[-1:] == [document] and entries == audit


def test_the_log_read_again_gives_the_same_bytes(chain: Chain) -> None:
    """Minutes and sealed audit entries alike, after kills and answers."""
    keys = KeyStore(chain.installation.keys, create=False)
    for name in ("m", "other"):
        again = minutes_by(settings_of(chain), keys)
        written = [message for record in chain.log(name) for message in again.read(record.to_bytes())]
        last = [m.value for m in written if m.topic is STATE][-1]
        # The log may have been read ahead of the other topics.
        chain.wait(
            partial(_stands, chain, name, last, again.audit), f"document and audit of {name} as its log says"
        )


def test_other_rules_come_by_a_control_message(chain: Chain) -> None:
    text = 'assert "no tills": all i in items: not (i.text contains "price") on fail: drop\n'
    digest = hashlib.sha256(text.encode()).hexdigest()
    chain.control(RuleFile(meeting_id="other", name="house", content=text, sha256=digest))
    minutes = state(chain, "other", lambda s: s.versions.assertions == f"house/{digest[:12]}")
    assert all("price" not in i.text for i in minutes.action_items)
    assert len(minutes.action_items) == 1


def test_a_purged_meeting_is_gone_and_its_audit_still_verifies(chain: Chain, tmp_path: Path) -> None:
    keys = KeyStore(chain.installation.keys, create=False)
    assert keys.find("m") is not None
    restarted(chain, "minutes")
    report = purge(chain.link, "m", keys, wait_s=WAIT_S)
    assert report.told and report.key_destroyed and report.erased >= 4
    settings = settings_of(chain)
    (audit,) = proof_of_topics(settings, "m", WAIT_S).reports("m")
    assert audit.holds and audit.closed
    assert keys.key_of("m") is None and keys.find("other") is not None
    tombstones = [m for m in chain.reader.of(STATE) if m.key == b"m/minutes/" and not m.value]
    assert tombstones
    cases = read_cases(chain.link, None, wait_s=WAIT_S)
    assert cases.fold.meetings["m"].purged and not cases.open("m")
    before = len(chain.reader.of(MINUTES, "m"))
    restarted(chain, "perceive", "minutes")
    chain.publish(folder(tmp_path / "late", "m"), "m")
    chain.publish(folder(tmp_path / "new", "third"), "third")
    assert state(chain, "third").action_items
    assert len(chain.reader.of(MINUTES, "m")) == before
