"""The documents say what is there: commands, targets, modules, links, settings, and the README's own example."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup
from typer.main import get_command

from docs.settings_table import PAGE, with_table
from flows.cli import app, main
from operators.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def commands() -> dict[str, set[str]]:
    """Every command of ``minuted`` as people type it, with its options."""
    found: dict[str, set[str]] = {}
    waiting = [("", get_command(app))]
    while waiting:
        name, command = waiting.pop()
        if not isinstance(command, TyperGroup):
            found[name] = {option for parameter in command.params for option in parameter.opts}
            continue
        context = typer.Context(command)
        for child in command.list_commands(context):
            # Some commands are loaded only when they are asked for.
            inner = command.get_command(context, child)
            assert inner is not None
            waiting.append((f"{name} {child}".strip(), inner))
    return found


def code_lines(text: str) -> list[str]:
    """Lines of code blocks, indented ones too, comments taken off and continued lines joined."""
    fenced = re.findall(r"```[a-z]*\n(.*?)```", text, re.DOTALL)
    indented = [m.group(0) for m in re.finditer(r"(?:^ {4}.*\n)+", text, re.MULTILINE)]
    lines = "\n".join([*fenced, *indented]).replace("\\\n", " ").splitlines()
    return [line.split(" #")[0].strip() for line in lines]


def mentions(pattern: str) -> list[tuple[str, str]]:
    """Document and first group of every place in code, in blocks or in a line, that fits the pattern."""
    out = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for piece in [*code_lines(text), *re.findall(r"`([^`\n]+)`", text)]:
            out += [(document.name, found) for found in re.findall(pattern, piece)]
    return out


def test_commands_that_documents_name_exist() -> None:
    known = commands()
    for where, rest in mentions(r"(?:^|[/ (])minuted((?: [a-z]+)+)"):
        words = rest.split()
        assert " ".join(words[:2]) in known or words[0] in known, f"{where}: minuted {rest}"


def test_options_that_documents_name_exist() -> None:
    known = commands()
    for where, line in mentions(r"(?:^|[/ (])minuted ((?:broker |topics )?[a-z]+ [^|)]*--.*)"):
        said = line.split("|")[0].split(" #")[0].replace("…", "").rstrip(")")
        # A quotation mark that closes what began before the command is none of its own.
        words = shlex.split(said if said.count('"') % 2 == 0 else said.rstrip('"'))
        name = " ".join(words[:2]) if " ".join(words[:2]) in known else words[0]
        options = {word.split("=")[0] for word in words if word.startswith("--")}
        assert options <= known[name] | {"--help"}, f"{where}: {line}"


def test_targets_that_documents_name_exist() -> None:
    for where, target in mentions(r"(?:^|[ (])make ([a-z-]+)"):
        assert target in TARGETS, f"{where}: make {target}"


def test_variables_that_documents_name_exist() -> None:
    known = {f"MINUTED_{name.upper()}" for name in Settings.model_fields} | {"MINUTED_REQUIRE_KAFKA"}
    for where, variable in mentions(r"(MINUTED_[A-Z_]+[A-Z])"):
        assert variable in known, f"{where}: {variable}"


def test_modules_that_documents_name_exist() -> None:
    for where, module in mentions(r"((?:flows|benchmarks|devices|docs|contracts|operators)(?:\.[a-z_]+)+)"):
        if re.search(r"\.(?:py|md|json|yaml|txt)$", module):
            continue
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or path.is_dir(), f"{where}: {module}"


def test_files_that_documents_name_exist() -> None:
    roots = "flows|benchmarks|devices|docs|contracts|operators|models|tests|locks"
    for where, name in mentions(rf"^((?:{roots})/[\w./*-]+)$"):
        assert list(ROOT.glob(name.rstrip("/"))), f"{where}: {name}"
    # Modules by their name alone, where the text has said in which folder they are.
    for where, name in mentions(r"^([\w*]+\.py)$"):
        assert any(list((ROOT / root).rglob(name)) for root in roots.split("|")), f"{where}: {name}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_resolve(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)\s#]+)", text):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_table_of_settings_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run python -m docs.settings_table"


def test_the_example_of_the_readme_gives_what_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(
        r"```(vtt|sh|markdown)\n(.*?)```", README.partition("## Your own files")[2], re.DOTALL
    )
    (_, transcript), (_, shown), (_, minutes) = blocks[:3]
    command = next(
        line for line in shown.splitlines() if line.startswith(".venv/bin/minuted run meeting.vtt")
    )
    (tmp_path / "meeting.vtt").write_text(transcript, encoding="utf-8")
    arguments = shlex.split(command)[1:]
    arguments[arguments.index("meeting.vtt")] = str(tmp_path / "meeting.vtt")
    arguments[arguments.index("--out") + 1] = str(tmp_path / "out")
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    assert capsys.readouterr().err == ""
    written = (tmp_path / "out" / "minutes.md").read_text(encoding="utf-8")
    for line in filter(None, minutes.splitlines()):
        assert line in written.splitlines(), f"minutes.md has no line {line!r} any more"
