"""``minuted rules``: what people see, and exit code 2 with one line where a file cannot be used."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from contracts import examples
from contracts.minutes import MinutesDocument
from flows import cli
from flows.rules import DEFAULT_RULES

GOOD = 'assert "owned": all a in action_items: a.owner != null on fail: review\n'


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def rules(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> "Command":
    return Command(capfd, tmp_path)


@dataclass(frozen=True)
class Command:
    """Runs ``minuted rules`` in this process on files of a folder."""

    capfd: pytest.CaptureFixture[str]
    folder: Path

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def __call__(self, *arguments: str | Path) -> Ended:
        self.capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(["rules", *(str(argument) for argument in arguments)])
        said = self.capfd.readouterr()
        return Ended(ended.value.code if isinstance(ended.value.code, int) else 1, said.out, said.err)


def test_a_good_file(rules: Command) -> None:
    done = rules("check", rules.write("house.sal", GOOD))
    assert (done.code, done.err) == (0, "")
    assert "1 rule: 1 for each item" in done.out and "version house.sal/" in done.out
    assert rules("check", DEFAULT_RULES).code == 0
    assert rules("check", rules.write("empty.sal", "")).code == 0


def test_mistakes_are_shown_and_one_line_sums_up(rules: Command) -> None:
    file = rules.write("house.sal", GOOD + 'assert "b": itms != []\nassert "c": 1 +\n')
    for command in (("check", file), ("test", file, file), ("explain", file, "--rules", file)):
        done = rules(*command)
        assert done.code == 2
        assert done.err == f"minuted: {file}: 2 mistakes, the first in line 2\n"
        assert "house.sal:2:13: there is nothing called “itms” here" in done.out
        assert "did you mean “items”?" in done.out and "house.sal:3:15" in done.out


@pytest.mark.parametrize("content", [b"\xff\xfe\x00a", b"\n\n\xc3(", None])
def test_files_that_cannot_be_read(rules: Command, content: bytes | None) -> None:
    file = rules.folder / "none.sal" if content is None else rules.write("odd.sal", content)
    done = rules("check", file)
    assert done.code == 2 and done.out == ""
    assert done.err.startswith(f"minuted: {file}") and done.err.count("\n") == 1


def test_cases(rules: Command) -> None:
    file = rules.write("house.sal", GOOD)
    cases = rules.write(
        "cases.yaml", "- {case: nobody, document: {action_items: [Go.]}, expect: {owned: [a1]}}\n"
    )
    done = rules("test", file, cases)
    assert (done.code, done.err) == (0, "") and "as expected: nobody" in done.out
    wrong = rules.write(
        "wrong.yaml", "- {case: nobody, document: {action_items: [Go.]}, expect: {owned: holds}}\n"
    )
    done = rules("test", file, wrong)
    assert done.code == 2 and "1 of 1 cases differ" in done.err
    assert "“owned” fails, expected was that it holds" in done.out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "is no YAML"), ("a: 1", "holds no list of cases"), ("- {case: x, documnt: {}}", "case 1: documnt"),
        ("- {case: x, document: {action_items: [{text: 5}]}}", "case 1: document.action_items"),
        ("- {case: x, expect: {a: maybe}}", "case 1: expect"), ("- 5", "case 1"),
    ],
)  # fmt: skip
def test_cases_that_cannot_be_read(rules: Command, text: str, told: str) -> None:
    done = rules("test", rules.write("house.sal", GOOD), rules.write("cases.yaml", text))
    assert done.code == 2 and told in done.err and done.err.count("\n") == 1


def test_explain(rules: Command) -> None:
    (document,) = (m for m in examples.messages().values() if isinstance(m, MinutesDocument))
    item = document.action_items[0].model_copy(update={"text": "Send 7 \x1b[31moffers\u202e."})
    minutes = rules.write("minutes.json", document.model_copy(update={"action_items": (item,)}).to_bytes())
    done = rules("explain", minutes)
    assert (done.code, done.err) == (0, "")
    assert "action item a1: Send 7 [31moffers." in done.out and "\x1b" not in done.out
    assert "speech 12.5–15.0 s, Anna Berg: “Jose, please send the offer by Friday.”" in done.out
    assert "numbers as said" in done.out and "not judged: main topic covered" in done.out
    told = json.loads(rules("explain", minutes, "--json", "--key-topics", "budget").out)
    (first, second) = told["items"]
    assert first["rules"]["numbers as said"] == "fails" and second["rules"]["numbers as said"] == "holds"
    assert first["evidence"][0]["quote"].startswith("Jose") and first["origin"] == "rules"
    assert set(told["whole"].values()) <= {"holds", "fails", "unknown"}
    done = rules("explain", rules.write("no.json", "{}"))
    assert done.code == 2 and "these are no minutes" in done.err and done.err.count("\n") == 1
    assert rules("explain", minutes, "--date", "soon").code == 2
