"""Slow work for files: answers in the order of the asks, and reading stops where a microphone's sound waits for one."""

import numpy as np

from flows.files import OrderedWorkers
from models.speech_recogniser import Recognition
from operators.perceive.step import Answer, MediaWorkers, Owner, Recognised
from operators.perceive.types import Ask
from operators.speech.events import RecognitionRequest


class Backwards(MediaWorkers):
    """Answers the newest ask first, one at a time."""

    def __init__(self) -> None:
        self.asked: list[RecognitionRequest] = []

    def ask(self, owner: Owner, ask: Ask) -> None:
        assert isinstance(ask, RecognitionRequest)
        self.asked.append(ask)

    def take(self, shard: int) -> list[tuple[str, Ask, Answer]]:
        ask = self.asked.pop()
        return [("m", ask, Recognised(ask, Recognition(ask.piece_id)))]


def request(name: str, *, holds: bool = False) -> RecognitionRequest:
    sound = np.zeros(10, np.float32)
    return RecognitionRequest(name, 1, "final", "mic", sound, 0, 1, 0, holds=holds)


def names(answers: list[tuple[str, Answer]]) -> list[str]:
    return [answer.request.piece_id for _, answer in answers if isinstance(answer, Recognised)]


def test_answers_come_in_order_and_not_before_enough_is_under_way() -> None:
    workers = OrderedWorkers(Backwards(), ahead=2)
    for name in "abc":
        workers.ask((0, "m"), request(name))
    assert names(workers.collect(0)) == ["a"]
    assert workers.outstanding(0) == 2


def test_what_a_microphone_waits_for_is_answered_at_once() -> None:
    workers = OrderedWorkers(Backwards(), ahead=2)
    for ask in (request("a"), request("b", holds=True), request("c")):
        workers.ask((0, "m"), ask)
    assert names(workers.collect(0)) == ["a", "b"]
    assert workers.outstanding(0) == 1
