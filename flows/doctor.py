"""``minuted doctor``: what works on this machine, and the settings in force."""

import os
import platform
import shutil
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from operators.settings import Settings

_PACKAGES: Final = (
    "bytewax", "confluent-kafka", "rocksdict", "faster-whisper", "ctranslate2", "onnxruntime", "onnxruntime-gpu",
    "rapidocr", "av", "opencv-python-headless", "opencv-python", "librosa", "pydantic", "opentelemetry-sdk", "torch", "dvc",
)  # fmt: skip


def examine(settings: Settings) -> dict[str, Any]:
    """Everything that is worth knowing before a flow is started, as plain values."""
    import onnxruntime

    return {
        "python": platform.python_version(),
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
        "packages": {name: found for name in _PACKAGES if (found := _version(name)) is not None},
        "onnx_providers": onnxruntime.get_available_providers(),
        "speech": _tried(lambda: _speech(settings)),
        "slides": _tried(_slides),
        "voice_activity": _tried(_voice),
        "minutes": _tried(lambda: _minutes(settings)),
        "broker": _tried(lambda: _broker(settings)),
        "embedded_broker": _tried(_embedded),
        "java": shutil.which("java") or "not found (only needed for Apache Kafka on this machine)",
        "settings": {
            f"MINUTED_{name.upper()}": {"value": str(getattr(settings, name)), "meaning": field.description}
            for name, field in Settings.model_fields.items()
        },
    }


def readable(findings: dict[str, Any]) -> str:
    """The findings as lines for people."""
    lines = [
        f"python            {findings['python']} on {findings['machine']['system']}, {findings['machine']['cores']} cores"
    ]
    for name in ("speech", "slides", "voice_activity", "minutes", "broker", "embedded_broker", "java"):
        lines.append(f"{name.replace('_', ' '):17} {findings[name]}")
    lines.append(f"{'onnx providers':17} {', '.join(findings['onnx_providers'])}")
    lines.append(f"{'packages':17} " + ", ".join(f"{n} {v}" for n, v in findings["packages"].items()))
    lines += ["", "settings"]
    for name, entry in findings["settings"].items():
        lines.append(f"  {name}={entry['value']}")
        lines.append(f"      {entry['meaning']}")
    return "\n".join(lines)


def _tried(what: Callable[[], str]) -> str:
    try:
        return what()
    except Exception as error:  # a doctor tells what is wrong, whatever it is
        return f"does not work: {' '.join(str(error).split())}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _speech(settings: Settings) -> str:
    from models.speech_recogniser import SpeechRecogniser

    from .build import recogniser_settings

    recogniser = SpeechRecogniser(recogniser_settings(settings))
    recogniser.warm_up()
    return f"{recogniser.name} on {settings.speech_device}"


def _slides() -> str:
    from models.slide_reader import SlideReaderSettings

    SlideReaderSettings().build()
    return "RapidOCR, models from its package"


def _voice() -> str:
    from models.voice_activity import VoiceActivity

    VoiceActivity()
    return "Silero"


def _minutes(settings: Settings) -> str:
    if settings.model == "rules":
        return "rules alone"
    from models.minutes.memory import memory_plan

    from .minutes_model import load_model

    scorer, _ = load_model(settings)
    plan = memory_plan(12, 400)
    return (
        f"{scorer.name} and rules; for 12 meetings about {plan.total / 1e6:.0f} MB "
        f"({plan.sessions / 1e6:.0f} sessions, {plan.caches / 1e6:.0f} caches, {plan.meetings / 1e6:.0f} meetings)"
    )


def _broker(settings: Settings) -> str:
    from contracts.topics import TOPICS
    from operators.broker.kafka_link import check_topics

    check_topics(settings.link(), "minuted doctor", TOPICS, wait_s=2.0)
    return f"{settings.bootstrap_servers} answers, all topics are there"


def _embedded() -> str:
    from .brokers import embedded_binary

    return f"{embedded_binary().name} for {sys.platform}"
