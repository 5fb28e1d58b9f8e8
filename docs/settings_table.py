"""Writes the table of docs/settings.md from the settings themselves: ``python -m docs.settings_table``."""

from pathlib import Path
from typing import Any, Final

from operators.settings import Settings

PAGE: Final = Path(__file__).with_name("settings.md")
BEGIN: Final = "<!-- generated settings -->"
END: Final = "<!-- end settings -->"
_KINDS: Final = {"boolean": "true or false", "integer": "whole number", "number": "number", "string": "text"}
_PATHS: Final = {"path": "folder", "file-path": "file"}
_LIMITS: Final = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}


def table() -> str:
    """One row for each setting: variable, kind of value, default, meaning."""
    rows = ["| variable | value | default | meaning |", "| --- | --- | --- | --- |"]
    for name, described in Settings.model_json_schema()["properties"].items():
        default = described.get("default")
        shown = "none" if default is None else "empty" if default == "" else f"`{_plain(default)}`"
        rows.append(
            f"| `MINUTED_{name.upper()}` | {_value(described)} | {shown} | {described['description']} |"
        )
    return "\n".join(rows)


def with_table(page: str) -> str:
    """The page with the table that holds now between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(described: dict[str, Any]) -> str:
    kinds = described.get("anyOf", [described])
    kind = next(k for k in kinds if k["type"] != "null")
    limits = [f"{words} {kind[rule]}" for rule, words in _LIMITS.items() if rule in kind]
    choices = " or ".join(f"`{one}`" for one in kind.get("enum", ()))
    name = choices or _PATHS.get(kind.get("format", ""), _KINDS[kind["type"]])
    return ", ".join([name, *limits])


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
