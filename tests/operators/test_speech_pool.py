"""The pool: order, room for what matters, and no thread left behind."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pytest

from models.speech_recogniser import Before, Recognition
from operators.speech.events import Kind, RecognitionRequest
from operators.speech.pool import Answer, PoolFull, PoolSettings, RecognitionPool, Superseded


@dataclass
class Gate:
    """A recogniser that waits until it is let go, and writes down what it was given."""

    let_go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    began: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    order: list[float] = field(default_factory=list)
    thorough: list[bool] = field(default_factory=list)

    def recognise(
        self,
        samples: npt.NDArray[np.float32],
        *,
        hotwords: tuple[str, ...] = (),
        word_times: bool = True,
        before: Before | None = None,
        voice: float = 0.0,
        thorough: bool = True,
    ) -> Recognition:
        self.thorough.append(thorough)
        self.order.append(float(samples[0]))
        self.began.release()
        assert self.let_go.acquire(timeout=10)
        if samples[0] < 0:
            raise RuntimeError("no good")
        return Recognition(text=f"{samples[0]:.0f} {word_times} {' '.join(hotwords)}".strip())


def request(value: float, kind: Kind, piece: str = "p", version: int = 1) -> RecognitionRequest:
    return RecognitionRequest(
        piece_id=piece,
        version=version,
        kind=kind,
        device="mic",
        samples=np.full(10, value, dtype=np.float32),
        start_ns=0,
        end_ns=1,
        priority={"final": 0, "speculative": 1, "partial": 2}[kind],
    )


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def pool(gate: Gate) -> Iterator[RecognitionPool]:
    made = RecognitionPool(lambda: gate, PoolSettings(workers=2, max_waiting=4))
    yield made
    for _ in range(50):
        gate.let_go.release()
    made.close()


def wait_for(pool: RecognitionPool, gate: Gate, count: int) -> list[Answer]:
    """Let `count` passes end and take their answers."""
    answers: list[Answer] = []
    pause = threading.Event()
    for _ in range(count):
        gate.let_go.release()
    for _ in range(2_000):
        answers += pool.collect()
        if len(answers) >= count:
            return answers
        pause.wait(0.005)
    raise AssertionError(f"{len(answers)} of {count} answers")


def test_decisive_passes_go_before_partials(pool: RecognitionPool, gate: Gate) -> None:
    pool.submit(request(1, "speculative", "a"))
    pool.submit(request(2, "speculative", "b"))
    assert gate.began.acquire(timeout=5) and gate.began.acquire(timeout=5)
    pool.submit(request(3, "partial", "c"))
    pool.submit(request(4, "speculative", "d"))
    pool.submit(request(5, "final", "e"))
    wait_for(pool, gate, 5)
    assert gate.order[2:] == [5, 4, 3]


def test_what_waited_too_long_is_heard_without_second_looks(gate: Gate) -> None:
    for behind_s, hurries in ((0.0, True), (60.0, False)):
        pool = RecognitionPool(lambda: gate, PoolSettings(workers=1, behind_s=behind_s))
        gate.thorough.clear()
        for ask in (
            request(1, "final", "a"),
            request(2, "speculative", "b"),
            sure := request(3, "final", "c"),
        ):
            pool.submit(ask if ask is not sure else replace(ask, holds=True))
        wait_for(pool, gate, 3)
        pool.close()
        # Where sentences end is never decided in a hurry.
        assert sorted(gate.thorough) == sorted([not hurries, not hurries, True])


def test_a_partial_never_takes_the_last_free_worker(pool: RecognitionPool, gate: Gate) -> None:
    pool.submit(request(1, "partial", "a"))
    assert gate.began.acquire(timeout=5)
    pool.submit(request(2, "partial", "b"))
    assert not gate.began.acquire(timeout=0.1)
    pool.submit(request(3, "speculative", "c"))
    assert gate.began.acquire(timeout=5)
    wait_for(pool, gate, 3)
    assert gate.order == [1, 3, 2]


def test_with_one_worker_there_are_no_partials(gate: Gate) -> None:
    pool = RecognitionPool(lambda: gate, PoolSettings(workers=1))
    pool.submit(request(1, "partial", "a"))
    assert not gate.began.acquire(timeout=0.1)
    pool.close()


def test_newer_requests_of_a_piece_replace_waiting_ones(pool: RecognitionPool, gate: Gate) -> None:
    pool.submit(request(1, "speculative", "a"))
    pool.submit(request(2, "speculative", "b"))
    assert gate.began.acquire(timeout=5) and gate.began.acquire(timeout=5)
    pool.submit(request(3, "speculative", "c", version=1))
    pool.submit(request(4, "partial", "c", version=2))
    pool.submit(request(5, "speculative", "c", version=3))
    answers = wait_for(pool, gate, 5)
    assert gate.order[2:] == [5]
    heard = {(asked.piece_id, asked.version) for asked, found in answers if isinstance(found, Recognition)}
    void = {(asked.piece_id, asked.version) for asked, found in answers if isinstance(found, Superseded)}
    assert heard == {("a", 1), ("b", 1), ("c", 3)}
    assert void == {("c", 1), ("c", 2)}
    assert pool.outstanding() == 0


def test_a_bounded_queue_says_when_it_is_full(pool: RecognitionPool, gate: Gate) -> None:
    pool.submit(request(0, "final", "x"))
    pool.submit(request(0, "final", "y"))
    assert gate.began.acquire(timeout=5) and gate.began.acquire(timeout=5)
    for number in range(4):
        pool.submit(request(number, "final", f"p{number}"))
    with pytest.raises(PoolFull, match="4 pieces"):
        pool.submit(request(9, "final", "late"))
    assert pool.outstanding() == 6


def test_an_error_is_an_answer(pool: RecognitionPool, gate: Gate) -> None:
    pool.submit(request(-1, "final"))
    (asked, found), *rest = wait_for(pool, gate, 1)
    assert not rest
    assert asked.piece_id == "p"
    assert isinstance(found, RuntimeError)


def test_word_times_for_what_counts_only(pool: RecognitionPool, gate: Gate) -> None:
    pool.submit(request(1, "partial", "a"))
    assert gate.began.acquire(timeout=5)
    pool.submit(request(2, "final", "b"))
    found = {asked.piece_id: answer for asked, answer in wait_for(pool, gate, 2)}
    assert isinstance(found["a"], Recognition) and found["a"].text == "1 False"
    assert isinstance(found["b"], Recognition) and found["b"].text == "2 True"


def test_close_drops_what_waits_and_joins(gate: Gate) -> None:
    pool = RecognitionPool(lambda: gate, PoolSettings(workers=1))
    pool.submit(request(1, "final", "a"))
    assert gate.began.acquire(timeout=5)
    pool.submit(request(2, "final", "b"))
    gate.let_go.release()
    pool.close()
    assert gate.order == [1]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("recognition-")]
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(request(3, "final"))


def test_settings_refuse_nothing_to_work_with() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        PoolSettings(workers=0)
