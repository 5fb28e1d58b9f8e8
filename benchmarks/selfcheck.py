"""Every benchmark once, as small as it goes, and whether its report has the keys that people rely on.

The figures mean nothing here; a benchmark that no longer runs, or no longer says what it should, does.
"""

import contextlib
import io
import json
import pickle
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import av
import cv2
import numpy as np
import soundfile

from flows.installation import Installation
from models.minutes.scores import UtteranceScores
from models.verifier.examples import read_scripts

from . import (
    alignment,
    alignment_media,
    coldstart,
    compliance,
    cues,
    flood,
    fuzz,
    ingest,
    item_evaluation,
    item_senses,
    item_stages,
    items,
    latency,
    loss,
    memory,
    minutes,
    model,
    rules,
    slides,
    speech,
    telemetry,
    throughput,
)
from .report import progress
from .rooms import SAMPLE, Played, invented_talk, sound_room, transcript_room

RANKS: Final = ("p50", "p95", "p99", "n")
_SOUND_S: Final = 9.0
_RANKED: Final = (
    "first_partial_ms", "final_text_ms", "item_ms", "item_final_ms", "item_after_text_ms", "hop_ms",
)  # fmt: skip
_SINGLE: Final = (
    "provisional_changed", "lost", "words_right_speaker", "cpu_cores", "rss_mb", "rss_mb_by_process",
    "max_lateness_ms", "shed", "shed_utterances", "shed_meetings",
)  # fmt: skip
KEYS: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "latency": {
        **dict.fromkeys(_RANKED, RANKS),
        **dict.fromkeys(_SINGLE, ()),
    },
    "latency of words": {"bare_loop_ms": RANKS, "ratio_to_bare_loop": (), "final_text_ms": RANKS, "item_ms": RANKS},
    "flood": {"event_ms": RANKS, "event_ms_by_shard": (), "cpu_cores": (), "max_lateness_ms": ()},
    "throughput": {"utterances_per_s": (), "event_ms": RANKS, "steady_per_s": ()},
    "alignment": {
        **dict.fromkeys(("calibrated", "flash", "blind"), ("sound_sound", "sound_video", "sound_slide")),
        "faulty_named": ("share", "false_share"), "bound_coverage": (), "bound_median_ms": (), "settle_s": (),
        "packets_per_s_core": (),
    },
    "alignment of media": {
        "blind": ("sound_sound", "sound_slide", "evidence"), "faulty_named": ("share", "accused"), "bound_coverage": (),
        "sent_late_max_ms": (),
    },
    "speech": {
        "wer_ratio": ("mid", "low", "high"), "wer": ("pooled", "by_kind"), "real_time_factor": (), "processor_factor": (),
        "invented_words": (), "nonspeech_minutes": (), "name_recall": ("with_hotwords", "without"),
        "speaker_accuracy": ("seats", "pair", "mix"),
    },
    "loss": {"by_loss": ("0.02",)},
    "coldstart": {"first_packet_s": ("p50", "max", "n"), "import_s": ()},
    "memory": {"rss_mb_start": (), "rss_mb_end": (), "rss_mb_max": (), "slope_mb_per_hour": ()},
    "slides": {
        "word_recall": (), "clean_word_recall": (), "recall_ratio": (), "word_precision": (), "passes_per_slide": (),
        "idle_cores": (),
    },
    "telemetry": dict.fromkeys(
        ("ingest", "minutes"), ("absent_per_s_core", "off_per_s_core", "on_per_s_core", "off_ratio", "on_ratio")
    ),
    "ingest": {
        "pcm_packets_per_s_core": (), "flac": ("packets_per_s_core",), "opus": ("packets_per_s_core",),
        "h264_slides": ("packets_per_s_core",), "h264_camera": ("packets_per_s_core",),
    },
    "fuzz": {
        "codec": ("sent", "outcomes", "crashes"), "flow": ("sent", "outcomes", "crashes"), "crashes": (),
        "unaccounted": (),
    },
    "rules": {
        "checks_per_s": ("sal", "python"), "times_python": (), "change_us": ("10", "100"), "load_ms": ("1", "10"),
    },
    "compliance": {
        "revisions": (), "distinct_items": (), "holding": ("before", "after", "lower95_one_sided"),
        "gold_items": ("pass", "fallback", "withheld"), "item_f1": ("before", "after"), "corruptions": (),
        "escaped": ("seen", "unseen"), "clean_items_fallback": (), "review_per_meeting_hour": (), "guard_ms": RANKS,
        "checks_per_s_core": (),
    },
    "minutes": {"meetings": (), "utterances": (), "utterances_per_s": (), "seed": ()},
    "cues": {"meetings": (), "utterances": (), "utterances_per_s": ()},
    "items": {
        "meetings": (), "thresholds": ("action", "decision", "question"),
        "everyday": ("decisions", "action_items", "open_questions", "owner", "due", "false"),
        "ablations": ("no rules", "no model", "no pointers"),
    },
    "item_evaluation": {"meetings": (), "everyday": ("decisions", "action_items", "open_questions", "groups")},
    "item_senses": {
        "rules": ("made",), "model": ("made",),
    },
    "item_stages": {"meetings": (), "everyday": ("provisional", "settled", "final", "quiet")},
    "model": {
        "batch_curve_windows_per_s": ("1", "12"), "pieces_per_s": (), "two_processes": ("utterances_per_s", "window_p99_ms"),
        "mixed": ("utterances", "different"), "flood": ("1_times", "100_times"),
        **dict.fromkeys(("meetings_1", "meetings_12"), ("utterances_per_s", "utterances_per_core_s", "window_ms")),
    },
}  # fmt: skip
"""Keys of each report, and the keys inside them."""


def missing(figures: Mapping[str, Any], wanted: Mapping[str, Sequence[str]]) -> list[str]:
    """Keys that a report should have and has not, dotted."""
    gone = [name for name in wanted if name not in figures]
    return gone + [
        f"{name}.{part}"
        for name, parts in wanted.items()
        if name in figures
        for part in parts
        if not isinstance(figures[name], dict) or part not in figures[name]
    ]


def _short_sound(folder: Path) -> Played:
    """The first seconds of the sample meeting, without its slides."""
    folder.mkdir()
    for file in sorted(SAMPLE.glob("*.flac")):
        samples, rate_hz = soundfile.read(file, dtype="int16")
        soundfile.write(folder / file.name, samples[: round(_SOUND_S * rate_hz)], rate_hz)
    shutil.copy(SAMPLE / "room.json", folder)
    truth = json.loads((SAMPLE / "truth.json").read_text(encoding="utf-8"))
    truth["utterances"] = [u for u in truth["utterances"] if u["end_s"] < _SOUND_S - 0.5]
    (folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")
    return sound_room(folder)


def _two_scripts() -> list[dict[str, Any]]:
    read = read_scripts([compliance.SCRIPTS], frozenset({"train", "test"}))
    return [next(s for s in read if s["split"] == split) for split in ("train", "test")]


def _minutes(folder: Path) -> dict[str, Any]:
    """``benchmarks.minutes`` on one everyday script, through its command line."""
    said = [
        {"speaker": u.speaker, "text": u.text, "start_s": u.start_s, "end_s": u.end_s}
        for u in invented_talk(3, 40)
    ]
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "m.json").write_text(
        json.dumps({"meeting": "m", "date": "2026-03-10", "attendees": [], "utterances": said}),
        encoding="utf-8",
    )
    figures = _printed(
        minutes.main, "--scripts", str(folder / "scripts"), "--minutes-dir", str(folder / "out")
    )
    if not (folder / "out" / "m" / "minutes.json").is_file():
        raise RuntimeError("benchmarks.minutes wrote no minutes")
    return figures


def _printed(main: Callable[[list[str]], int], *arguments: str) -> dict[str, Any]:
    """The line that a benchmark prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main(list(arguments))
    if code != 0:
        raise RuntimeError(f"{main.__module__} ended with code {code}")
    (line,) = printed.getvalue().splitlines()
    return dict(json.loads(line))


def _items(folder: Path) -> dict[str, Any]:
    """``benchmarks.items`` on two short meetings, with scores that know the truth."""
    (folder / "scripts").mkdir(parents=True)
    table: dict[str, dict[str | int, Any]] = {}
    for script in read_scripts([compliance.SCRIPTS], frozenset({"train"}))[:2]:
        script["utterances"] = script["utterances"][:60]
        told = {e: entry["text"] for entry in script["truth"]["action_items"] for e in entry["evidence"]}
        ids = [u["id"] for u in script["utterances"]]
        scores = [UtteranceScores(action=0.9 if name in told else 0.02) for name in ids]
        table[script["meeting"]] = {"ids": ids, 0: scores, 2: scores, 8: scores}
        path = folder / "scripts" / f"{script['meeting']}.json"
        path.write_text(json.dumps(script), encoding="utf-8")
    (folder / "scores.pkl").write_bytes(pickle.dumps(table))
    return _printed(
        items.main, "--scores", str(folder / "scores.pkl"), "--scripts", str(folder / "scripts"), "--folds", "2",
        "--out", str(folder / "items.json"), "--ablate",
    )  # fmt: skip


def _item_evaluation(folder: Path) -> dict[str, Any]:
    """``benchmarks.item_evaluation`` on what `_items` wrote."""
    return _printed(
        item_evaluation.main, "--scores", str(folder / "scores.pkl"), "--scripts", str(folder / "scripts"),
        "--folds", "2", "--out", str(folder / "folds.pkl"),
    )  # fmt: skip


def _item_stages(folder: Path) -> dict[str, Any]:
    """``benchmarks.item_stages`` with what `_item_evaluation` kept."""
    return _printed(
        item_stages.main, "--scores", str(folder / "scores.pkl"), "--scripts", str(folder / "scripts"),
        "--folds", str(folder / "folds.pkl"),
    )  # fmt: skip


def _cues(folder: Path) -> dict[str, Any]:
    """``benchmarks.cues`` on the scripts of `_items`."""
    return _printed(cues.main, "--scripts", str(folder / "scripts"), "--out", str(folder / "cues.jsonl.gz"))


def _two_slides(folder: Path) -> slides.Case:
    """A video of six seconds with two slides on it."""
    folder.mkdir()
    shown = (
        slides.Shown("1", 0.0, 3.0, "Launch in May"),
        slides.Shown("2", 3.0, 6.0, "Budget of 4,000 euros"),
    )
    with av.open(str(folder / "slides.mp4"), "w") as file:
        stream = file.add_stream("libx264", rate=5)
        stream.width, stream.height, stream.pix_fmt = 640, 360, "yuv420p"
        for number in range(30):
            picture = np.full((360, 640, 3), 245, np.uint8)
            cv2.putText(
                picture, shown[number // 15].text, (40, 150), cv2.FONT_HERSHEY_DUPLEX, 1.2, (20, 20, 20), 2
            )
            file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="bgr24")))
        file.mux(stream.encode(None))
    return slides.Case("two slides", folder / "slides.mp4", shown, {})


def _fuzzed() -> dict[str, Any]:
    figures = fuzz.run(codec=5_000, flow=1_000, seed=0)
    if figures["crashes"] or figures["unaccounted"]:
        raise RuntimeError(f"benchmarks.fuzz: {figures}")
    return figures


def _speech(sound: Played, scratch: Path) -> dict[str, Any]:
    """``benchmarks.speech`` on the short sound room."""
    clips = speech.mixed_clips([sound.path], scratch)
    return speech.measure(clips, [sound.path], noise_minutes=0.1, seed=0, scratch=scratch)


def _checks(scratch: Path, installation: Installation) -> dict[str, Callable[[], Mapping[str, Any]]]:
    words = transcript_room(scratch / "words", invented_talk(2, 3), {})
    sound = _short_sound(scratch / "sound-room")
    return {
        "latency": lambda: latency.measure(
            sound, installation, meetings=1, repeat=1, transcript_only=False, feed=True
        ),
        "latency of words": lambda: latency.measure(
            words, installation, meetings=2, repeat=1, transcript_only=True, loop_messages=20
        ),
        "flood": lambda: flood.others(installation, meetings=2, seconds=4.0, times=10.0, seed=0),
        "throughput": lambda: throughput.measure(installation, meetings=3, utterances=40),
        "memory": lambda: memory.measure(
            installation, hours=0.05, per_s=30.0, sound_minutes=0.0, speed=1.0, seed=0
        ),
        "minutes": lambda: _minutes(scratch / "minutes"),
        "items": lambda: _items(scratch / "items"),
        "item_evaluation": lambda: _item_evaluation(scratch / "items"),
        "item_stages": lambda: _item_stages(scratch / "items"),
        "item_senses": lambda: _printed(item_senses.main, "--seeds", "1", "--cases", "1"),
        "cues": lambda: _cues(scratch / "items"),
        "model": lambda: _printed(model.main, "--utterances", "24", "--no-memory", "--mixed", "24"),
        "alignment": lambda: alignment.measure(rooms=1, seed=0, workers=1, length_s=30.0),
        "alignment of media": lambda: alignment_media.measure([SAMPLE], 0, 14.0, ("blind",)),
        "loss": lambda: loss.measure(SAMPLE, 12.0, (0.02,), 1, 0),
        "coldstart": lambda: coldstart.run(repeat=1),
        "slides": lambda: slides.run([_two_slides(scratch / "slides")], idle_s=2, seed=0),
        "telemetry": lambda: telemetry.run(seconds=2, utterances=5, meetings=2, rounds=1),
        "ingest": lambda: ingest.run(seconds=2, meetings=2, seed=0),
        "fuzz": _fuzzed,
        "speech": lambda: _speech(sound, scratch),
        "compliance": lambda: compliance.measure(_two_scripts(), 60, 0, 1),
        "rules": lambda: rules.measure(0, items=20, repeat=1, sizes=(10, 100), counts=(1, 10)),
    }


def main() -> int:
    """Run all; 0 where every report has its keys."""
    begun = time.monotonic()
    scratch = Path(tempfile.mkdtemp(prefix="minuted-selfcheck-"))
    problems: list[str] = []
    try:
        with Installation(scratch) as installation:
            for name, check in _checks(scratch, installation).items():
                started = time.monotonic()
                figures = check()
                problems += [f"{name}: no {key}" for key in missing(figures, KEYS[name])]
                progress(f"selfcheck: {name} ran in {time.monotonic() - started:.1f} s")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    for problem in problems:
        progress(f"selfcheck: {problem}")
    seconds = round(time.monotonic() - begun, 1)
    print(
        json.dumps(
            {"benchmark": "selfcheck", "checked": sorted(KEYS), "problems": problems, "seconds": seconds}
        )
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
