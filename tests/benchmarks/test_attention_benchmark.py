"""The attention benchmark as small as it goes: it runs, everything in it agrees, and its report has its keys."""

import json

import pytest

torch = pytest.importorskip("torch")

from benchmarks import attention  # noqa: E402

pytestmark = pytest.mark.train


def test_the_quick_form_reports_what_people_rely_on(capsys: pytest.CaptureFixture[str]) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert attention.main(["--quick"]) == 0
    finally:
        torch.set_num_threads(before)
    (line,) = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    for key in (
        "ratio_to_dense_masked",
        "ratio_to_windowed_sdpa",
        "ragged_ratio_to_best_rival",
        "peak_memory_ratio",
    ):
        assert report[key] > 0
    assert report["operations_saved"] > 0.9
    for case in report["cases"].values():
        assert max(case["relative_error"].values()) < 1e-6
        assert set(case["forward_ms"]) >= {"ours", "padded", "loop"}
