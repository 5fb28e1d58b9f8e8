"""The latency meter on hand-made messages with known answers; each rule has a test that breaks without it."""

import json
from typing import Any

import pytest

from contracts.topics import MINUTES, PARTIALS, TIMELINE, Topic
from flows.latency import UNMATCHED_MS, LatencyMeter, LatencySamples, TrueUtterance, normalised, percentiles

START = 1_000_000_000_000
MS = 1_000_000


def at(seconds: float) -> int:
    """Timeline time of a moment of the meeting."""
    return START + round(seconds * 1e9)


class Meeting:
    """A meter and short ways to feed it; times in seconds of the meeting."""

    def __init__(self) -> None:
        self.meter = LatencyMeter("m")
        self.feed(
            TIMELINE, 0.0, {"type": "control", "control": {"type": "meeting_started", "start_ns": START}}
        )

    def feed(
        self, topic: Topic, seen_s: float, message: dict[str, Any], *, sent_s: float | None = None
    ) -> None:
        """One message, seen at a moment."""
        value = json.dumps({"meeting_id": "m"} | message).encode()
        self.meter.feed(topic.name, value, at(seen_s), None if sent_s is None else at(sent_s))

    def utterance(
        self, seen_s: float, identity: str, start_s: float, end_s: float, text: str, *, speaker: str | None = "Anna",
        state: str = "closed", device: str = "mic-1", sent_s: float | None = None,
    ) -> None:  # fmt: skip
        """An utterance record on the timeline."""
        message = {
            "type": "utterance", "id": identity, "device": device, "speaker": speaker, "raw_start_ns": at(start_s),
            "raw_end_ns": at(end_s), "text": text, "state": state,
        }  # fmt: skip
        self.feed(TIMELINE, seen_s, message, sent_s=sent_s)

    def partial(self, seen_s: float, identity: str, start_s: float, end_s: float) -> None:
        """A partial text."""
        message = {
            "type": "partial", "piece_id": identity, "device": "mic-1", "speaker": "Anna", "start_ns": at(start_s),
            "end_ns": at(end_s), "text": "so",
        }  # fmt: skip
        self.feed(PARTIALS, seen_s, message)

    def item(
        self, seen_s: float, identity: str, start_s: float, end_s: float, *, kind: str = "item_added",
        stage: str = "provisional", text: str = "Call the plumber.", device: str = "mic-1",
    ) -> None:  # fmt: skip
        """An item event with one piece of spoken evidence."""
        evidence = [{"kind": "speech", "device": device, "start_s": start_s, "end_s": end_s}]
        message = {
            "type": kind, "stage": stage, "section": "action_items",
            "item": {"id": identity, "text": text, "evidence": evidence},
        }  # fmt: skip
        self.feed(MINUTES, seen_s, message)

    def withdrawn(self, seen_s: float, identity: str, stage: str = "settled") -> None:
        """An item goes."""
        self.feed(MINUTES, seen_s, {"type": "item_withdrawn", "stage": stage, "item_id": identity})

    def samples(self, *truth: TrueUtterance) -> LatencySamples:
        """What was measured."""
        return self.meter.samples(truth)


def said(
    start_s: float, end_s: float, text: str = "I will call the plumber.", speaker: str = "Anna"
) -> TrueUtterance:
    """A true utterance."""
    return TrueUtterance(f"{speaker}-{start_s}", speaker, start_s, end_s, text)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], (0.0, 0.0, 0.0)),
        ([7.0], (7.0, 7.0, 7.0)),
        ([2.0, 1.0], (1.0, 2.0, 2.0)),
        ([3.0, 1.0, 2.0], (2.0, 3.0, 3.0)),
        ([float(v) for v in range(1, 21)], (10.0, 19.0, 20.0)),
        ([float(v) for v in range(100, 0, -1)], (50.0, 95.0, 99.0)),
        ([float(v) for v in range(1, 102)], (51.0, 96.0, 100.0)),
    ],
)
def test_percentiles_are_nearest_rank(values: list[float], expected: tuple[float, float, float]) -> None:
    assert percentiles(values) == dict(zip(("p50", "p95", "p99"), expected, strict=True)) | {"n": len(values)}


def test_normalised_text_ignores_case_and_marks() -> None:
    assert normalised("Okay — let's go, at 9!") == "okay let's go at 9"


def test_text_counts_from_the_last_sample_to_the_first_record_with_the_final_text() -> None:
    m = Meeting()
    m.utterance(1.6, "u", 0.5, 1.5, "I will call", state="tentative")
    m.utterance(2.25, "u", 0.5, 2.0, "I will call the plumber", state="tentative")
    m.utterance(2.9, "u", 0.5, 2.0, "I will call the plumber.")
    assert m.samples(said(0.5, 2.0)).final_text == [pytest.approx(250.0)]


def test_partials_do_not_count_as_text_but_as_first_sign() -> None:
    m = Meeting()
    m.partial(1.0, "u", 0.5, 0.9)
    m.utterance(2.25, "u", 0.5, 2.0, "I will call the plumber.")
    samples = m.samples(said(0.5, 2.0))
    assert samples.final_text == [pytest.approx(250.0)]
    assert samples.first_partial == [pytest.approx(-1000.0)]
    assert samples.first_shown == [pytest.approx(500.0)]


def test_a_partial_of_what_was_said_before_is_no_sign_of_what_follows_in_the_same_piece() -> None:
    m = Meeting()
    m.partial(1.0, "u", 0.5, 0.9)
    m.utterance(5.0, "u", 0.5, 4.8, "Yes. I will call the plumber.")
    samples = m.samples(said(0.5, 1.0, "Yes."), said(3.0, 4.8))
    assert samples.first_partial[1] == pytest.approx(200.0)


def test_what_never_came_is_lost_and_counts_ten_seconds() -> None:
    m = Meeting()
    m.utterance(2.2, "u", 0.5, 2.0, "I will call the plumber.")
    samples = m.samples(said(0.5, 2.0), said(10.0, 11.0, "Fine."))
    assert samples.lost == 1
    assert samples.final_text[1] == UNMATCHED_MS
    assert samples.report()["final_text_ms"]["n"] == 2


def test_what_fell_into_a_stretch_that_was_left_out_is_shed_and_not_lost() -> None:
    meeting = Meeting()
    true = [said(0.0, 1.0, "We agreed."), said(4.0, 5.0), said(9.0, 10.0), said(20.0, 21.0)]
    meeting.utterance(1.2, "a", 0.0, 1.0, "We agreed.")
    stream = {"type": "stream", "stream": "mic-1/audio"}
    meeting.feed(TIMELINE, 3.0, stream | {"state": "shed", "raw_ns": at(3.0)})
    meeting.feed(TIMELINE, 8.0, stream | {"state": "resumed", "raw_ns": at(8.0)})
    gap = {"type": "gap", "stream": "mic-1/audio", "raw_start_ns": at(3.0), "raw_end_ns": at(8.0)}
    meeting.feed(TIMELINE, 8.0, gap | {"what": "shed"})
    meeting.feed(TIMELINE, 8.5, gap | {"what": "lost", "raw_end_ns": at(12.0)})
    meeting.feed(TIMELINE, 15.0, stream | {"state": "shed", "raw_ns": at(15.0)})
    samples = meeting.meter.samples(true)
    assert (samples.shed, samples.lost, len(samples.final_text)) == (2, 1, 2)
    assert meeting.meter.left_out_s(at(25.0)) == 22.0


def test_a_withdrawn_utterance_is_not_shown() -> None:
    m = Meeting()
    m.utterance(2.2, "u", 0.5, 2.0, "I will call the plumber.")
    m.utterance(2.4, "u", 0.5, 2.0, "I will call the plumber.", state="withdrawn")
    assert m.samples(said(0.5, 2.0)).lost == 1


def test_somebody_elses_words_at_the_same_time_are_no_match() -> None:
    m = Meeting()
    m.utterance(2.2, "ben", 0.5, 2.0, "Sounds good.", speaker="Ben", device="mic-2")
    assert m.samples(said(0.5, 2.0)).lost == 1
    m.utterance(2.3, "nobody", 0.6, 2.0, "I will call the plumber.", speaker=None)
    assert m.samples(said(0.5, 2.0)).lost == 0


def test_a_long_utterance_in_two_pieces_is_complete_with_its_last() -> None:
    m = Meeting()
    m.utterance(9.5, "first", 0.5, 9.0, "A long story about")
    m.utterance(12.3, "second", 9.0, 12.0, "the plumber.")
    assert m.samples(said(0.5, 12.0)).final_text == [pytest.approx(300.0)]


def test_items_count_from_the_end_of_what_they_rest_on() -> None:
    m = Meeting()
    m.utterance(2.25, "u", 0.5, 2.03, "I will call the plumber.")
    # The quote ends before the utterance does: the last sample of the utterance counts all the same.
    m.item(2.26, "i", 0.8, 1.7)
    samples = m.samples(said(0.5, 2.0))
    assert samples.item == [pytest.approx(260.0)]
    assert samples.item_after_text == [pytest.approx(10.0)]


def test_evidence_belongs_to_the_device_it_names() -> None:
    m = Meeting()
    m.utterance(2.2, "anna", 0.5, 2.0, "I will call the plumber.")
    m.utterance(3.2, "ben", 0.5, 3.0, "And I will talk to the landlord.", speaker="Ben", device="mic-2")
    m.item(3.3, "i", 1.0, 1.9, device="mic-2")
    assert m.samples(said(0.5, 2.0), said(0.5, 3.0, speaker="Ben")).item == [pytest.approx(300.0)]


def test_first_and_final_form_of_an_item_are_two_figures() -> None:
    m = Meeting()
    m.utterance(2.2, "u", 0.5, 2.0, "I will call the plumber.")
    m.item(2.3, "i", 0.5, 2.0)
    m.item(6.0, "i", 0.5, 2.0, kind="item_changed", stage="settled", text="Anna calls the plumber.")
    samples = m.samples(said(0.5, 2.0))
    assert samples.item == [pytest.approx(300.0)]
    assert samples.item_final == [pytest.approx(4000.0)]
    assert (samples.provisional, samples.changed) == (1, 1)


def test_an_item_that_comes_again_unchanged_has_its_final_form_from_the_start() -> None:
    m = Meeting()
    m.utterance(2.2, "u", 0.5, 2.0, "I will call the plumber.")
    m.item(2.3, "i", 0.5, 2.0)
    m.item(6.0, "i", 0.5, 2.0, kind="item_changed", stage="settled")
    samples = m.samples(said(0.5, 2.0))
    assert samples.item_final == [pytest.approx(300.0)]
    assert samples.changed == 0


def test_a_withdrawn_item_was_provisional_and_changed_but_has_no_latency() -> None:
    m = Meeting()
    m.utterance(2.2, "u", 0.5, 2.0, "I will call the plumber.")
    m.item(2.3, "i", 0.5, 2.0)
    m.withdrawn(4.0, "i")
    samples = m.samples(said(0.5, 2.0))
    assert samples.item == []
    assert (samples.provisional, samples.changed) == (1, 1)


def test_an_item_that_first_comes_settled_is_not_provisional() -> None:
    m = Meeting()
    m.utterance(2.2, "u", 0.5, 2.0, "I will call the plumber.")
    m.item(6.0, "i", 0.5, 2.0, stage="settled")
    assert m.samples(said(0.5, 2.0)).provisional == 0


def test_words_right_speaker_counts_words_not_utterances() -> None:
    m = Meeting()
    m.utterance(2.2, "u", 0.5, 2.0, "I will call the plumber")
    # Cross-talk: Ben's two words at Anna's microphone. The misheard word is nobody's.
    m.utterance(4.2, "v", 3.0, 4.0, "sounds good grzb")
    samples = m.samples(said(0.5, 2.0), said(3.0, 4.0, "Sounds good.", speaker="Ben"))
    assert (samples.words_right, samples.words) == (5, 7)
    assert samples.report()["words_right_speaker"] == round(5 / 7, 4)


def test_the_hop_runs_from_the_writers_stamp() -> None:
    m = Meeting()
    m.utterance(2.205, "u", 0.5, 2.0, "I will call the plumber.", sent_s=2.2)
    assert m.samples(said(0.5, 2.0)).hop == [pytest.approx(5.0)]


def test_other_meetings_and_binary_records_are_passed_over() -> None:
    m = Meeting()
    m.feed(MINUTES, 1.0, {"meeting_id": "other", "type": "final", "stage": "final"})
    m.meter.feed(TIMELINE.name, b"MNTD\x01binary", at(1.0))
    assert m.meter.final_seen_ns is None
    m.feed(MINUTES, 5.0, {"type": "final", "stage": "final"})
    assert m.meter.final_seen_ns == at(5.0)


def test_meetings_add_up() -> None:
    one, two = Meeting(), Meeting()
    one.utterance(2.2, "u", 0.5, 2.0, "I will call the plumber.")
    two.utterance(2.4, "u", 0.5, 2.0, "I will call the plumber.")
    samples = one.samples(said(0.5, 2.0))
    samples.add(two.samples(said(0.5, 2.0), said(7.0, 8.0)))
    report = samples.report()
    assert samples.final_text == [pytest.approx(200.0), pytest.approx(400.0), UNMATCHED_MS]
    assert (report["final_text_ms"]["n"], report["lost"]) == (3, 1)
