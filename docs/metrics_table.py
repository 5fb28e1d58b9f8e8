"""Writes the table of metrics into docs/operations.md from the metrics themselves: ``python -m docs.metrics_table``."""

from pathlib import Path
from typing import Final

from operators.telemetry.export import METRICS

PAGE: Final = Path(__file__).with_name("operations.md")
BEGIN: Final = "<!-- generated metrics -->"
END: Final = "<!-- end metrics -->"


def table() -> str:
    """One row for each metric: name, kind, unit, its attribute, meaning."""
    rows = ["| metric | kind | unit | by | meaning |", "| --- | --- | --- | --- | --- |"]
    for metric in METRICS:
        unit = metric.unit.strip("{}")
        by = f"`minuted.{metric.attribute}`" if metric.attribute else ""
        rows.append(f"| `{metric.name}` | {metric.kind} | {unit} | {by} | {metric.meaning} |")
    return "\n".join(rows)


def with_table(page: str) -> str:
    """The page with the table that holds now between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
