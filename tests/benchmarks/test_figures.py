"""Pictures of reports: well formed, with every figure of the report in them."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.figures import main

REPORTS: dict[str, dict[str, Any]] = {
    "speech": {
        "wer": {"by_kind": {"read_speech": 0.05, "real_meeting": 0.3}},
        "wer_whole_file": {"by_kind": {"read_speech": 0.07, "real_meeting": 0.28}},
    },
    "loss": {
        "by_loss": {"0": {"item_f1": 1.0, "words_share": 1.0}, "0.1": {"item_f1": 0.7, "words_share": 0.9}}
    },
    "alignment": {
        name: {"sound_sound": {"p99_ms": 0.6}, "sound_video": {"p99_ms": 2.0}}
        for name in ("calibrated", "flash", "blind")
    },
    "latency": {"final_text_ms_ranks": {"50": 250.0, "95": 480.0}},
}


@pytest.mark.parametrize("name", REPORTS)
def test_each_known_report_becomes_a_picture(name: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"benchmark": name, **REPORTS[name]}), encoding="utf-8")
    assert main([str(report), "--out", str(tmp_path)]) == 0
    drawn = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
    assert sum(child.tag.endswith(("circle", "rect")) for child in drawn.iter()) >= 4


@pytest.mark.parametrize("text", ["", "[]", '{"benchmark": "ingest"}', '{"benchmark": "loss", "by_loss": 3}'])
def test_what_has_no_picture_is_refused_in_one_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    report.write_text(text, encoding="utf-8")
    assert main([str(report), "--out", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
