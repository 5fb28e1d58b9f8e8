"""What people get wrong in rule files and what they are told, word for word.

``sal_mistakes.txt`` holds each file behind a line of ``>`` and the answer below it. After a change of a
message: ``python tests/contracts/test_sal_mistakes.py`` writes the answers anew; then read every one.
"""

import re
from pathlib import Path

import pytest

from contracts.sal import RuleError, load_rules

GOLDEN = Path(__file__).with_name("sal_mistakes.txt")


def told(text: str) -> str:
    """The answer to a rule file."""
    try:
        return f"{len(load_rules(text, 'house.sal').rules)} rules"
    except RuleError as error:
        return error.long()


def cases() -> list[tuple[str, str]]:
    found = []
    for block in re.split(
        r"^(?=> .*\n(?:> .*\n)*)(?<!> )", GOLDEN.read_text(encoding="utf-8"), flags=re.MULTILINE
    ):
        lines = block.splitlines()
        text = "\n".join(line[2:] for line in lines if line.startswith("> "))
        if text:
            found.append((text, "\n".join(line for line in lines if not line.startswith("> ")).strip()))
    return joined(found)


def joined(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Blocks of one file: a text without an answer goes on in the next block."""
    out: list[tuple[str, str]] = []
    for text, answer in found:
        if out and not out[-1][1]:
            text = f"{out.pop()[0]}\n{text}"
        out.append((text, answer))
    return out


def test_there_are_enough_of_them() -> None:
    assert len(cases()) >= 40
    assert len({answer for _, answer in cases()}) == len(cases())


@pytest.mark.parametrize(("text", "answer"), cases())
def test_message(text: str, answer: str) -> None:
    assert told(text) == answer


def test_one_line_says_file_place_and_how_many_more() -> None:
    with pytest.raises(RuleError) as caught:
        load_rules('assert "a": nothing == 1\nassert "b": true at once\nassert "c": 1 + 1', "house.sal")
    assert str(caught.value).startswith("house.sal:1:13: there is nothing called “nothing” here")
    assert str(caught.value).endswith("and 2 more") and "\n" not in str(caught.value)
    assert [(m.line, m.column) for m in caught.value.mistakes] == [(1, 13), (2, 21), (3, 13)]


def test_place_is_right_behind_indentation_comments_and_line_ends() -> None:
    text = '# a file\r\n\r\n  assert "a": true\r\n\tassert "b":\r\n      all i in items:\r\n        i.txet == ""\r\n'
    with pytest.raises(RuleError) as caught:
        load_rules(text)
    (mistake,) = caught.value.mistakes
    assert (mistake.line, mistake.column, mistake.length) == (6, 11, 4)
    assert mistake.source == '        i.txet == ""'


if __name__ == "__main__":
    blocks = [
        "\n".join(f"> {line}" for line in text.split("\n")) + f"\n{told(text)}\n" for text, _ in cases()
    ]
    GOLDEN.write_text("\n".join(blocks), encoding="utf-8")
