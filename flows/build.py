"""Builds the dataflows from settings; the flow modules only name them."""

import atexit
import gc
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import KeyedStream

from contracts.minutes import SCHEMA, Versions
from contracts.sal import RuleError, RuleSet, load_rules
from contracts.sal.grammar import MAX_FILE_CHARS
from contracts.small_files import read_small
from contracts.topics import DEVICE_TOPICS, TIMELINE, TOPICS
from models.speech_recogniser import ModelError, RecogniserSettings, SpeechRecogniser
from models.verifier.session import RELEASED, VerifierUnusable
from models.voice_activity import VoiceActivity
from operators import telemetry
from operators.align.grid import AlignSettings
from operators.align.step import align
from operators.broker.journal import KafkaJournal
from operators.broker.kafka_link import TopicProblem, check_topics
from operators.broker.sink import Outgoing, ShardSink
from operators.broker.source import ShardSource
from operators.broker.turns import TurnSettings
from operators.clock import ClockSettings, clock
from operators.clock.lights import Lights
from operators.deliver.keys import KeyProblem, KeyStore, master_key
from operators.deliver.step import deliver, verify
from operators.draft import understand
from operators.ingest import IngestSettings, ingest
from operators.log import say
from operators.perceive.shedding import Load, SheddingSettings
from operators.perceive.step import MediaWorkers, Perceive, perceive
from operators.perceive.types import PerceiveSettings
from operators.settings import Settings, SettingsProblem, load_settings
from operators.speech.recognise import SpeechSettings
from operators.store import Stores
from operators.verify.check import Verifier, VerifySettings
from operators.verify.model_judge import ModelJudge
from operators.verify.rule_files import DEFAULT_RULES

from .healthy import Heartbeat, forget_ended
from .minutes_model import understanding
from .process_lock import lock_this_process

PERCEIVE_STEPS = ("ingest", "clock", "perceive")
MINUTES_STEPS = ("align", "understand", "deliver")
RULES_VERSION = "rules-en/1"

_COLLECTIONS = 100
"""Collections of the middle generation before one of all objects: ten times what Python has."""

NO_VERIFIER = "The verifier model could not be used; items were held against rules alone."


def product_versions(model: str | None = None, verifier: str | None = None) -> Versions:
    """What minutes say about who wrote them."""
    try:
        product = version("minuted")
    except PackageNotFoundError:
        product = "0"
    return Versions(product=product, model=model, rules=RULES_VERSION, contract=SCHEMA, verifier=verifier)


def rule_set(settings: Settings) -> RuleSet:
    """The rules of the settings' file.

    Raises:
        SettingsProblem: it cannot be read, or has mistakes; says line and column of the first.
    """
    path = settings.rules or DEFAULT_RULES
    try:
        text = read_small(path, 4 * MAX_FILE_CHARS, pipes=True).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsProblem(f"MINUTED_RULES {path} cannot be read ({why})") from error
    try:
        return load_rules(text, path.stem)
    except RuleError as error:
        first, more = error.mistakes[0], len(error.mistakes) - 1
        hint = f" ({first.suggestion})" if first.suggestion else ""
        rest = f", and {more} more; `minuted rules check` shows them" if more else ""
        raise SettingsProblem(
            f"MINUTED_RULES {path}:{first.line}:{first.column}: {first.message}{hint}{rest}"
        ) from error


def verifier(settings: Settings, notices: tuple[str, ...] = ()) -> Verifier:
    """The verifier that the flow's settings ask for; ``notices`` go into all minutes of this process.

    Raises:
        SettingsProblem: the rule file cannot be used.
    """
    judge = model_judge(settings)
    missing = judge is None and settings.verifier != "off"
    return Verifier(
        VerifySettings(judge_threshold=settings.judge_threshold), rule_set(settings), judge,
        (*notices, NO_VERIFIER) if missing else notices,
    )  # fmt: skip


def model_judge(settings: Settings) -> ModelJudge | None:
    """The verifier model of the settings; None where it is off or cannot be used, which is said."""
    if settings.verifier == "off":
        return None
    try:
        return ModelJudge(RELEASED if settings.verifier == "released" else Path(settings.verifier))
    except VerifierUnusable as error:
        say(f"flows.minutes: {error}; items are held against rules alone")
        return None


def key_store(settings: Settings) -> KeyStore:
    """The keys of meetings.

    Raises:
        SettingsProblem: they cannot be used.
    """
    try:
        return KeyStore(settings.keys, master_key(settings.master_key_file))
    except KeyProblem as problem:
        raise SettingsProblem(f"MINUTED_KEYS or MINUTED_MASTER_KEY_FILE: {problem}") from problem


def recogniser_settings(settings: Settings) -> RecogniserSettings:
    """Settings of the recogniser that the flow's settings ask for."""
    return RecogniserSettings(
        model=settings.speech_model, device=settings.speech_device, workers=settings.recognition_workers
    )


def perceive_settings(settings: Settings, ordinary_words: frozenset[str]) -> PerceiveSettings:
    """Settings of the perceive step that the flow's settings ask for."""
    return PerceiveSettings(
        stream_idle_s=settings.stream_idle_s, meeting_idle_s=settings.meeting_idle_s,
        late_s=settings.shed_after_s,
        speech=SpeechSettings(partials=settings.partials),
        ordinary_words=ordinary_words,
    )  # fmt: skip


def add_perceive(flow: Dataflow, settings: Settings) -> KeyedStream[tuple[int, Outgoing]]:
    """devices -> ingest -> clock -> perceive -> the log."""
    link = settings.link()
    recogniser = SpeechRecogniser(recogniser_settings(settings))
    recogniser.warm_up()
    voice = VoiceActivity()
    workers = MediaWorkers(
        lambda: recogniser, recognition_workers=settings.recognition_workers, behind_s=settings.shed_after_s
    )
    load = Load(SheddingSettings(after_s=settings.shed_after_s), workers.waited_s)
    workers.warm_up()
    atexit.register(workers.close)
    stores = Stores(settings.state_dir, "perceive", PERCEIVE_STEPS, sync=settings.state_sync)
    lateness = IngestSettings(lateness_ns=settings.lateness_ms * 1_000_000)

    wanted = perceive_settings(settings, recogniser.ordinary_words())

    lights = Lights()

    def step(shard: int) -> Perceive:
        return Perceive(shard, wanted, voice, workers, KafkaJournal(link), lights=lights, load=load)

    beat = Heartbeat(settings.state_dir, flow.flow_id, "devices")
    received = op.input("devices", flow, ShardSource(link, DEVICE_TOPICS, tell_caught_up=True, on_turn=beat))
    accepted = ingest(received, stores, lateness, link.names)
    timed = clock(accepted, stores, ClockSettings(), lights)
    return perceive(timed, stores, step)


def add_minutes(flow: Dataflow, settings: Settings) -> KeyedStream[tuple[int, Outgoing]]:
    """the log -> align -> understand -> verify -> deliver."""
    stores = Stores(settings.state_dir, "minutes", MINUTES_STEPS, sync=settings.state_sync)
    beat = Heartbeat(settings.state_dir, flow.flow_id, "timeline")
    source = ShardSource(settings.link(), (TIMELINE,), turns=TurnSettings(), on_turn=beat)
    received = op.input("timeline", flow, source)
    aligned = align(received, stores, AlignSettings())
    found = understanding(settings)
    drafted = understand(aligned, stores, found.engine)
    guard = verifier(settings, found.notices)
    versions = product_versions(found.model, guard.judged_by)
    return deliver(verify(drafted, guard), stores, versions, key_store(settings))


def write(step_id: str, up: KeyedStream[tuple[int, Outgoing]], settings: Settings, source: str) -> None:
    """Send what a half of the product says to its topics."""
    bare = op.map_value(f"{step_id}_addressed", up, lambda value: value[1])
    op.output(step_id, bare, ShardSink(settings.link(), source))


def _check_state(settings: Settings) -> None:
    try:
        settings.state_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.state_dir):
            pass
    except OSError as error:
        raise SettingsProblem(
            f"MINUTED_STATE_DIR {settings.state_dir} cannot be written ({error.strerror})"
        ) from error


def _start_telemetry(name: str, settings: Settings) -> None:
    """Off unless a collector is named, here or in OpenTelemetry's own variable."""
    if settings.otlp_endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        from operators.telemetry.export import Exporting  # a second, which only telemetry is worth

        endpoint = settings.otlp_endpoint or None
        telemetry.start(Exporting(f"flows.{name}", product_versions().product, settings.state_dir, endpoint))


def _on_termination(name: str) -> None:
    """On SIGTERM say so, send what telemetry has left, and end as the signal does; no snapshot is needed."""

    def end(number: int, frame: object) -> None:
        del frame
        say(f"flows.{name}: ended by a signal", "stop", signal=signal.Signals(number).name)
        telemetry.stop()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)


def spare_the_loop() -> None:
    """Keep full garbage collections short and rare: everything waits for one, a tenth of a second where models are."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], _COLLECTIONS)


def build(
    name: str, *parts: tuple[str, Callable[[Dataflow, Settings], KeyedStream[tuple[int, Outgoing]]]]
) -> Dataflow:
    """One dataflow of the given halves; ends the process with exit code 2 and one line where it cannot run."""
    try:
        settings = load_settings()
        _check_state(settings)
        for source, _ in parts:
            lock_this_process(settings.state_dir, source.rpartition(".")[2])
        forget_ended(settings.state_dir)
        check_topics(settings.link(), f"flows.{name}", TOPICS)
        _start_telemetry(name, settings)
        flow = Dataflow(name)
        for source, add in parts:
            write(f"{source.rpartition('.')[2]}_out", add(flow, settings), settings, source)
    except (SettingsProblem, TopicProblem, ModelError) as problem:
        say(f"flows.{name}: {problem}", "failed")
        sys.exit(2)
    _on_termination(name)
    spare_the_loop()
    say(
        f"flows.{name}: ready",
        "ready",
        brokers=settings.bootstrap_servers,
        shards=settings.shards,
        version=product_versions().product,
    )
    return flow
