"""The ``minuted`` command. Exit codes: 0 done, 2 wrong input or settings (one line), 1 our fault."""

import datetime
import importlib
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NoReturn

import typer
from typer.core import TyperGroup

from operators.settings import SettingsProblem, load_settings

from .command_settings import PATIENCE_S, settings_of

_LATER: Final[Mapping[str, tuple[str, str]]] = {
    "rules": (".rules", "app"),
    "audit": (".audit", "app"),
    "review": (".review_command", "review"),
    "purge": (".review_command", "purge_meeting"),
    "calibrate": (".calibrate_command", "calibrate"),
}
"""Where commands are whose modules take a second of processor time to load: who publishes does not pay for them."""


class _Commands(TyperGroup):
    """All commands; those of ``_LATER`` are loaded when one of them, or the list of all, is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *_LATER]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        place = _LATER.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        found = getattr(importlib.import_module(place[0], __package__), place[1])
        holder = typer.Typer()
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=cmd_name)
        else:
            holder.command(cmd_name)(found)
        return typer.main.get_group(holder).commands[cmd_name]


app = typer.Typer(
    help="Turns the streams of a meeting room into minutes while the meeting is still going on.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, cls=_Commands,
)  # fmt: skip
broker_app = typer.Typer(help="A broker on this machine, for trying things out.", no_args_is_help=True)
topics_app = typer.Typer(help="The topics of the contract.", no_args_is_help=True)
app.add_typer(broker_app, name="broker")
app.add_typer(topics_app, name="topics")

Inputs = Annotated[
    list[Path], typer.Argument(metavar="INPUT…", help="sound, video, transcripts, or one room folder")
]
Title = Annotated[str | None, typer.Option(help="title of the meeting")]
Date = Annotated[
    str | None,
    typer.Option(metavar="YYYY-MM-DD", help="day of the meeting; due dates are resolved against it"),
]
Attendees = Annotated[str | None, typer.Option(metavar="NAME,NAME…", help="who was there")]
Brokers = Annotated[
    str | None, typer.Option(metavar="HOST:PORT", help="broker; default from MINUTED_BOOTSTRAP_SERVERS")
]


class UserProblem(Exception):
    """Wrong input or settings; the message is one line."""


def _day(text: str | None) -> datetime.date | None:
    if text is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError as error:
        raise UserProblem(f"--date {text}: not a day of the form YYYY-MM-DD") from error


def _text(option: str, text: str | None) -> str | None:
    if text is not None and any("\ud800" <= sign <= "\udfff" for sign in text):
        raise UserProblem(f"{option}: not UTF-8 text")
    return text


def _names(text: str | None) -> tuple[str, ...]:
    _text("--attendees", text)
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _speed(text: str) -> Literal["realtime", "max"] | float:
    if text in ("realtime", "max"):
        return "realtime" if text == "realtime" else "max"
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise UserProblem(f"--speed {text}: use realtime, max or a number above 0")
    return value


@app.command()
def run(
    inputs: Inputs,
    out: Annotated[
        Path,
        typer.Option(help="folder for minutes.md, minutes.json, transcript.vtt, timeline.jsonl, audit.jsonl"),
    ],
    title: Title = None,
    date: Date = None,
    attendees: Attendees = None,
    speed: Annotated[
        str, typer.Option(help="realtime, max, or how many times faster than real time")
    ] = "max",
    as_json: Annotated[bool, typer.Option("--json", help="print minutes.json")] = False,
) -> None:
    """Files in, minutes out; no broker needed."""
    from devices.inputs import InputSettings, open_inputs
    from devices.video import VideoSettings

    from .run_files import run_files

    title = _text("--title", title)
    # A nod takes half a second: at fewer pictures a second nobody can say which way a head moved.
    media = InputSettings(video=VideoSettings(max_fps=30))
    room = open_inputs(inputs, title=title, date=_day(date), attendees=_names(attendees), settings=media)
    out = _writable(out)
    document = run_files(room, out, speed=_speed(speed), settings=load_settings())
    for problem in room.problems:
        print(f"minuted: {problem}", file=sys.stderr)
    if as_json:
        sys.stdout.buffer.write((out / "minutes.json").read_bytes())
    else:
        counts = ", ".join(
            f"{len(found)} {name if len(found) != 1 else name.removesuffix('s')}"
            for name, found in (
                ("decisions", document.decisions), ("action items", document.action_items),
                ("open questions", document.open_questions), ("utterances", document.utterances),
            )
        )  # fmt: skip
        print(f"{counts}: {out / 'minutes.md'}")


def _writable(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".minuted-probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UserProblem(f"--out {out}: cannot be written ({error.strerror})") from error
    return out


@app.command()
def publish(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[INPUT…]", help="sound, video, transcripts, or one room folder"),
    ] = None,
    meeting: Annotated[str | None, typer.Option(help="meeting id; default from the inputs' name")] = None,
    brokers: Brokers = None,
    title: Title = None,
    date: Date = None,
    attendees: Attendees = None,
    speed: Annotated[
        str, typer.Option(help="realtime, max, or how many times faster than real time")
    ] = "realtime",
    codec: Annotated[Literal["pcm", "flac", "opus"], typer.Option(help="how sound is coded")] = "pcm",
    transcript_only: Annotated[bool, typer.Option(help="publish transcripts alone")] = False,
    keep_open: Annotated[bool, typer.Option(help="do not end the meeting: other publishers go on")] = False,
    microphone: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]DEVICE", help="a microphone here (ALSA), e.g. default")
    ] = None,
    camera: Annotated[
        list[str] | None, typer.Option(metavar="[NAME=]DEVICE", help="a camera here (V4L2), e.g. /dev/video0")
    ] = None,
    screen: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]DISPLAY", help="a screen here (X11), e.g. :0, as slides"),
    ] = None,
    duration: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0.1, max=604_800, help="stop after so long")
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="stored calibrations; default: that of the room's folder"),
    ] = None,
    ptp_clock: Annotated[
        Path | None, typer.Option(metavar="/dev/ptpN", help="stamp devices of this machine by this PTP clock")
    ] = None,
) -> None:
    """Publish files, or devices of this machine, as device streams; Ctrl-C ends the streams and the meeting."""
    from contracts.packet import Modality
    from devices.inputs import InputSettings, open_inputs
    from devices.live import LiveDevice, open_live
    from devices.media import SoundSettings
    from devices.publisher import Publisher, Stamp, true_stamp

    from .publish_clocks import doubts, existing, machine_clock, watch_of, with_stored

    title = _text("--title", title)
    settings = settings_of(brokers)
    live = [LiveDevice.parse("microphone", text) for text in microphone or ()]
    live += [LiveDevice.parse("camera", text) for text in camera or ()]
    live += [LiveDevice.parse("screen", text) for text in screen or ()]
    if bool(live) == bool(inputs):
        raise UserProblem("publish: name either files or devices (--microphone, --camera, --screen)")
    stamp: Stamp = true_stamp
    states = None
    if live:
        clock, readers = machine_clock(ptp_clock)
        tai_ns, utc_ns = clock.now_ns()
        room = open_live(
            live, meeting_id=_meeting_id(meeting), title=title, attendees=_names(attendees), tai_ns=tai_ns, utc_ns=utc_ns
        )  # fmt: skip
        room = with_stored(room, calibration)
        stamp, states = clock.stamper(), watch_of(room, readers).changes
    else:
        room = open_inputs(
            inputs or [], title=title, date=_day(date), attendees=_names(attendees), meeting_id=_meeting_id(meeting),
            settings=InputSettings(sound=SoundSettings(codec=codec)),
            calibrations=None if calibration is None else existing(calibration),
        )  # fmt: skip
    if room.timeline is not None:
        raise UserProblem(
            f"{room.timeline}: the log of a meeting holds no device streams; `minuted run` reads it"
        )
    stop = threading.Event()
    _end_at(stop, duration)
    told = 0

    def tell_problems() -> None:
        nonlocal told
        for problem in room.problems[told:]:
            print(f"minuted: {problem}", file=sys.stderr)
        told = len(room.problems)

    def progress(done_ns: int, total_ns: int | None) -> None:
        tell_problems()  # at once: a microphone that has failed can be mended while the meeting goes on
        tell(done_ns, total_ns)

    link = settings.link()
    with _progress("publishing") as tell:
        report = Publisher(
            link.bootstrap, link.names, link.access, unreachable_after_s=PATIENCE_S, stamp=stamp
        ).publish(
            room, speed=_speed(speed), keep_open=keep_open, stop=stop, progress=progress, states=states,
            only=frozenset({Modality.TRANSCRIPT}) if transcript_only else None,
        )  # fmt: skip
    tell_problems()
    for line in doubts(room, datetime.datetime.now(datetime.UTC).date()):
        print(f"minuted: {line}", file=sys.stderr)
    summary = {"meeting": report.meeting_id, "sent": dict(report.sent), "failed": report.failed}
    print(json.dumps(summary | {"max_lateness_ms": round(report.max_lateness_ns / 1e6, 1)}))
    if room.problems and all(count < 2 for name, count in report.sent.items() if name != "control"):
        raise UserProblem("nothing could be read, so that nothing but the end of each stream was published")
    if report.failed:
        raise UserProblem(f"{report.failed} messages were not delivered: {', '.join(report.errors)}")


def _end_at(stop: threading.Event, duration_s: float | None) -> None:
    """The first Ctrl-C or SIGTERM, or the end of the time, ends the streams where they are; a second one kills."""

    def ask(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ask)
    if duration_s is not None:
        timer = threading.Timer(duration_s, stop.set)
        timer.daemon = True
        timer.start()


def _meeting_id(text: str | None) -> str | None:
    from contracts.packet import valid_id

    if text is not None and (not valid_id(text) or text == "*"):
        raise UserProblem("--meeting: use 1 to 64 bytes of NFC text without control characters, and not *")
    return text


class _progress:
    """A line that moves on a terminal, nothing in a pipe."""

    def __init__(self, what: str) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._progress = Progress(console=Console(stderr=True), transient=True)
        self._shown = sys.stderr.isatty()
        self._task = self._progress.add_task(what, total=None)

    def __enter__(self) -> Callable[[int, int | None], None]:
        if self._shown:
            self._progress.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._progress.stop()

    def _tell(self, done_ns: int, total_ns: int | None) -> None:
        self._progress.update(self._task, completed=done_ns, total=total_ns)


@app.command()
def watch(
    meeting: Annotated[
        str | None, typer.Option(help="meeting id; without it whatever comes from now on")
    ] = None,
    brokers: Brokers = None,
    until_final: Annotated[bool, typer.Option(help="end when the minutes are final")] = False,
) -> None:
    """Live text and minutes in the terminal."""
    from .watch import watch as watch_topics

    settings = settings_of(brokers)
    link = settings.link()
    watch_topics(
        link.bootstrap, link.names, _meeting_id(meeting), link.overrides, lambda: False, until_final, wait_s=PATIENCE_S
    )  # fmt: skip


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="folder for the minutes")] = Path("out/demo"),
    speed: Annotated[str, typer.Option(help="realtime, or max for a quick check")] = "realtime",
) -> None:
    """The sample meeting through the whole product, on this machine."""
    from .demo import demo as play

    _speed(speed)
    play(_writable(out), speed=speed)


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
    brokers: Brokers = None,
) -> None:
    """What works on this machine, and the settings in force."""
    from .doctor import examine, readable

    findings = examine(settings_of(brokers))
    print(json.dumps(findings) if as_json else readable(findings))


@app.command()
def healthy(
    flow: Annotated[
        str | None, typer.Argument(help="perceive, minutes or room; without it all of this state folder")
    ] = None,
) -> None:
    """Whether a flow on this machine is ready and turning (exit code 1 where not)."""
    from .healthy import health

    found = health(load_settings().state_dir, flow)
    print(found.line, file=sys.stdout if found.healthy else sys.stderr)
    if not found.healthy:
        raise typer.Exit(1)


@broker_app.command("up")
def broker_up(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="port on 127.0.0.1; default 9092 where free")
    ] = None,
    kind: Annotated[
        Literal["embedded", "kafka"], typer.Option(help="kafka needs Java 17 and Maven")
    ] = "embedded",
) -> None:
    """Start a broker that goes on in the background, and make the topics."""
    from operators.broker.kafka_link import BrokerLink, create_topics

    from .brokers import EMBEDDED_SHARDS
    from .standing_broker import broker_up as up

    info = up(port, kind)
    names = load_settings().link().names
    if kind == "embedded" and "MINUTED_SHARDS" not in os.environ:
        names = replace(names, shards=EMBEDDED_SHARDS)
    create_topics(BrokerLink(info.bootstrap, names, info.client_overrides))
    print(f"{info.kind} broker at {info.bootstrap}, log {info.log}")
    print(f"export MINUTED_SHARDS={names.shards}")
    print(f"export MINUTED_BOOTSTRAP_SERVERS={info.bootstrap}")
    for name, value in info.client_overrides.items():
        print(f"export MINUTED_{name.upper().replace('.', '_')}={value}")


@broker_app.command("down")
def broker_down() -> None:
    """Stop it."""
    from .standing_broker import broker_down as down

    info = down()
    print("no broker is up" if info is None else f"{info.kind} broker at {info.bootstrap} stopped")


@topics_app.command("create")
def topics_create(
    brokers: Brokers = None,
    replication: Annotated[int, typer.Option(min=1, max=10, help="copies of each partition")] = 1,
) -> None:
    """Create the topics that are missing, with the settings of the contract."""
    from contracts.topics import TOPICS
    from operators.broker.kafka_link import check_topics, create_topics, differing_settings

    link = settings_of(brokers).link()
    made = create_topics(link, replication=replication, wait_s=PATIENCE_S)
    check_topics(link, "minuted topics", TOPICS, wait_s=PATIENCE_S)
    for line in differing_settings(link):
        print(f"minuted: {line}", file=sys.stderr)
    print(f"created {len(made)} topics" if made else "all topics were there")


def _problems() -> tuple[type[Exception], ...]:
    """Errors that are the user's to mend."""
    from devices.publisher import PublishError
    from devices.stored_calibrations import CalibrationProblem
    from devices.streams import InputError
    from models.speech_recogniser import ModelError
    from operators.broker.kafka_link import BrokerUnreachable, TopicProblem

    from .audit import AuditProblem
    from .brokers import BrokerError
    from .review import ReviewProblem
    from .rules import RulesProblem

    return (
        UserProblem,
        RulesProblem,
        AuditProblem,
        CalibrationProblem,
        ReviewProblem,
        SettingsProblem,
        InputError,
        PublishError,
        BrokerUnreachable,
        TopicProblem,
        BrokerError,
        ModelError,
    )


def _misused(error: typer.TyperException) -> str:
    """One line about an option or argument that is wrong or missing."""
    said = error.format_message() if hasattr(error, "format_message") else str(error)
    context: typer.Context | None = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "minuted"
    return f"{' '.join(said.split()).rstrip('.')}; `{command} --help` shows what there is"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Entry point; turns every outcome into an exit code and at most one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal of few letters, a file name that is no text
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(args=arguments, prog_name="minuted", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except typer.TyperException as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # then the help has been shown
            print(f"minuted: {_misused(error)}", file=sys.stderr)
        sys.exit(2)
    except Exception as error:
        if isinstance(error, _problems()):
            print(f"minuted: {' '.join(str(error).split())}", file=sys.stderr)
            sys.exit(2)
        if type(error).__name__ == "InstallationError":
            print(f"minuted: {error}", file=sys.stderr)
            sys.exit(1)
        raise
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
