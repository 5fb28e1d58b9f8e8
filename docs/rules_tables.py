"""Writes the tables of docs/rules.md from the rule language itself: ``python -m docs.rules_tables``."""

from pathlib import Path
from typing import Final

from contracts.sal.functions import FUNCTIONS
from contracts.sal.kinds import NAMES, Kind

PAGE: Final = Path(__file__).with_name("rules.md")
_ORDER: Final = (
    "Item", "ActionItem", "Evidence", "SummarySentence", "Meeting", "Attendee", "Gap", "SlideShown",
    "UtteranceShown",
)  # fmt: skip


def names_table() -> str:
    """What a rule can name."""
    rows = ["| name | what it is |", "| --- | --- |"]
    return "\n".join(rows + [f"| `{name}` | {kind} |" for name, kind in NAMES.items()])


def fields_table() -> str:
    """Fields of every record that a rule can reach."""
    found: dict[str, Kind] = {}
    waiting = list(NAMES.values())
    while waiting:
        kind = waiting.pop()
        if kind.of is not None:
            waiting.append(kind.of)
        if kind.record is not None and kind.record.name not in found:
            found[kind.record.name] = kind
            waiting += [field for field, _ in kind.record.fields.values()]
    rows = ["| of | field | type | may be missing |", "| --- | --- | --- | --- |"]
    for name in sorted(found, key=_ORDER.index):
        record = found[name].record
        assert record is not None
        for field, (kind, missing) in record.fields.items():
            listed = ", ".join(f'`"{value}"`' for value in sorted(kind.values or ()))
            values = f", one of {listed}" if listed else ""
            shown = "true or false" if kind.basic == "truth" else f"{kind}{values}"
            rows.append(f"| {record.spoken} | `{field}` | {shown} | {'yes' if missing else ''} |")
    return "\n".join(rows)


def functions_table() -> str:
    """Built-in functions."""
    rows = ["| function | gives | example |", "| --- | --- | --- |"]
    for function in FUNCTIONS.values():
        rows.append(f"| `{function.signature}` | {function.told} | `{function.example}` |")
    return "\n".join(rows)


def with_tables(page: str) -> str:
    """The page with the tables that hold now between their markers."""
    for name, table in (
        ("names", names_table()),
        ("fields", fields_table()),
        ("functions", functions_table()),
    ):
        begin, end = f"<!-- generated {name} -->", f"<!-- end {name} -->"
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
