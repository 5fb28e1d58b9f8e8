"""The released minutes model as it runs: what it refuses, and what its scores depend on."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from models.minutes.inputs import Context, Told, Window
from models.minutes.scores import UtteranceScores
from models.minutes.session import RELEASED, MinutesModel, MinutesModelUnusable
from operators.understand.cues import CUES

_SAID = (
    "", "   ", "Yes.", "I'll send the offer to the printer by Friday.", "Wir verschieben das auf Montag.",
    "明日までに送ります。", "да, конечно", "🎉🎉 ✨ 👍", "so who does the rota then", "well " * 5000, "x" * 30_000,
    "?!…—", "\u202eright to left", "No, scratch that; let's keep the old one, and Tom calls them tomorrow.",
)  # fmt: skip


@pytest.fixture(scope="module")
def model() -> MinutesModel:
    return MinutesModel(CUES)


def _windows(model: MinutesModel, seed: int, count: int) -> list[Window]:
    """Windows of a meeting in which anything is said by forty people."""
    draw = random.Random(seed)
    context, out = Context(), []
    for number in range(count):
        text = draw.choice(_SAID)
        cues = tuple(draw.random() for _ in CUES)
        context = context.heard(model.told(f"s{draw.randrange(40)}", text, cues))
        if number % 7 == 0 or number < 25:
            out.append(context.window())
    return out


def _all(scores: UtteranceScores) -> list[float]:
    heads = [scores.action, scores.decision, scores.question, scores.answer, scores.summary, scores.withdrawn]
    pointers = [p for _, p in (*scores.owner, *scores.joins_to)]
    return [*heads, scores.joins, *pointers, *([scores.due[1]] if scores.due else [])]


def test_scores_are_the_same_whatever_is_scored_in_between(model: MinutesModel) -> None:
    windows = [w for seed in range(3) for w in _windows(model, seed, 60)]
    once = [list(model.scores(window)) for window in windows]
    order = list(range(len(windows)))
    random.Random(9).shuffle(order)
    again = MinutesModel(CUES)
    again.scores_together(windows[:5])
    for place in order:
        assert list(again.scores(windows[place])) == once[place]
    flat = [p for window in once for scores in window for p in _all(scores)]
    assert all(0.0 <= p <= 1.0 for p in flat)
    assert len({round(p, 6) for p in flat}) > 100


def test_vectors_of_a_text_do_not_depend_on_what_came_before(model: MinutesModel) -> None:
    fresh = MinutesModel(CUES)
    for text in reversed(_SAID):
        assert fresh.vectors(text).tobytes() == model.vectors(text).tobytes()
        assert len(fresh.vectors(text)) <= 6


def test_what_is_remembered_of_eight_hours_is_bounded(model: MinutesModel) -> None:
    vectors = model.vectors("Let us go on.")
    context, largest = Context(), 0
    for number in range(12_000):
        context = context.heard(Told(f"s{number % 40}", 4, vectors, (0.0,) * len(CUES)))
        largest = max(largest, len(context.window().older))
    assert len(context.recent) == len(context.window().utterances) <= 20
    assert largest <= 45
    assert len(model.scores(context.window())) == len(context.recent)


def test_nothing_heard_has_no_scores(model: MinutesModel) -> None:
    assert list(model.scores(Window(()))) == []
    assert model.scores_together([]) == []


def test_files_that_cannot_be_used_are_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole = RELEASED.read_bytes()
    unread = tmp_path / "unread.onnx"
    unread.write_bytes(whole.replace(b"Gather", b"\xffather", 1))
    cut, text, other = tmp_path / "cut.onnx", tmp_path / "text.onnx", tmp_path / "tokenizer.json"
    cut.write_bytes(whole[: len(whole) // 2])
    text.write_text("no model")
    other.write_text("{}")
    tries: list[Callable[[], MinutesModel]] = [
        lambda: MinutesModel(CUES, tmp_path / "missing.onnx"),
        lambda: MinutesModel(CUES, tmp_path),
        lambda: MinutesModel(CUES, cut),
        lambda: MinutesModel(CUES, unread),
        lambda: MinutesModel(CUES, text),
        lambda: MinutesModel(CUES[:-1]),
        lambda: MinutesModel(CUES, tokenizer=tmp_path / "missing.json"),
        lambda: MinutesModel(CUES, tokenizer=other),
        lambda: MinutesModel(CUES, encoder=tmp_path / "missing.onnx"),
        lambda: MinutesModel(CUES, encoder=RELEASED),
        lambda: MinutesModel(CUES, Path(__file__).parents[3] / "models" / "verifier" / "verifier.onnx"),
    ]
    said = []
    for attempt in tries:
        with pytest.raises(MinutesModelUnusable) as refused:
            attempt()
        said.append(str(refused.value))
    assert all(line and "\n" not in line for line in said)
    assert "another version" in said[5]
    assert "tokenizer" in said[6] and "tokenizer" in said[7]
    assert capfd.readouterr().out == "", "the library falls back aloud where it is not told to be silent"
